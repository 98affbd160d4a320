"""The worlds that ship: handbooks with simulators and tasks, and scenarios for any handbook."""
