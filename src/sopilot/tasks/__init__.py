"""Tasks, scenarios, simulators, workflow folders and the bundled examples."""
