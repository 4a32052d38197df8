"""Fast kernels by operation.

    @fast_kernel("MatMul", since=1)
    def matmul(a: Fact, b: Fact, *, transpose_a: bool, transpose_b: bool) -> Callable[..., np.ndarray] | None: ...

A builder has the signature of the operation's shape rule: facts of the inputs and typed attributes. It returns a function of
the input arrays that gives what the reference kernel gives, or None where it has nothing better for these facts. What it
needs only once (weights in another order, tables) it makes when it is called, not on every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irexec.ir.facts import Fact
from irexec.schema.loader import Loader
from irexec.schema.opdef import OpDef

Builder = Callable[..., Callable[..., Any] | None]

_BUILDERS: dict[tuple[str, int | str], Builder] = {}
loader = Loader()


def fast_kernel(type: str, since: int | str) -> Callable[[Builder], Builder]:
    """Decorator: the function builds fast kernels for the version of ``type`` that appeared in ``since``.

    Raises:
        ValueError: that version has one already.
    """

    def register(builder: Builder) -> Builder:
        if (type, since) in _BUILDERS:
            raise ValueError(f"{type} of {since} has two fast kernels")
        _BUILDERS[type, since] = builder
        return builder

    return register


def find_fast_kernel(definition: OpDef, inputs: Sequence[Fact], attributes: Mapping[str, Any]) -> Callable[..., Any] | None:
    """A fast kernel of the operation for inputs of these facts; None if the reference kernel is to run."""
    loader.load()
    builder = _BUILDERS.get((definition.type, definition.since))
    return None if builder is None else builder(*inputs, **attributes)
