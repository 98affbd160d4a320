"""The stack machine: state, steps, evidence, proof of a guarded call, replay.

Pure: time, randomness and ids arrive as values. ``step`` maps a state and an operation to a
state and events.
"""
