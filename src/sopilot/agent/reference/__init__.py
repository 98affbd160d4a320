"""The reference executor: acts on the text of a view alone."""
