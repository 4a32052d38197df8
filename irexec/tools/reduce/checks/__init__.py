"""Checks, which decide whether a candidate fails."""
