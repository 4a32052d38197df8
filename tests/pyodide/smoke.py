"""The smoke tests in Pyodide; the value of the last expression, the exit code of pytest, is that of the run."""

import os

import pytest

os.chdir("/project")
os.environ["HOME"] = "/tmp"
int(pytest.main(["-q", "-o", "addopts=", "-p", "no:cacheprovider", "--capture=sys", "tests/test_smoke.py"]))
