"""The tests. Processes of pytest-xdist share the processors, so that BLAS has its part of them in each."""

import os

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    # Before NumPy is imported; two processes of two threads each take a seventh more time than with one thread each.
    _PART = (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(1, _PART)))
