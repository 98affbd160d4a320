"""Files, settings, addresses and worker processes of an installation."""
