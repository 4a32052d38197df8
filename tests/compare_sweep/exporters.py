"""ONNX against the IR that another exporter made of the same network: a change in the IR has to be traced to its layer.

A folder holds ``NAME.xml`` and one or more ``NAME.KIND.onnx``. First each pair is compared as it is, which has to agree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import irexec
from irexec import IrexecError, Model
from irexec.ir.graph import Node
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.run.input_sources import parse_input_source, sample_inputs
from tests.compare_sweep.changes import Change, attribute, missing, rounded, swapped, weight
from tests.compare_sweep.ir import Count
from tests.compare_sweep.report import print_line
from tests.compare_sweep.truth import Feeds, differ

_KINDS = (weight, weight, attribute, attribute, attribute, swapped, missing, rounded)
_DRAWS = 200
_LARGEST_SET = 5


def sweep(arguments: argparse.Namespace) -> int:
    """Print a line for each pair; 1 if a pair does not agree, or a layer was not found."""
    total = Count()
    names = set(arguments.networks.split(",")) if arguments.networks else None
    pairs = [
        pair for pair in _pairs(Path(arguments.folder)) if names is None or pair[0].name.partition(".")[0] in names
    ]
    trials = arguments.trials
    for onnx, xml in pairs:
        start, count = time.monotonic(), Count()
        model = irexec.read_model(xml)
        inputs = _inputs(model)
        found = compare(onnx, model, inputs)
        if not found.agrees:
            count.wrong.append(f"nothing was changed, found {found.first.row.b if found.first else 'other results'}")
        for seed in range(arguments.seed, arguments.seed + trials):
            _trial(onnx, model, inputs, np.random.default_rng([seed, *onnx.name.encode()]), count)
        print_line(onnx.stem, "", count, time.monotonic() - start)
        total.right += count.right
        total.itself += count.itself
        total.wrong += count.wrong
    print(f"{len(pairs)} pairs, {total.right} right ({total.itself} the layer itself), {len(total.wrong)} wrong")
    return 1 if total.wrong else 0


def _pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    for xml in sorted(folder.glob("*.xml")):
        for onnx in sorted(folder.glob(f"{xml.stem}.*.onnx")):
            yield onnx, xml


def _inputs(model: Model) -> Feeds:
    return sample_inputs([parse_input_source("random")], model.inputs, 1, lambda text: None)


def _trial(onnx: Path, model: Model, inputs: Feeds, rng: np.random.Generator, count: Count) -> None:
    change = _drawn(model, inputs, rng, count)
    if change is None:
        return
    nodes = list(change.model.walk())
    right = _named_by(nodes, change)
    found = compare(onnx, change.model, inputs, CompareOptions())
    named = _names(found)
    if named and named[0] in right:
        count.right += 1
        count.itself += 1
    elif right & set(named[:_LARGEST_SET]) and len(named) <= _LARGEST_SET:
        count.right += 1
        count.masked += 1
    else:
        count.wrong.append(
            f"seed: {change.text}: expected {' or '.join(sorted(right)[:4])}, found {named[:6] or 'nothing'}"
        )


def _names(found: Comparison) -> list[str]:
    """The layers that are named, the first divergence first."""
    if found.first is None:
        return []
    return [layer.name for layer in found.first.likely]


def _named_by(nodes: list[Node], change: Change) -> set[str]:
    """The names of the changed layer, and of those that read a changed constant, through others that are computed from constants."""
    changed = nodes[change.layer]
    right, waiting = {changed.name}, [changed] if changed.type == "Constant" or change.is_missing else []
    while waiting:
        current = waiting.pop()
        for node in nodes:
            if any(value is not None and value.node is current for value in node.inputs):
                right.add(node.name)
                others = (value.node.type for value in node.inputs if value is not None and value.node is not current)
                if not change.is_missing and all(other == "Constant" for other in others):
                    waiting.append(node)
    return right


def _drawn(model: Model, inputs: Feeds, rng: np.random.Generator, count: Count) -> Change | None:
    """A change that some result shows."""
    base = irexec.compile_model(model)(inputs)
    for _ in range(_DRAWS):
        try:
            change = _KINDS[int(rng.integers(len(_KINDS)))](model, rng)
            if change is None:
                continue
            results = irexec.compile_model(change.model)(inputs)
        except (IrexecError, ArithmeticError):
            count.unseen += 1
            continue
        if any(differ(one, other) for one, other in zip(base.values(), results.values(), strict=True)):
            return change
        count.unseen += 1
    return None
