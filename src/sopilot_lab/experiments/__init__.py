"""Runs, sweeps, studies, archives and their report."""
