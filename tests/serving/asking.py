"""Requests of tritonclient over HTTP and gRPC, alone and by many clients at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np


def inputs(name: str, seed: int) -> dict[str, np.ndarray]:
    """Random inputs of one of the models."""
    random = np.random.default_rng(seed)
    if name == "classifier":
        return {"image": random.random((1, 1, 8, 8), np.float32)}
    if name == "transformer":
        return {"tokens": random.integers(0, 1000, (1, 16))}
    if name == "slow":
        return {"x": np.zeros((600, 1024), np.float32)}
    return {"x": random.standard_normal((2, 4)).astype(np.float32)}


def asked(library: Any, client: Any, name: str, given: dict[str, np.ndarray]) -> Any:
    """The answer to one request; ``library`` is tritonclient.http or tritonclient.grpc."""
    types = {"f": "FP32", "i": "INT64"}
    tensors = []
    for key, array in given.items():
        tensor = library.InferInput(key, list(array.shape), types[array.dtype.kind])
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return client.infer(name, tensors)


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with 0 to ``count`` - 1, each in a thread, and wait for all."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
