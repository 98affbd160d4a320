"""SOPBench as a source of handbooks, as a simulator and as an oracle; sweeps and reports."""
