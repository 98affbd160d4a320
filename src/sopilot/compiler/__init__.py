"""Handbook to program, one pass a file, the passes listed in order in pipeline. Pure. May import the rooms above it: diagnostics, handbook, program."""
