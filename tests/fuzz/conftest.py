"""Where the tests of the fuzzer can run."""

import importlib.util
import sys

# Limits of memory and the audit hook are those of Linux; the corpora need packages that not every system has.
_NEEDED = ("onnx", "PIL", "lxml")
collect_ignore_glob = (
    ["test_*.py"] if sys.platform != "linux" or not all(map(importlib.util.find_spec, _NEEDED)) else []
)
