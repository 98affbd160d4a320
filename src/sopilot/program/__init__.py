"""What a compiled program is.

Owns functions, labelled steps, the printer, the YAML codec and the verifier
that runs on every compile and every load. Pure. May import ``diagnostics`` and
``handbook``.
"""
