"""A layer as its rewrite sees it, and the table of rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.portability.releases import Release
from irexec.authoring.operations import function_name, functions
from irexec.authoring.tensor import Tensor, constant
from irexec.dtypes.elements import Element
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.dims import Size
from irexec.ir.graph import Node
from irexec.schema.opdef import OpDef


class Inexact(IrexecError):
    """Older operations do not compute the same as the layer; the message is the reason."""


@dataclass(frozen=True)
class Layer:
    """A layer whose operation a release lacks.

    Attributes:
        node, definition: the layer, and the version of the operation that it is.
        inputs: its inputs in order, without those that are absent at the end.
        outputs: the facts of its outputs, as tensors that no rewrite may use.
        attributes: the typed attributes, by the kernel's parameter.
        read: the indices of the outputs that layers read.
        is_open: whether the model has inputs of sizes that are not known.
    """

    node: Node
    definition: OpDef
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    attributes: dict[str, Any]
    read: frozenset[int]
    is_open: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    @property
    def since(self) -> int:
        """The opset of its version."""
        return int(self.definition.since)

    def same(self, version: int, *inputs: Any, leave: Sequence[str] = (), **changed: Any) -> Any:
        """The outputs of an older version of the operation with the same inputs and attributes.

        Args:
            version: the opset of the version.
            inputs: other inputs in place of those of the layer.
            leave: attributes that the older version lacks.
            changed: attributes with other values.
        """
        given = {name: value for name, value in self.attributes.items() if name not in leave}
        function = functions(version)[function_name(self.definition.type)]
        return function(*(inputs or self.inputs), **(given | changed))

    def refuse_unless(self, condition: bool, reason: str) -> None:
        """Raise Inexact with the reason unless the condition holds."""
        if not condition:
            raise Inexact(reason)

    def rank(self, index: int = 0) -> int:
        """The rank of an input; Inexact if it is not known."""
        shape = self.inputs[index].shape
        self.refuse_unless(shape is not None, f"the rank of input {index} is not known")
        return len(shape or ())

    def axis(self, axis: int, rank: int | None = None) -> int:
        """An axis of the first input, counted from the front."""
        count = self.rank() if rank is None else rank
        self.refuse_unless(count > 0, "the data is a scalar")
        return axis % count

    def sizes(self, index: int = 0) -> tuple[Size, ...]:
        """The shape of an input; Inexact if its rank is not known."""
        self.rank(index)
        return tuple(self.inputs[index].shape or ())

    def static(self, index: int = 0) -> tuple[int, ...]:
        """The shape of an input; Inexact if a size is not known."""
        sizes = self.sizes(index)
        self.refuse_unless(all(isinstance(size, int) for size in sizes), f"the shape of input {index} is not known")
        return tuple(size for size in sizes if isinstance(size, int))

    def is_known(self, index: int) -> bool:
        """Whether the value of an input is known before the model runs."""
        given = self.inputs[index]
        return given.value.node.constant is not None or given.fact.known is not None

    def known(self, index: int, name: str) -> np.ndarray:
        """The value of an input; Inexact if it is not known before the model runs."""
        given = self.inputs[index]
        if given.value.node.constant is not None:
            return constant_value(given.value.node.constant)
        if not self.is_known(index):
            raise Inexact(f"{name} is not known before the model runs")
        return np.asarray(given.fact.known)

    def ints(self, index: int, name: str) -> list[int]:
        """The integers of an input; Inexact if they are not known before the model runs."""
        return [int(each) for each in self.known(index, name).ravel()]

    def element(self, index: int = 0) -> Element:
        """The element type of an input; Inexact if it is not known."""
        found = self.inputs[index].element
        if found is None:
            raise Inexact(f"the element type of input {index} is not known")
        return found

    def unchanged(self) -> Tensor:
        """The first input; a scalar as the result of a layer, as 2021.4 reads no model that gives a scalar back."""
        (x, *_) = self.inputs
        if self.rank():
            return x
        return ONE.logical_or(x, x) if self.element().kind == "boolean" else ONE.maximum(x, x)

    def number(self, value: Any, like: int = 0) -> Tensor:
        """A scalar constant with the element type of an input."""
        return constant(value, self.element(like))


Rewrite = Callable[[Layer], Any]
REWRITES: dict[tuple[str, int], Rewrite] = {}
"""The rewrites by type and opset of the version that is replaced: a function that returns the tensors of the outputs,
or one tensor, made of older operations; Inexact is raised where these do not compute the same."""

REASONS: dict[tuple[str, int], str] = {}
"""Why a layer is not rewritten, where something is to be said."""


def rewrites(type: str, *since: int) -> Callable[[Rewrite], Rewrite]:
    """Decorator: the function replaces these versions of an operation."""

    def register(rewrite: Rewrite) -> Rewrite:
        REWRITES.update({(type, version): rewrite for version in since})
        return rewrite

    return register


RESPELLINGS: dict[str, list[tuple[Release, Rewrite]]] = {}
"""By type: other forms of the layer, each for releases before the one given. The function returns None for a layer that
stays as it is."""


FOLLOWING: set[Rewrite] = set()
"""Functions of RESPELLINGS that write layers of another form once more."""


def respells(until: Release, *types: str, follows: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Decorator: for releases before ``until`` the function writes layers of these types in another form.

    Args:
        until: the first release that needs no other form.
        types: the operations.
        follows: whether layers that other functions have made are written in the form too.
    """

    def register(rewrite: Rewrite) -> Rewrite:
        for type in types:
            RESPELLINGS.setdefault(type, []).append((until, rewrite))
        FOLLOWING.update([rewrite] * follows)
        return rewrite

    return register


class _Operations:
    """The functions of one opset: the newest version of each operation that is not newer."""

    def __init__(self, opset: int) -> None:
        self._opset = opset

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functions(self._opset)[name]


ONE, SEVEN, EIGHT = _Operations(1), _Operations(7), _Operations(8)
FOUR, FIVE = _Operations(4), _Operations(5)
