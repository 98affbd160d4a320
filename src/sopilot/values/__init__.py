"""JSON values, schemas, patterns and plain text.

The bottom of the import order: the standard library only, and RE2 for schema patterns.
"""
