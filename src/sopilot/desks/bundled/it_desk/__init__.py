"""A company's IT desk: passwords, access, software and devices."""
