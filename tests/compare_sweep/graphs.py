"""Random graphs beside another form of themselves, and beside a copy with one planted change.

``renamed`` has other names, ids and order, ``folded`` and ``optimized`` are written by the editor, ``onnx`` goes to ONNX and
back: all must agree. In ``planted`` an attribute or a constant is another, so that results differ: the layer that is named
first, or one of a small set, has to be the changed one or the first that shows it, and the models never agree.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import converters
from irexec import IrexecError, Model
from irexec.api import to_onnx
from irexec.dtypes.elements import BF16, F16
from irexec.ir.graph import Value
from irexec.tools.compare import Comparison, compare
from tests.compare_sweep.changes import attribute, rename, weight
from tests.compare_sweep.ir import outcome, place_of
from tests.compare_sweep.truth import Feeds, differ, first_layers, record
from tests.graphs.making import make
from tests.sweep.kind import Case, Kind, Outcome

_STEPS = (1, 8)
_TRIES = 8
_SET = 5
"""Largest number of layers of which one is named."""
_FORMS = {"renamed": "", "folded": "fold", "optimized": "optimize", "onnx": ""}
"""The step of the editor that makes each form; "" for a form that it does not make."""


def _edited(model: Model, step: str) -> Model:
    with model.edit() as editor:
        getattr(editor, step)()
    return model


def _through_onnx(model: Model, feeds: Feeds) -> Comparison | None:
    proto = to_onnx(model)
    if len(proto.graph.input) != len(feeds):
        return None
    back = converters.convert(proto.SerializeToString(), warn=lambda text: None)
    return compare(model, back, dict(feeds)) if [one.name for one in back.inputs] == list(feeds) else None


def _agreeing(name: str, number: int) -> Outcome:
    model, runs = _made(number)
    try:
        if name == "onnx":
            found = _through_onnx(model, runs[0])
        else:
            other = copy.copy(model)
            other = rename(other, np.random.default_rng(number)) if name == "renamed" else _edited(other, _FORMS[name])
            found = compare(model, other, runs)
    except IrexecError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    if found is None:
        return Outcome("has state")
    if found.agrees:
        return Outcome("agrees")
    text = "nothing" if found.first is None else f"{found.first.row.b.name} ({found.first.row.b.type})"
    return Outcome("differs", f"first {text}", fails=True)


def _made(number: int) -> tuple[Model, list[Feeds]]:
    """The graph of a number, and the inputs of its first run: others may be of shapes that it does not take."""
    made = make(number, _STEPS)
    ports = made.model.inputs
    return made.model, [{port.name: array for port, array in zip(ports, made.runs[0], strict=True)}]


def _planted(number: int) -> Outcome:
    model, runs = _made(number)
    rng = np.random.default_rng(number)
    try:
        base = record(model, runs)
    except (IrexecError, ArithmeticError):
        return Outcome("not run")
    results = [node.inputs[0] for node in model.results]
    nodes = list(model.walk())
    places = {(nodes.index(value.node), value.index) for value in results if value is not None and _is_fine(value)}
    for _ in range(_TRIES):
        try:
            change = attribute(model, rng) if rng.random() < 0.5 else weight(model, rng)
            if change is None:
                continue
            changed = record(change.model, runs)
        except (IrexecError, ArithmeticError, ValueError):
            continue
        pairs = [(one[place], other[place]) for one, other in zip(base.outer, changed.outer, strict=True)
                 for place in places & one.keys() & other.keys()]  # fmt: skip
        if not any(differ(*pair) for pair in pairs):
            continue
        right = first_layers(model, base, changed)
        walked = list(change.model.walk())
        if rng.random() < 0.5:
            rename(change.model, rng)
        found = compare(model, change.model, runs)
        if found.agrees:
            return Outcome("agrees with a changed model", change.text, fails=True)
        if found.first is None:
            return Outcome("not explained", change.text)
        # What is named may be in front of the first tensor that differs, such as where only its shape does.
        named = [place_of(layer, change.model, walked) for layer in found.first.likely]
        if named[0] not in right and not right.isdisjoint(named[:_SET]):
            return Outcome("in the set", change.text)
        return outcome(change, right, named[0], walked)
    return Outcome("no change shows")


def outcome_of(name: str, number: int) -> Outcome:
    """What comes of a graph in one of the forms, or with a planted change."""
    return _planted(number) if name == "planted" else _agreeing(name, number)


def _is_fine(value: Value) -> bool:
    """Whether the tolerance of a tensor is that of truth.differ: 16 bits have a coarser one."""
    return value.fact is not None and value.fact.element not in (F16, BF16)


class Sweep(Kind):
    """Random graphs of tests.graphs."""

    def names(self) -> list[str]:
        return [*_FORMS, "planted"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """One graph for each number."""
        yield lambda number: [outcome_of(name, number)]
