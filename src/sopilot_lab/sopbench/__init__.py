"""SOPBench, read from a checkout and scored by its own evaluator."""
