"""The Python API and what people name as a source."""
