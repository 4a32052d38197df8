"""What a run sets in NumPy."""

from __future__ import annotations

import threading

import numpy as np

from irexec.backend.pool import Pool
from irexec.backend.threads import set_for_run


def test_a_run_leaves_numpy_as_it_was() -> None:
    before, size = np.geterr(), np.getbufsize()
    with set_for_run():
        assert np.getbufsize() < size
        assert set(np.geterr().values()) == {"ignore"}
    assert np.geterr() == before
    assert np.getbufsize() == size


def test_workers_use_the_same_buffers() -> None:
    """Each block waits for the other, so that the second one runs on a worker."""
    both, seen = threading.Barrier(2), dict[int, int]()

    def body(index: int, worker: int) -> None:
        both.wait(30)
        seen[worker] = np.getbufsize()

    with set_for_run():
        expected = np.getbufsize()
        Pool(2).run(2, body)
    assert seen == {0: expected, 1: expected}
