"""Statistics of paired benchmark outcomes: exact tests, clustered permutation, intervals.

Pure: seeds arrive as values, and text arrives already read. A figure that doesn't exist is
``Undefined`` with its reason, never 0. Distributions and root finding are SciPy's (extra
``lab``). Imports diagnostics only.
"""
