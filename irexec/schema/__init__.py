"""Declarations of operations, and arithmetic shared by shape rules."""
