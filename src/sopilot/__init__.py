"""sopilot: standard operating procedures as programs that language agents follow and prove."""

__version__ = "0.1.0"
