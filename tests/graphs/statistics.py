"""Coverage of random graphs: which operations, element types, passes, kernels and kinds of graphs come up, and in how many graphs.

    python -m tests.graphs.statistics --cases 2000 --seed 1
    python -m tests.graphs.statistics --cases 2000 --all

The graphs are those that the target ``graphs`` of the fuzzer runs with the same seed. ``--all`` prints every count.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from irexec.backend.kernel import Kernel
from irexec.compile import plan as planning
from irexec.compile.passes import PASSES
from irexec.compile.plan_report import PlanReport
from irexec.compile.storage import layout as storing
from irexec.dtypes.elements import ELEMENTS
from irexec.errors import IrexecError
from irexec.ir.graph import Node
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import definitions, resolve
from tests.graphs.choices import any_kernels, short_blocks
from tests.graphs.kinds import KINDS, all_nodes
from tests.graphs.making import Made, make

_OF_PLANS = (
    "a chain of element-wise operations", "an operation with a chain", "a layout other than C order", "a kernel chosen by shape",
    "a concatenation in memory of all inputs", "a concatenation in memory of some inputs", "views made for each arena",
    "views made in each run", "an output over an input", "workspace", "a body's plan",
)  # fmt: skip


class Coverage:
    """In how many graphs each name comes up, by topic."""

    def __init__(self) -> None:
        self.graphs = 0
        self.counts: dict[str, Counter[str]] = {topic: Counter() for topic in self.known()}

    @staticmethod
    def known() -> dict[str, list[str]]:
        """The names of each topic; none for a topic whose names are not known beforehand."""
        return {
            "operation versions": [f"{one.type}-{one.since}" for one in definitions()],
            "element types": [element.name for element in ELEMENTS],
            "passes that change the graph": [one.name for one in PASSES],
            "kernel classes": sorted(_concrete(Kernel)),
            "kernel classes of any plan": sorted(_concrete(Kernel)),
            "algorithms": [],
            "kinds of graphs": list(KINDS),
            "kinds of plans": list(_OF_PLANS),
        }

    def add(self, made: Made, seed: int) -> None:
        """Count the graph of a seed."""
        self.graphs += 1
        nodes = list(all_nodes(made.model))
        facts = [value.fact for node in nodes for value in node.outputs]
        self._count("operation versions", map(_version, nodes))
        self._count("element types", (fact.element.name for fact in facts if fact and fact.element))
        self._count("kinds of graphs", (name for name, holds in KINDS.items() if holds(made)))
        with _planned() as (kernels, kinds):
            report = _report(made)
        if report is not None:
            self._count("passes that change the graph", report.passes)
            self._count("algorithms", (step.algorithm for step in report.steps))
            self._count("kernel classes", kernels)
            self._count("kinds of plans", [*kinds, *_kinds(report)])
            with any_kernels(seed), short_blocks(seed), _planned() as (kernels, _):
                _report(made)
            self._count("kernel classes of any plan", kernels)

    def _count(self, topic: str, names: Iterable[str]) -> None:
        self.counts[topic].update(set(names))

    def lines(self, every: bool) -> Iterator[str]:
        """The table: how many names of each topic came up, the rarest, and those that did not."""
        yield f"{self.graphs} graphs"
        for topic, names in self.known().items():
            counts = self.counts[topic]
            of = f" of {len(names)}" if names else ""
            yield f"\n{topic}: {sum(1 for name in counts if not names or name in names)}{of}"
            ordered = sorted(counts.items(), key=lambda item: item[1])
            yield from (f"{count:7}  {name}" for name, count in (ordered if every or not names else ordered[:5]))
            missing = [name for name in names if name not in counts]
            if missing:
                yield f"   none  {', '.join(missing)}"


def _version(node: Node) -> str:
    definition = resolve(node.type, node.version)
    return f"{definition.type}-{definition.since}"


def _concrete(kind: type) -> set[str]:
    found = {name for one in kind.__subclasses__() for name in _concrete(one)}
    return found if getattr(kind, "__abstractmethods__", None) else found | {kind.__name__}


def _report(made: Made) -> PlanReport | None:
    try:
        compiled = CompiledModel(made.model, threads=2)
        return compiled.plan_for({i: array.shape for i, array in enumerate(made.runs[0])})
    except IrexecError:
        return None


def _kinds(report: PlanReport) -> Iterator[str]:
    for step in report.steps:
        if step.layout:
            yield "a layout other than C order"
        if step.algorithm == "by shape":
            yield "a kernel chosen by shape"
        if step.path:
            yield "a body's plan"
        if "+" in step.operation:
            is_chain = step.algorithm.startswith("chain")
            yield "a chain of element-wise operations" if is_chain else "an operation with a chain"


@contextmanager
def _planned() -> Iterator[tuple[set[str], set[str]]]:
    """The classes of the kernels that are selected meanwhile, and the kinds of the plans that are laid out."""
    kernels: set[str] = set()
    kinds: set[str] = set()
    select, lay_out = planning.select_kernel, storing.lay_out

    def selected(*arguments: Any) -> Kernel | None:
        kernel = select(*arguments)
        kernels.update(type(one).__name__ for one in (kernel, getattr(kernel, "_kernel", None)) if one is not None)
        return kernel

    def laid_out(graph: Any, drafts: Sequence[Any], *arguments: Any, **others: Any) -> Any:
        made = lay_out(graph, drafts, *arguments, **others)
        kinds.update(_of_storage(made))
        return made

    with mock.patch.object(planning, "select_kernel", selected), mock.patch.object(planning, "lay_out", laid_out):
        yield kernels, kinds


def _of_storage(storage: Any) -> Iterator[str]:
    for draft, joined in storage.in_position.items():
        if joined:
            yield f"a concatenation in memory of {'all' if len(joined) == draft.operation.own else 'some'} inputs"
    buffers = list(storage.buffers.values())
    found = {
        "views made for each arena": storage.views, "views made in each run": storage.run_views, "workspace": storage.workspaces,
        "an output over an input": len(set(map(id, buffers))) < len(buffers),
    }  # fmt: skip
    yield from (name for name, holds in found.items() if holds)


def main() -> int:
    """Print the table of one seed."""
    parser = argparse.ArgumentParser("python -m tests.graphs.statistics", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="print every count")
    options = parser.parse_args()
    coverage = Coverage()
    for number in range(options.cases):
        seed = random.Random(f"graphs {options.seed} {number}").randrange(1 << 48)
        coverage.add(make(seed), seed)
    print(*coverage.lines(options.all), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
