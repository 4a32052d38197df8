"""Random graphs against their bounds: each layer from the inputs that it had, and the whole graph as one region.

    python -m tests.bounds.graphs [--seed N] [--cases 300] [--runtime reference|irexec]

Prints each layer whose f32 results are outside. Exit 1 for one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np

from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Bound, Interval, graph_bounds
from irexec.errors import IrexecError
from irexec.ir.graph import Node, Value
from irexec.ir.order import topological
from irexec.tools.engines.runtimes import open_runtime
from tests.graphs.making import make


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--runtime", default="reference", choices=("reference", "irexec"))
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    unbounded: Counter[str] = Counter()
    for seed in range(args.seed * 1_000_000, args.seed * 1_000_000 + args.cases):
        _graph(seed, args.runtime, counts, unbounded)
    print(dict(counts))
    print("no bound:", ", ".join(f"{name} {count}" for name, count in unbounded.most_common(60)))
    return int(any("outside" in key for key in counts))


def _graph(seed: int, runtime: str, counts: Counter[str], unbounded: Counter[str]) -> None:
    made = make(seed)
    nodes = [node for node in topological(made.model)[0] if node.type not in ("Parameter", "Result")]
    values = [value for node in nodes for value in node.outputs]
    try:
        facts = infer_shapes(made.model).facts
        with open_runtime(runtime, made.model, precision="as-written") as opened:
            feeds = {port.name: array for port, array in zip(made.model.inputs, made.runs[0], strict=True)}
            arrays = dict(zip(values, opened.run(feeds, values), strict=True))
    except IrexecError:
        counts["refused"] += 1
        return
    given = dict(arrays)
    given |= {node.outputs[0]: array for node, array in zip(made.model.parameters, made.runs[0], strict=True)}
    for node in nodes:
        sources = {value: given[value] for value in node.inputs if value is not None}
        for value, bound in graph_bounds([node], sources, facts, ARITHMETICS["f32"]).items():
            _count("layer", seed, node, value, arrays, bound, counts)
            if not isinstance(bound, Interval):
                unbounded[f"{node.type} ({bound.reason[:40]})"] += 1
    start = {node.outputs[0]: given[node.outputs[0]] for node in made.model.parameters}
    for value, bound in graph_bounds(nodes, start, facts, ARITHMETICS["f32"]).items():
        _count("graph", seed, value.node, value, arrays, bound, counts)


def _count(
    what: str, seed: int, node: Node, value: Value, arrays: dict[Value, np.ndarray], bound: Bound, counts: Counter[str]
) -> None:
    if node.type == "Constant":
        return
    actual = arrays[value]
    if not isinstance(bound, Interval):
        counts[f"{what} no bound"] += 1
    elif bound.exact.shape != actual.shape:
        counts[f"{what} of another shape"] += 1
    elif bound.outside(actual).any():
        counts[f"{what} outside"] += 1
        where = tuple(np.argwhere(bound.outside(actual))[0])
        print(f"seed {seed} {what} {node.type}-{node.version} {node.name}: {actual[where]!r}, exact "
              f"{bound.exact[where]!r} [{bound.low[where]!r}, {bound.high[where]!r}] {node.attributes}")  # fmt: skip
    else:
        counts[f"{what} inside"] += 1


if __name__ == "__main__":
    sys.exit(main())
