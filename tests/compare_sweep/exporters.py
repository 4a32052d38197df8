"""ONNX against the IR that another exporter made of the same network: a change in the IR has to be traced to its layer.

A folder holds ``NAME.xml`` and one or more ``NAME.KIND.onnx``. First the unchanged models of a pair are compared: they have
to agree. Then one change of each kind is made, each in a copy of its own.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import irexec
from irexec import IrexecError, Model
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.tools.compare import Comparison, compare
from irexec.tools.run.input_sources import parse_input_source, sample_inputs
from tests.compare_sweep.changes import Change, attribute, axis, epsilon, missing, pad, rounded, swapped, weight
from tests.compare_sweep.truth import Feeds, differ

KINDS: dict[str, Callable[[Model, np.random.Generator], Change | None]] = {
    kind.__name__: kind for kind in (weight, attribute, pad, axis, epsilon, swapped, missing, rounded)
}
_TRIES = 25
"""Random changes of one kind until one shows in a result."""
_COMMUTING = ("Convert", "Reshape", "Transpose", "Squeeze", "Unsqueeze")
"""Layers that exporters put in front of an element-wise layer or behind it: one that is missing may be missing on either side."""
_LARGEST_SET = 5
OUTCOMES = ("alone", "first", "in the set", "missed")
"""The layer alone is named, or first of at most five, or later among at most five; or none of these."""


@dataclass
class Table:
    """Counts of all pairs.

    Attributes:
        pairs: the pairs that were compared unchanged.
        outcomes: the number of changes by their kind and outcome.
        wrong: what was not as it should be, for people.
    """

    pairs: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """A line for each kind with a change, and one for all; nothing without a change."""
        kinds = [kind for kind in KINDS if any(self.outcomes[kind, outcome] for outcome in OUTCOMES)]
        if not kinds:
            return ""
        lines = [f"{'kind':12}" + "".join(f"{outcome:>12}" for outcome in OUTCOMES)]
        for kind in kinds:
            lines.append(f"{kind:12}" + "".join(f"{self.outcomes[kind, outcome]:12}" for outcome in OUTCOMES))
        totals = [sum(self.outcomes[kind, outcome] for kind in kinds) for outcome in OUTCOMES]
        return "\n".join([*lines, f"{'all':12}" + "".join(f"{total:12}" for total in totals)])


def sweep(arguments: argparse.Namespace) -> int:
    """Print what was wrong of each pair, and the table; 1 if a pair does not agree, or a layer was not found."""
    table = Table()
    names = set(arguments.networks.split(",")) if arguments.networks else None
    for onnx, xml in _pairs(Path(arguments.folder)):
        if names is not None and xml.stem not in names:
            continue
        start, known = time.monotonic(), len(table.wrong)
        _pair(onnx, xml, range(arguments.seed, arguments.seed + arguments.trials), table)
        print(f"{onnx.stem:32} {time.monotonic() - start:6.0f} s, {len(table.wrong) - known} wrong", flush=True)
        for text in table.wrong[known:]:
            print(f"    {text}", flush=True)
        # A run that is cut off keeps its figures.
        print(f"{counted(table.pairs, 'pair')} so far\n{table}", flush=True)
    return 1 if table.wrong else 0


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    for xml in sorted(folder.glob("*.xml")):
        for onnx in sorted(folder.glob(f"{xml.stem}.*.onnx")):
            yield onnx, xml


def _pair(onnx: Path, xml: Path, seeds: range, table: Table) -> None:
    model = irexec.read_model(xml)
    inputs = sample_inputs([parse_input_source("random")], model.inputs, 1, lambda text: None)
    a = irexec.read_model(onnx)
    found = compare(a, model, inputs)
    table.pairs += 1
    if not found.agrees:
        table.wrong.append(f"unchanged: found {found.first.row.b if found.first else 'other results'}")
    base = list(irexec.compile_model(model)(inputs).values())
    for seed in seeds:
        for kind in KINDS:
            rng = np.random.default_rng([seed, *kind.encode(), *onnx.name.encode()])
            change = _visible(KINDS[kind], model, inputs, base, rng)
            if change is not None:
                _trial(kind, a, change, inputs, table)


def _trial(kind: str, a: Model, change: Change, inputs: Feeds, table: Table) -> None:
    right = named_by(list(change.model.walk()), change)
    named = _names(compare(a, change.model, inputs))
    outcome = outcome_of(named, right)
    table.outcomes[kind, outcome] += 1
    if outcome == "missed":
        table.wrong.append(f"{change.text}: expected {' or '.join(sorted(right)[:4])}, found {named[:6] or 'nothing'}")


def outcome_of(named: list[str], right: set[str]) -> str:
    """One of OUTCOMES."""
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
