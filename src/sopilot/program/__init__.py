"""The compiled form of a procedure: model, walk, verifier, codec, printer."""
