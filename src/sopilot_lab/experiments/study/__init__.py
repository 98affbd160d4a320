"""A whole study as one file."""
