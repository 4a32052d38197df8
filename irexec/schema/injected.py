"""Keyword-only parameters of kernels that are not attributes: the runtime injects them, recognised by their
annotation."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.graph import Body, Node

T = TypeVar("T")


class Runner(Protocol):
    """A body as kernels and shape rules see it: called with one argument per Parameter, in order of the
    Parameters in ``body.graph.parameters``, it returns one result per Result, in order.

    A kernel's Runner takes and gives arrays, a shape rule's Runner takes and gives Facts.
    """

    body: Body
    node: Node
    outputs: Sequence[Fact]
    """Facts of the outputs of the node; empty for a shape rule."""

    def __call__(self, *inputs: Any) -> list[Any]: ...

    def connected(self, read: Callable[[Node, Body], T]) -> T:
        """``read`` of node and body, such as ``Branch.of``; a run reads it once."""
        return read(self.node, self.body)


class Variables(MutableMapping[str, np.ndarray]):
    """The state of a session by variable_id: an annotation for stateful kernels."""


class Caches:
    """Inputs that a kernel writes, such as tables of keys: an annotation for kernels whose inputs OpenVINO changes.

    A session keeps what was written for its next run. Outside of one, nothing is kept.
    """

    def read(self, name: str, given: np.ndarray) -> np.ndarray:
        """A copy of an input as the run before left it: of ``given`` in the first run."""
        return given.copy()

    def keep(self, name: str, array: np.ndarray) -> None:
        """Keep what an input has become."""


NOT_KEPT = Caches()
"""The default of a kernel."""


class ElementTypes(tuple[Element | None, ...]):
    """The element types of the inputs: an annotation where carriers are ambiguous (bf16 and f32 share one)."""


INJECTED = (Runner, Variables, Caches, Constant, ElementTypes)
