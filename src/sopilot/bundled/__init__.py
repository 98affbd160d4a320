"""Handbooks that ship with the package, each with a simulator, tasks and an oracle."""
