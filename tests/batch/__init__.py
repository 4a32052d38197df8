"""Long tests of irexec batch, apart from the quick ones: ends at random moments, a full disk, speed and memory.

``python -m tests.batch ends``, ``speed``, ``memory``, ``weights``, ``ray``, ``examples`` or ``spark``; each prints what it has seen, and its exit code is 1 where that is wrong.
"""
