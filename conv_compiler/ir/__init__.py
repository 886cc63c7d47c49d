"""Helpers for reading and writing IR: ops, scalars, attributes and the loops of the contraction."""
