"""The passes in the order in which they run; each is a file of this package: a pattern, a check, a rewrite.

Two phases, each run once from top to bottom:

- SIMPLIFY leaves fewer operations with the same meaning: constants are folded, no-ops removed, primitives replaced by
  the operations that they spell out.
- ARRANGE brings operations into the form in which fast kernels compute them: transposes out of the way, scales in
  weights, element-wise operations in chains, an order of axes for each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from irexec.backend.recording import CHECK_PASSES, is_on
from irexec.compile.graph import CompileGraph, problems
from irexec.compile.passes.choose_layouts import choose_layouts
from irexec.compile.passes.compute_in_integers import attend_in_integers, compute_in_integers
from irexec.compile.passes.fold_constants import fold_constants
from irexec.compile.passes.fold_scale_and_shift import fold_scale_and_shift
from irexec.compile.passes.fuse_caches import fuse_caches
from irexec.compile.passes.fuse_elementwise import fuse_elementwise
from irexec.compile.passes.move_transposes import merge_transposes, sink_transposes
from irexec.compile.passes.narrow_integer_sums import narrow_integer_sums
from irexec.compile.passes.quantise_activations import quantise_activations
from irexec.compile.passes.recognise_compressed_weights import recognise_compressed_weights
from irexec.compile.passes.recognise_primitives import (
    recognise_activations,
    recognise_attention,
    recognise_normalizations,
)
from irexec.compile.passes.recognise_quantised_values import recognise_quantised_values
from irexec.compile.passes.recognise_sequences import recognise_sequences
from irexec.compile.passes.remove_redundancy import merge_duplicates, remove_no_ops
from irexec.compile.rewriting import Rewriting, bodies

Rewrite = Callable[[CompileGraph, Rewriting], None]


@dataclass(frozen=True)
class Pass:
    """One pass.

    Attributes:
        name: as reports and ``optimize`` spell it.
        rewrite: rewrites a graph.
        after, before: names of passes that must run before, respectively after this one.
    """

    name: str
    rewrite: Rewrite
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


QUANTISE = Pass("quantise activations", quantise_activations)
"""The pass that changes results, if the caller asks for it; it runs with any others, and without them."""

SIMPLIFY = (
    Pass("narrow integer sums", narrow_integer_sums, before=("recognise quantised values",)),
    Pass(
        "recognise quantised values",
        recognise_quantised_values,
        before=("recognise compressed weights", "compute in integers", "fold constants"),
    ),
    Pass("recognise compressed weights", recognise_compressed_weights, before=("fold constants",)),
    # Folding computes the weights in floating point.
    Pass(
        "compute in integers", compute_in_integers, after=("recognise compressed weights",), before=("fold constants",)
    ),
    Pass("fold constants", fold_constants),
    Pass("remove no-ops", remove_no_ops, after=("fold constants",)),
    Pass("merge duplicates", merge_duplicates, after=("remove no-ops",)),
    Pass("recognise sequences", recognise_sequences, after=("fold constants",)),
    Pass("recognise activations", recognise_activations, after=("fold constants", "merge duplicates")),
    Pass("recognise normalizations", recognise_normalizations, after=("fold constants", "merge duplicates")),
    # The Softmax of attention may be written in primitives itself.
    Pass("recognise attention", recognise_attention, after=("recognise normalizations",)),
    Pass("attend in integers", attend_in_integers, after=("compute in integers", "recognise attention")),
    Pass("fuse caches", fuse_caches, after=("recognise attention",)),
)

ARRANGE = (
    # Attention is recognised by its Transposes too.
    Pass("merge transposes", merge_transposes, after=("recognise attention",)),
    Pass("sink transposes", sink_transposes, after=("merge transposes",)),
    # A Transpose between a product and its scale hides the scale.
    Pass("fold scale and shift", fold_scale_and_shift, after=("sink transposes",)),
    # A chain hides the operations in it from every pattern.
    Pass(
        "fuse element-wise chains",
        fuse_elementwise,
        after=("recognise activations", "recognise normalizations", "sink transposes", "fold scale and shift"),
    ),
    Pass("choose layouts", choose_layouts, after=("fuse element-wise chains",)),
)

PASSES = (QUANTISE, *SIMPLIFY, *ARRANGE)


def check_order(passes: Sequence[Pass]) -> None:
    """Raise ValueError unless every pass stands where its ``after`` and ``before`` say."""
    position = {one.name: i for i, one in enumerate(passes)}
    for one in passes:
        pairs = [*((name, one.name) for name in one.after), *((one.name, name) for name in one.before)]
        for first, second in pairs:
            if first not in position or second not in position:
                raise ValueError(f"pass {one.name!r} names {first!r} and {second!r}, one of which does not exist")
            if position[first] >= position[second]:
                raise ValueError(f"pass {first!r} must run before pass {second!r}")


check_order(PASSES)


def optimize(graph: CompileGraph, rewriting: Rewriting, names: Collection[str] | None = None) -> None:
    """Run the passes over the graph, and over the graphs of its bodies first.

    An exception of a pass names it in a note. With the environment variable IREXEC_CHECK_PASSES the graph is checked
    after each pass.

    Args:
        names: the passes to run besides QUANTISE; None for all.

    Raises:
        AssertionError: IREXEC_CHECK_PASSES is set, and a pass left a graph that breaks an invariant.
    """
    for body in bodies(graph):
        optimize(body.graph, rewriting, names)
    checked = is_on(CHECK_PASSES)
    for one in PASSES:
        if names is None or one is QUANTISE or one.name in names:
            _run(one, graph, rewriting)
            if checked and (found := problems(graph)):
                raise AssertionError(f"pass {one.name!r} leaves a graph in which {'; '.join(found)}")


def _run(one: Pass, graph: CompileGraph, rewriting: Rewriting) -> None:
    rewriting.name = one.name
    try:
        one.rewrite(graph, rewriting)
        graph.remove_unused()
    except Exception as error:
        error.add_note(f"in pass {one.name!r}")
        raise
