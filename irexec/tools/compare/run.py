"""The comparison of two models, tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from irexec.api import ModelLike
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.tools.compare.comparing import Comparing
from irexec.tools.compare.comparison import Comparison
from irexec.tools.compare.inputs import Given
from irexec.tools.compare.open_sides import Advance
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.sides import ModelSide, RecordedSide, open_side
from irexec.tools.compare.tries import tried
from irexec.tools.engines.runtimes import require_runtime
from irexec.tools.images.files import Notify
from irexec.tools.run.given_inputs import GivenInputs, given_runs
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.states import read_state, with_state


def compare(
    a: ModelLike,
    b: ModelLike | None = None,
    inputs: Given | Sequence[Given] | None = None,
    options: CompareOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = lambda text: None,
    advance: Advance = lambda part: None,
) -> Comparison:
    """Compare two models, or one model in two runtimes, tensor by tensor.

    Args:
        a: the reference: a model, a path that read_model accepts, or the path of a .npz or of a folder of ``infer
            --dump-layers``.
        b: a model, or a path that read_model accepts; by default the same as ``a``.
        inputs: arrays by the names of inputs of A or else of B; one mapping for each of several runs. Other inputs come
            from ``sources``.
        options: the options of runs and comparison.
        sources: sources of other inputs; by default random ones.
        notify: receives unexpected facts.
        advance: see Advance.

    Raises:
        InputError: the options, inputs or shapes do not fit the models, or both sides are the same.
        UnsupportedError: a runtime is not installed.
        ModelError, NodeError, ConversionError: a model cannot be read, or cannot run at all.
        RunTimeoutError: a run takes longer than the timeout.
    """
    options = options or CompareOptions()
    runs = given_runs(inputs)
    with ExitStack() as stack:
        made = comparing(stack, a, b, GivenInputs(sources, runs, steps=options.runs), options, notify, advance)
        if options.tries > 1 and isinstance(made.a, RecordedSide):
            raise InputError(f"{made.a.label} holds tensors of one run: --tries needs two models")
        found = made.compared()

    def again(number: int) -> Comparison:
        seed = options.seed + number
        others = GivenInputs([InputSource(None, "random")], [] if made.whole else made.inputs.others(seed))
        with ExitStack() as stack:
            return comparing(stack, a, b, others, replace(options, seed=seed)).compared()

    return tried(found, again, options.tries)


def comparing(
    stack: ExitStack,
    a: ModelLike,
    b: ModelLike | None,
    given: GivenInputs,
    options: CompareOptions,
    notify: Notify = lambda text: None,
    advance: Advance = lambda part: None,
) -> Comparing:
    """A comparison with both sides open until the stack is closed; errors are those of ``compare``."""
    if b is None and options.a_runtime == options.b_runtime:
        raise InputError(
            "one model in one runtime has nothing to be compared with: give a second model, or another runtime"
        )
    require_runtime(options.a_runtime)
    require_runtime(options.b_runtime)
    memory, shapes = MemoryLimit(options.max_memory), options.shapes or {}
    one = open_side(stack, a, options.a_weights, options.a_runtime, memory, shapes, given)
    b_weights = options.b_weights or (options.a_weights if b is a else None)
    other = one if b is None else open_side(stack, b, b_weights, options.b_runtime, memory, shapes, given, one)
    if isinstance(other, RecordedSide):
        raise InputError(
            f"{other.label} holds recorded tensors, which can only be A: give it first, and the model after it"
        )
    if options.load_state is not None:
        state = read_state(options.load_state, memory)
        if isinstance(one, ModelSide):
            one = ModelSide(one.label, with_state(one.model, state), one.runtime)
        if b is not None:
            other = ModelSide(other.label, with_state(other.model, state), other.runtime)
    if b is None and isinstance(one, ModelSide):
        other = ModelSide(one.label, one.model, options.b_runtime)
    return Comparing(one, other, given, options, stack, notify, advance)
