"""Strategies for CPUs: vector loops, packed operands and AMX."""
