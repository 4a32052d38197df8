"""Runs in which every tensor can be inspected when it is computed, with its inputs, also in bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irexec.backend.threads import one_blas_thread
from irexec.compile.plan import Compilation, plan
from irexec.ir.graph import Value
from irexec.reference.limits import limited
from irexec.runtime.arenas import Arenas
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.execute import RunLimits, Watcher, run
from irexec.runtime.inputs import Inputs, bind_inputs
from irexec.runtime.observation import RunProgress, progress_observer
from irexec.runtime.variables import State


def watched_values(
    compiled: CompiledModel,
    inputs: Inputs,
    values: Sequence[Value],
    watcher: Watcher,
    *,
    timeout: float | None = None,
    progress: RunProgress | None = None,
) -> list[np.ndarray]:
    """Run with every layer as a step of its own, and return the arrays of values of the graph.

    No layers are fused and nothing is folded, but fast kernels run unless the model was compiled with
    ``optimize=False``. Tensors are released when they are no longer needed, as in any run. The state of variables is
    that before the first run, and is not kept.

    Args:
        compiled: the model.
        inputs, timeout: as for ``CompiledModel.run``.
        values: of the graph itself.
        progress: as for ``CompiledModel.values``.
        watcher: called after every layer; ``step.node`` is one of ``compiled.model``. An exception ends the run.

    Raises:
        InputError: a value is not of this graph, or the inputs are wrong.
        NodeError: a kernel refuses its inputs.
        RunTimeoutError: the run takes longer than ``timeout``.
    """
    arrays = bind_inputs(compiled.inputs, inputs)
    targets = tuple(map(compiled.program.own, values))
    memory = compiled.program.memory
    kernels = False if compiled.program.optimize is False else ()
    declared = compiled.program.compilation.declared
    options = replace(compiled.program.compilation.options, holding="packed", integers=False)
    group = compiled.program.compilation.dynamic_quantization
    compilation = Compilation(
        memory, optimize=kernels, options=options, dynamic_quantization=group, declared=declared, observed=True
    )
    inference = compiled.program.infer(tuple(array.shape for array in arrays))
    with one_blas_thread(), limited(memory):
        planned = plan(compiled.model, inference, targets, compilation)
    with one_blas_thread():
        observer = None if progress is None else progress_observer(planned, progress)
        return run(
            planned,
            arrays,
            State(compiled.program.variables),
            Arenas(memory),
            observer,
            RunLimits(memory, timeout),
            watcher,
        )
