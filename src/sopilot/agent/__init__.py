"""The model loop: budgets, visibility policies (the arms), user simulators, the reference executor."""
