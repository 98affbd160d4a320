"""The command line: options, printing and wiring. Commands load on use."""
