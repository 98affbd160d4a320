"""How we know: SOPBench, the discipline check, the attention lens, statistics.

Only doors import it.
"""
