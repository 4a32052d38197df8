"""From an operation of the compile graph to the kernel that computes it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.elementwise_chain import chain_candidates, run_chain, workspace_of
from irexec.backend.kernel import Candidate, Kernel, KernelContext, KernelOptions, Task
from irexec.backend.registry import offers
from irexec.compile.errors import node_error
from irexec.compile.graph import Operation
from irexec.dtypes.elements import F16
from irexec.errors import OpError
from irexec.schema.opdef import OpDef

# Estimated nanoseconds of a chain after a kernel that does not run it, for each element and instruction.
CHAIN_COST = 0.5
# Estimated nanoseconds of a step that is not native where its neighbours are.
PYTHON_STEP = 8000.0


def is_static(operation: Operation) -> bool:
    """Whether types and shapes of all inputs and outputs are known."""
    return all(
        value.fact.is_static and value.fact.element is not None for value in (*operation.inputs, *operation.outputs)
    )


def is_selectable(operation: Operation) -> bool:
    """Whether a fast kernel can be selected: as ``is_static``, but inputs that a kernel binds in each run have any
    shape."""
    late = () if operation.definition is None else operation.definition.late
    values = [value for i, value in enumerate(operation.inputs) if i not in late]
    return all(value.fact.is_static and value.fact.element is not None for value in (*values, *operation.outputs))


def is_native(operation: Operation) -> bool:
    """Whether NumPy has the types of all inputs and outputs: fast kernels round to no other."""
    return all(
        value.fact.element is not None and value.fact.element.native
        for value in (*operation.inputs, *operation.outputs)
    )


_MOVES = frozenset(
    {
        "Broadcast",
        "DepthToSpace",
        "Reshape",
        "Roll",
        "ShuffleChannels",
        "SpaceToDepth",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""They may be views of their inputs, and element-wise operations may be computed before them."""


def takes_chain(operation: Operation, options: KernelOptions) -> bool:
    """Whether element-wise operations are computed along with an operation of floats, by a fast kernel or after it."""
    definition = operation.definition
    if definition is None or definition.plugin or operation.chain is not None or operation.bodies:
        return False
    if not operation.outputs or operation.type in _MOVES or not is_static(operation) or not is_native(operation):
        return False
    element = operation.output.fact.element
    return element is not None and element.is_float and bool(offers(task_of(operation, options)))


def task_of(
    operation: Operation, options: KernelOptions = KernelOptions(), wanted: tuple[bool, ...] | None = None
) -> Task:
    """The task of an operation that has a definition, and whose shapes are known."""
    if operation.definition is None:
        raise AssertionError("a chain has no definition, and so no task")
    own, operands = operation.inputs[: operation.own], operation.inputs[operation.own :]
    return Task(
        operation.definition,
        operation.attributes,
        tuple(value.fact for value in own),
        tuple(value.constant for value in own),
        tuple(value.fact for value in operation.outputs),
        wanted or (True,) * len(operation.outputs),
        operation.chain,
        tuple(value.fact for value in operands),
        tuple(value.order for value in operation.inputs),
        tuple(value.order for value in operation.outputs),
        **vars(options),
    )


def select_kernel(operation: Operation, wanted: tuple[bool, ...], options: KernelOptions) -> Kernel | None:
    """The cheapest kernel that writes the outputs of an operation of known shapes; None without a fast kernel."""
    best = cheapest(operation, wanted, options)
    kernel = None if best is None else best.construct()
    if operation.definition is None or operation.chain is None or (best is not None and best.runs_chain):
        return kernel
    reference = ReferenceInto(operation.definition, operation.attributes)
    return ChainAfter(kernel or reference, task_of(operation, options, wanted))


def cheapest(operation: Operation, wanted: tuple[bool, ...], options: KernelOptions) -> Candidate | None:
    """The cheapest candidate for an operation of known shapes; None without a fast kernel."""
    if operation.definition is not None:
        task = task_of(operation, options, wanted)
        try:
            return min(offers(task), key=lambda candidate: _whole_cost(candidate, task), default=None)
        except OpError as error:
            # Raised by a plug-in: irexec's own functions yield no candidates where they object.
            raise node_error(operation.node, [], error) from error
    if operation.chain is None:
        raise AssertionError("an operation without a definition is a chain")
    facts, orders = [value.fact for value in operation.inputs], [value.order for value in operation.inputs]
    offered = chain_candidates(operation.chain, facts, operation.output.fact, orders, operation.output.order, options)
    return min(offered, key=lambda candidate: candidate.cost + _step_cost(candidate, options))


def _step_cost(candidate: Candidate, options: KernelOptions | Task) -> float:
    """Nanoseconds of the interpreter, which ends a segment and begins another, beside those of the kernel."""
    return PYTHON_STEP if options.native and not candidate.native else 0.0


def _whole_cost(candidate: Candidate, task: Task) -> float:
    cost = candidate.cost + _step_cost(candidate, task)
    if task.chain is None or candidate.runs_chain:
        return cost
    return cost + CHAIN_COST * math.prod(task.output_shape()) * len(task.chain.instructions)


class ReferenceInto(Kernel):
    """The reference kernel, its results copied into the given outputs."""

    def __init__(self, definition: OpDef, attributes: dict[str, Any]) -> None:
        self.algorithm = "reference"
        self._call = reference_call(definition, attributes, widen=True)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        results = as_tuple(self._call(*(array for array in inputs if array is not None)))
        for result, output in zip(results, outputs, strict=False):
            if output is not None:
                np.copyto(output, result)


class ChainAfter(Kernel):
    """A kernel that does not run chains, followed by the chain on its first output."""

    def __init__(self, kernel: Kernel, task: Task) -> None:
        if task.chain is None:
            raise AssertionError("the task has a chain")
        self.algorithm, self.cost = kernel.algorithm, kernel.cost
        self.reads, self.splits, self.records = kernel.reads, kernel.splits, kernel.records
        self.workspace, self.shared_workspace = max(kernel.workspace, workspace_of(task.chain)), kernel.shared_workspace
        self._kernel, self._chain, self._own = kernel, task.chain, len(task.inputs)

    def pack(self, store: Any) -> None:
        self._kernel.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        own, operands = inputs[: self._own], inputs[self._own :]
        is_in_place = outputs[0].dtype == self._chain.dtype
        made = outputs[0] if is_in_place else np.empty_like(outputs[0], self._chain.dtype)
        self._kernel.run(own, [made, *outputs[1:]], context)
        run_chain(self._chain, outputs[0], made, operands, context)


def reference_call(definition: OpDef, attributes: dict[str, Any], *, widen: bool) -> Callable[..., Any]:
    """The reference kernel with its attributes; ``widen`` where an input may be f16."""
    if definition.widen and widen:
        return functools.partial(_call, definition, attributes)
    # A run ignores floating-point errors as a whole, so that no step has to.
    return functools.partial(definition.kernel, **attributes) if attributes else definition.kernel


def _call(function: Callable[..., Any], attributes: dict[str, Any], *inputs: Any, **injected: Any) -> Any:
    return function(*inputs, **attributes, **injected)


def may_be_f16(operation: Operation) -> bool:
    """Whether an input may be of f16, which some operations compute in f32."""
    return any(value.fact.element is None or value.fact.element is F16 for value in operation.inputs)
