"""Decide whether a guarded call is proven (design/proof.md)."""
