"""The CPU kernels of ONNX Runtime 1.32: the element types that it computes an operator of an opset in.

kernels.txt has a line for each kernel: the operator, the opsets, and the types of its type variables. The command
``python -m tests.to_onnx.kernels`` makes it anew from the installed ONNX Runtime.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources

from irexec.dtypes.elements import ELEMENTS, F16, F32, Element

Kernel = Mapping[str, frozenset[Element]]
"""The element types of each type variable that a kernel limits."""


@functools.cache
def _table() -> dict[str, list[tuple[frozenset[int], Kernel]]]:
    elements = {row.name: row for row in ELEMENTS}
    found: dict[str, list[tuple[frozenset[int], Kernel]]] = {}
    for line in (resources.files("converters.ir_to_onnx") / "kernels.txt").read_text("utf-8").splitlines():
        operator, opsets, *variables = line.split()
        kernel = {}
        for variable in variables:
            name, _, kinds = variable.partition("=")
            kernel[name] = frozenset(elements[kind] for kind in kinds.split(","))
        ranges = (part.split("-") for part in opsets.split(","))
        served = frozenset(opset for first, last in ranges for opset in range(int(first), int(last) + 1))
        found.setdefault(operator, []).append((served, kernel))
    return found


_NEWEST = 28
"""The newest opset of the table; newer ones are taken for it."""


@functools.lru_cache(maxsize=4096)
def kernels_of(operator: str, opset: int) -> tuple[Kernel, ...]:
    """The kernels of an operator of ai.onnx in an opset."""
    return tuple(kernel for opsets, kernel in _table().get(operator, ()) if min(opset, _NEWEST) in opsets)


def newest_with(operator: str, opset: int) -> int | None:
    """The newest opset up to ``opset`` in which there is a kernel of an operator; None if there is none."""
    known = [other for opsets, _ in _table().get(operator, ()) for other in opsets if other <= opset]
    return max(known, default=None)


def is_computed(operator: str, opset: int, types: Mapping[str, Element]) -> bool:
    """Whether there is a kernel for these element types of the type variables of an operator."""
    kernels = kernels_of(operator, opset)
    return any(all(computes(kernel, name, kind) for name, kind in types.items()) for kernel in kernels)


def computes(kernel: Kernel, variable: str, element: Element) -> bool:
    """Whether a kernel accepts an element type; ONNX Runtime computes f16 in f32 where it has no kernel for it."""
    accepted = kernel.get(variable)
    return accepted is None or element in accepted or (element is F16 and F32 in accepted)
