"""sopilot from Python: the names of ``import sopilot`` are made here.

Owns the desk that a program opens, plain functions as tools, and the functions that check,
compile and audit. May import every wing and the rooms `hooks` and `sources`; stores and
models are wired by name, as on the command line.
"""
