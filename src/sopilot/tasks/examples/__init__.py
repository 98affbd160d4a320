"""The bundled examples: a bank, a clinic and an IT service."""
