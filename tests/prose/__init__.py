"""Prose of the product: docstrings, comments and pages read at once."""
