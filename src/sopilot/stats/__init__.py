"""Exact paired tests, clustered permutation, intervals. Pure. Imports diagnostics only."""
