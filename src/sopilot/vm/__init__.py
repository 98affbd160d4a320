"""The stack machine: frames, operations, trace events; step(configuration, operation) -> configuration, events. Pure. May import the rooms above it."""
