"""The passes in the order in which they run; each is a file of this package: a pattern, a check, a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from irexec.compile.graph import Graph
from irexec.compile.passes.choose_layouts import choose_layouts
from irexec.compile.passes.fold_constants import fold_constants
from irexec.compile.passes.fold_scale_and_shift import fold_scale_and_shift
from irexec.compile.passes.fuse_elementwise import fuse_elementwise
from irexec.compile.passes.merge_duplicates import merge_duplicates
from irexec.compile.passes.merge_transposes import merge_transposes
from irexec.compile.passes.recognise_activations import recognise_activations
from irexec.compile.passes.recognise_attention import recognise_attention
from irexec.compile.passes.recognise_compressed_weights import recognise_compressed_weights
from irexec.compile.passes.recognise_normalizations import recognise_normalizations
from irexec.compile.passes.recognise_sequences import recognise_sequences
from irexec.compile.passes.remove_no_ops import remove_no_ops
from irexec.compile.passes.sink_transposes import sink_transposes
from irexec.compile.rewriting import Rewriting, bodies

Rewrite = Callable[[Graph, Rewriting], None]


@dataclass(frozen=True)
class Pass:
    """One pass: its name, and the function that rewrites a graph."""

    name: str
    rewrite: Rewrite


PASSES = (
    Pass("recognise compressed weights", recognise_compressed_weights),
    Pass("fold constants", fold_constants),
    Pass("remove no-ops", remove_no_ops),
    Pass("merge duplicates", merge_duplicates),
    Pass("recognise sequences", recognise_sequences),
    Pass("recognise activations", recognise_activations),
    Pass("recognise normalizations", recognise_normalizations),
    Pass("recognise attention", recognise_attention),
    Pass("merge transposes", merge_transposes),
    Pass("sink transposes", sink_transposes),
    Pass("fold scale and shift", fold_scale_and_shift),
    Pass("fuse element-wise chains", fuse_elementwise),
    Pass("choose layouts", choose_layouts),
)


checks: list[Rewrite] = []
"""Called after each pass with what it left: the tests put the checker here."""


def optimize(graph: Graph, rewriting: Rewriting, names: Collection[str] | None = None) -> None:
    """Run the passes over the graph, and over the graphs of its bodies first.

    Args:
        names: the passes to run; None for all.
    """
    for body in bodies(graph):
        optimize(body.graph, rewriting, names)
    for one in PASSES:
        if names is None or one.name in names:
            rewriting.name = one.name
            one.rewrite(graph, rewriting)
            graph.remove_unused()
            for check in checks:
                check(graph, rewriting)
