"""Files of text, settings and addresses."""
