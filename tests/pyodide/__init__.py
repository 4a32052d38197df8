"""Rows of every operation in Pyodide, which node runs: ``python -m tests.pyodide FOLDER``."""
