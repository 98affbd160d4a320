"""The Python API, the sources that people name, signing in, worker processes."""
