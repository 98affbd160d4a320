"""The text a model sees: active frame, whole program, prose, official wording. Pure. May import the rooms above it."""
