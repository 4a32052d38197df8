"""Checks of the inputs of a run, which were not known when it was planned."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple, without_elements
from irexec.compile.errors import check_as_inferred
from irexec.compile.memory_limit import check_addresses
from irexec.compile.steps import Allocation
from irexec.dtypes.elements import Element, element_of
from irexec.ir.facts import EveryOutput, Fact
from irexec.ir.process import new_lock
from irexec.schema.opdef import OpDef, check_inputs

Known = Element | Fact | None
"""An input before the run: its element type, or all that is known of a constant."""

_KEPT = 16
"""Results that a check keeps, of as many different shapes and values: the newest ones."""

_READ = 64
"""Elements up to which the value of an input is part of what results are kept by."""


class _Missing:
    """Marks that no result is kept."""


_MISSING = _Missing()


class InferredCheck:
    """A check by the shape rule of the operation.

    What the rule gives for inputs of the same types and shapes is kept, together with the values that it read.

    Args:
        planned: the facts of the outputs before the run.
        known: of each input, what is known before the run.
    """

    def __init__(
        self, definition: OpDef, attributes: dict[str, Any], planned: Sequence[Fact], known: Sequence[Known]
    ) -> None:
        self._definition, self._attributes, self._planned, self._known = definition, attributes, planned, known
        self._read: tuple[int, ...] = ()
        self._kept: dict[Hashable, Allocation | None] = {}
        self._lock = new_lock()

    def __call__(self, arrays: Sequence[np.ndarray | None]) -> Allocation | None:
        """The outputs that are to be allocated; None where they may be views of the inputs, or are not known.

        Raises:
            OpError: the inputs are not what the operation takes or was planned for, or an output is too large.
        """
        key = self._key(arrays)
        found = self._kept.get(key, _MISSING)
        if isinstance(found, _Missing):
            read: set[int] = set()
            inputs = [_fact(array, self._known[i], i, read) for i, array in enumerate(arrays)]
            found = self._inferred(inputs)
            if not read.issubset(self._read):
                # Make the values of further inputs part of the keys: all those that any result was inferred from.
                with self._lock:
                    self._read = (*sorted(read.union(self._read)),)
                    self._kept.clear()
                key = self._key(arrays)
            self._keep(key, found)
        return found

    def _keep(self, key: Hashable, found: Allocation | None) -> None:
        with self._lock:
            if key is not None:
                self._kept[key] = found
                if len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]

    def _key(self, arrays: Sequence[np.ndarray | None]) -> Hashable:
        """Types and shapes of the inputs, and the values that the rule reads; None if one of these is large."""
        read = self._read
        values = [arrays[i] for i in read]
        if any(array is not None and (array.size > _READ or array.dtype.hasobject) for array in values):
            return None
        return (
            read,
            *[None if array is None else array.tobytes() for array in values],
            *[None if array is None else (array.shape, array.dtype) for array in arrays],
        )

    def _inferred(self, inputs: Sequence[Fact]) -> Allocation | None:
        definition = self._definition
        facts = as_tuple(definition.infer(inputs, self._attributes))
        if any(isinstance(fact, EveryOutput) for fact in facts):
            return None
        for fact, before in zip(facts, self._planned, strict=False):
            check_as_inferred(fact, before)
        # The outputs of these facts, whose values are left out.
        kept = tuple(Fact(fact.element, fact.shape) for fact in facts)
        size = sum(fact.known_nbytes for fact in kept)
        found = Allocation(kept, size, size == 0 and without_elements(kept) is not None)
        if definition.view and not found.is_empty and found.size <= sum(fact.known_nbytes for fact in inputs):
            return None
        check_addresses(found.facts)
        return found


class DeclaredCheck:
    """A check of declared types and ranks: nothing else can be checked without inferring bodies."""

    def __init__(self, definition: OpDef, known: Sequence[Known]) -> None:
        self._definition, self._known = definition, known

    def __call__(self, arrays: Sequence[np.ndarray | None]) -> None:
        """Raise OpError unless the inputs of a run have the declared types and ranks."""
        read: set[int] = set()
        facts = [_fact(array, self._known[i], i, read) for i, array in enumerate(arrays)]
        check_inputs(self._definition.inputs, facts)


class _Watched(Fact):
    """The fact of an array, which notes when its value is read."""

    __slots__ = ("_array", "_index", "_read")

    _array: np.ndarray
    _index: int
    _read: set[int]

    def __init__(self, element: Element, array: np.ndarray, index: int, read: set[int]) -> None:
        # A fact is frozen.
        assign = object.__setattr__
        assign(self, "element", element)
        assign(self, "shape", array.shape)
        assign(self, "_array", array)
        assign(self, "_index", index)
        assign(self, "_read", read)

    @property
    def value(self) -> np.ndarray:
        """The array."""
        self._read.add(self._index)
        return self._array


def _fact(array: np.ndarray | None, known: Known, index: int, read: set[int]) -> Fact:
    """The fact of an input of a run; ``read`` gets its index when its value is read."""
    if array is None:
        return known if isinstance(known, Fact) else Fact(known, None)
    element = known.element if isinstance(known, Fact) else known
    return _Watched(element or element_of(array.dtype), array, index, read)
