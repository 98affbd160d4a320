"""The handbook language: reader, checks, expressions, formatter."""
