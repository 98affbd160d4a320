"""A bank that pays, lends and closes accounts."""
