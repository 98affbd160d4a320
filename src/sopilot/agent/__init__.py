"""Drive a session: the loop, budgets, simulated users, the reference executor."""
