"""The study behind sopilot, and tools to repeat it.

`sopilot` never imports this package; it loads the SOPBench provider and the commands by name.
"""
