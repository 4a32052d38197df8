"""A function for each operation of OpenVINO's opsets, to make models in Python.

    from irexec import Model, opset

    x = opset.parameter([1, 3, 224, 224], "f32", "image")
    y = opset.relu(x * 2 + 1)
    model = Model([y], [x])

``opset.relu`` makes a node of the newest version of Relu. ``opset.opset4`` has the operations as opset 4 has them: the
newest version of each that is not newer. ``opset.extension("onednn")`` has those of a namespace outside of the opsets.

Inputs are tensors, or values that become constants; attributes are keywords with the names and defaults of the
specification. ``name`` is the name of the layer, ``names`` are the tensor names of the first output. The functions are
made from the definitions of the operations when they are first asked for; opset.pyi, which editors and type checkers
read, is written from them when irexec is installed (irexec/authoring/operations.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irexec.authoring.bodies import Iteration, Slices, body, declared, if_, layer, loop, tensor_iterator
from irexec.authoring.operations import functions, newest_functions
from irexec.authoring.surgery import embed
from irexec.authoring.tensor import constant, packed, parameter, result
from irexec.schema.registry import NEWEST_OPSET

_WRITTEN: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        Iteration, Slices, body, constant, declared, embed, if_, layer, loop, packed, parameter, result,
        tensor_iterator,
    )
}  # fmt: skip


class Opset:
    """The functions of one opset, or of a namespace outside of the opsets.

    Args:
        version: the number of the opset, or the namespace.
    """

    def __init__(self, version: int | str) -> None:
        self._version = version

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = functions(self._version).get(name)
        if found is None:
            raise AttributeError(f"{self!r} has no operation {name!r}")
        return found

    def __dir__(self) -> list[str]:
        return sorted(functions(self._version))

    def __repr__(self) -> str:
        return f"opset{self._version}" if isinstance(self._version, int) else f"extension {self._version!r}"


@functools.cache
def extension(namespace: str) -> Opset:
    """The functions of the operations of a namespace outside of OpenVINO's opsets.

    Raises:
        AttributeError: no operation has the namespace.
    """
    if not functions(namespace):
        raise AttributeError(f"no operation has the namespace {namespace!r}: no plug-in with it is in IREXEC_PLUGINS")
    return Opset(namespace)


_OPSETS = {f"opset{number}": Opset(number) for number in range(1, NEWEST_OPSET + 1)}


def __getattr__(name: str) -> Any:
    """An opset, or the function of the newest version of an operation."""
    found = _OPSETS.get(name) or newest_functions().get(name)
    if found is None:
        raise AttributeError(f"module 'irexec.opset' has no attribute {name!r}")
    return found


def __dir__() -> Sequence[str]:
    return sorted([*newest_functions(), *_OPSETS, *_WRITTEN, "extension"])
