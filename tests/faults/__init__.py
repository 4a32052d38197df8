"""Signals, full disks and limits while files are written: ``python -m tests.faults``."""
