"""The commands; the only place where adapters are wired."""
