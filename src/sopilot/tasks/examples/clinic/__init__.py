"""A clinic that books, prescribes and discloses records."""
