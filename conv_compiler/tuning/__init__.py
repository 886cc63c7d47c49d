"""Searching over strategies by time."""
