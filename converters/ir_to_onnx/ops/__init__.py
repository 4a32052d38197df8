"""Translators of operations of IR, one module per family."""
