"""Bounds of rows."""

from irexec.conformance import case_bounds as row_bounds

__all__ = ["row_bounds"]
