"""Reshape, Squeeze and Unsqueeze to a shape that is known before the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve


def _register(type: str, since: int) -> None:
    @fast_kernel(type, since)
    def build(data: Fact, *rest: Fact, **attributes: Any) -> Callable[..., np.ndarray] | None:
        if not data.is_static:
            return None
        shape = resolve(type, f"opset{since}").infer((data, *rest), attributes).shape
        return None if not is_static(shape) else lambda data, *rest: data.reshape(shape)


for _type, _since in (("Reshape", 1), ("Squeeze", 1), ("Squeeze", 15), ("Unsqueeze", 1)):
    _register(_type, _since)
