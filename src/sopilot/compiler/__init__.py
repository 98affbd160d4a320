"""Turn a handbook into verified programs, one pass per file.

``pipeline`` lists the passes in order. Deterministic; uses no model.
"""
