"""Diagnostics, errors and the wording of messages in English and Chinese."""
