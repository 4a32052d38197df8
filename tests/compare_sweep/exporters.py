"""ONNX against the IR that another exporter made of the same network: a change in the IR has to be traced to its layer.

A folder holds ``NAME.xml`` and one or more ``NAME.KIND.onnx``. First the unchanged models of a pair are compared: they have
to agree. Then one change of each kind is made, each in a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import irexec
from irexec import IrexecError, Model
from irexec.ir.graph import Node
from irexec.tools.compare import Comparison, compare
from irexec.tools.run.input_sources import parse_input_source, sample_inputs
from tests.compare_sweep.changes import Change, attribute, axis, epsilon, missing, pad, rounded, swapped, weight
from tests.compare_sweep.truth import Feeds, differ
from tests.sweep.kind import Case, Kind, Outcome

KINDS: dict[str, Callable[[Model, np.random.Generator], Change | None]] = {
    kind.__name__: kind for kind in (weight, attribute, pad, axis, epsilon, swapped, missing, rounded)
}
_TRIES = 25
"""Random changes of one kind until one shows in a result."""
_COMMUTING = ("Convert", "Reshape", "Transpose", "Squeeze", "Unsqueeze")
"""Layers that exporters put in front of an element-wise layer or behind it: one that is missing may be missing on either side."""
_LARGEST_SET = 5


class Sweep(Kind):
    """The pairs of a folder."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--folder", type=Path, required=True, help="where the pairs of .onnx and .xml are")

    def names(self) -> list[str]:
        return [onnx.stem for onnx, _ in _pairs(self.options.folder)]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The unchanged pair, and a change of each kind for each number."""
        onnx, xml = next(pair for pair in _pairs(self.options.folder) if pair[0].stem == name)
        model = irexec.read_model(xml)
        inputs = sample_inputs([parse_input_source("random")], model.inputs, 1, lambda text: None)
        a = irexec.read_model(onnx)
        base = list(irexec.compile_model(model)(inputs).values())

        def case(number: int) -> Iterator[Outcome]:
            if number == self.options.seed:
                found = compare(a, model, inputs)
                text = "" if found.agrees else f"found {found.first.row.b if found.first else 'other results'}"
                yield Outcome("unchanged", text, fails=not found.agrees)
            for kind in KINDS:
                rng = np.random.default_rng([number, *kind.encode(), *onnx.name.encode()])
                change = _visible(KINDS[kind], model, inputs, base, rng)
                if change is not None:
                    yield _trial(kind, a, change, inputs)

        yield case


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    for xml in sorted(folder.glob("*.xml")):
        for onnx in sorted(folder.glob(f"{xml.stem}.*.onnx")):
            yield onnx, xml


def _trial(kind: str, a: Model, change: Change, inputs: Feeds) -> Outcome:
    right = named_by(list(change.model.walk()), change)
    named = _names(compare(a, change.model, inputs))
    outcome = outcome_of(named, right)
    text = f"{change.text}: expected {' or '.join(sorted(right)[:4])}, found {named[:6] or 'nothing'}"
    return Outcome(f"{kind}: {outcome}", text, fails=outcome == "missed")


def outcome_of(named: list[str], right: set[str]) -> str:
    """The layer is named alone, or first of at most five, or later among at most five; or it is missed."""
    if not right & set(named[:_LARGEST_SET]) or len(named) > _LARGEST_SET:
        return "missed"
    return "alone" if len(named) == 1 else "first" if named[0] in right else "in the set"


def _names(found: Comparison) -> list[str]:
    """The layers that are named, the first divergence first."""
    return [] if found.first is None else [layer.name for layer in found.first.likely]


def named_by(nodes: list[Node], change: Change) -> set[str]:
    """The names of the changed layer, and of those that read a changed constant, through others that are computed from constants."""
    changed = nodes[change.layer]
    right, waiting = {changed.name}, [changed] if changed.type == "Constant" or change.is_missing else []
    while waiting:
        current = waiting.pop()
        for node in nodes:
            if any(value is not None and value.node is current for value in node.inputs):
                right.add(node.name)
                others = (value.node.type for value in node.inputs if value is not None and value.node is not current)
                if node.type in _COMMUTING if change.is_missing else all(other == "Constant" for other in others):
                    waiting.append(node)
    return right


def _visible(
    kind: Callable[[Model, np.random.Generator], Change | None],
    model: Model,
    inputs: Feeds,
    base: list[np.ndarray],
    rng: np.random.Generator,
) -> Change | None:
    """A change that some result shows; None if none of several does."""
    for _ in range(_TRIES):
        try:
            change = kind(model, rng)
            if change is None:
                continue
            results = irexec.compile_model(change.model)(inputs).values()
        except (IrexecError, ArithmeticError):
            continue
        if any(differ(one, other) for one, other in zip(base, results, strict=True)):
            return change
    return None
