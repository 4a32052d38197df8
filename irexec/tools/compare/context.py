"""The comparison as its parts see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from irexec.analysis.model import Model
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.tools.compare.comparison import Uncompared
from irexec.tools.compare.inputs import Inputs
from irexec.tools.compare.isolate import Sources
from irexec.tools.compare.observe import Observed
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.pairs import Pairs, TensorPair
from irexec.tools.compare.rows import Rows
from irexec.tools.compare.sides import AnySide, ModelSide
from irexec.tools.compare.tolerances import Tolerances
from irexec.tools.engines.runtimes import Runtime

Facts = Mapping[Value, Fact]


class Context(Protocol):
    """What is compared, and how it is run; see ``Comparing``.

    Attributes:
        a, b: the sides.
        run_a, run_b: the runtimes that run them; A has none if it is recorded.
        pairs: which tensor of A is which of B.
        options, inputs, tolerances: as for the comparison.
        runs: how many.
    """

    a: AnySide
    b: ModelSide
    run_a: Runtime | None
    run_b: Runtime
    pairs: Pairs
    options: CompareOptions
    inputs: Inputs
    tolerances: Tolerances
    runs: int

    @property
    def isolates(self) -> bool: ...

    @property
    def seeded(self) -> bool: ...

    @property
    def unknown_constants(self) -> Mapping[Node, tuple[Node, ...]]: ...

    def opened(self, name: str, model: Model) -> Runtime: ...

    def sources(self) -> Sources: ...

    def observed_a(self, sources: Sequence[Value | str]) -> Observed: ...

    def batches(self, tensors: Sequence[TensorPair], facts: Facts) -> Iterator[list[TensorPair]]: ...

    def add(self, batch: Sequence[TensorPair], rows: Rows, uncompared: list[Uncompared]) -> None: ...
