"""Show where an open-weight model looks in a recorded session."""
