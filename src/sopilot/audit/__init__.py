"""Trace to findings; other people's transcripts to a trace. Pure. May import the rooms above it."""
