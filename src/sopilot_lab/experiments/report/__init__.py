"""The study's tables and figures."""
