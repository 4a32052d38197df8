"""Fast kernels for shapes that are known only when a step runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.calls import Job, NativeKernel
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, KernelOptions, Task
from irexec.backend.pool import Pool
from irexec.backend.registry import offers
from irexec.backend.scratch import Scratch
from irexec.compile.graph import Operation
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.ir.process import LastUsed, new_lock
from irexec.schema.shape_rules import MOVES

KEPT = 16
"""Kernels that a step keeps, for as many different shapes: those that were used last."""

COPIED = 1 << 20
"""Bytes up to which the reference kernel moves elements: that takes less time than selecting a kernel for shapes which
the growing state of a language model changes in every run. Both give the same bits."""


SMALL = 1 << 16
"""Bytes of inputs and outputs, and of workspace, up to which a kernel runs on copies of its inputs, from the second run
of the same shapes on: binding a kernel to arrays takes longer than copying them."""


class ByShape:
    """An operation computed by the kernel for the shapes of a call, or by the reference kernel.

    Args:
        operation: without a chain; it is not kept. The constants among its inputs are passed as None: a kernel has
            packed them.
        reference: arrays in, array or tuple of arrays out.
    """

    def __init__(
        self, operation: Operation, reference: Callable[..., Any], store: ConstantStore, options: KernelOptions
    ) -> None:
        if operation.definition is None:
            raise AssertionError("a chain is planned for known shapes")
        self._definition, self._attributes, self._reference, self._store = (
            operation.definition,
            operation.attributes,
            reference,
            store,
        )
        self._facts = tuple(value.fact for value in operation.inputs)
        self._constants = tuple(value.constant for value in operation.inputs)
        self._options = options
        moves = operation.definition.type in MOVES and operation.definition.plugin == ""
        self._moves = moves and all(v.constant is None or v.constant.size <= COPIED for v in operation.inputs)
        self._kernels = LastUsed[Hashable, _Selected | None](KEPT)

    def __call__(self, *arrays: np.ndarray | None) -> Any:
        if self._moves and sum(array.nbytes for array in arrays if array is not None) <= COPIED:
            return self._by_reference(arrays)
        found = self._kernels.get(tuple(map(_key, arrays)), lambda: self._find(arrays))
        if found is None:
            return self._by_reference(arrays)
        reads = range(len(arrays)) if found.kernel.reads is None else found.kernel.reads
        return found.run([self._array(i, array) if i in reads else None for i, array in enumerate(arrays)])

    def _by_reference(self, arrays: Sequence[np.ndarray | None]) -> Any:
        return self._reference(*(self._array(i, array) for i, array in enumerate(arrays)))

    def _array(self, index: int, array: np.ndarray | None) -> np.ndarray | None:
        constant = self._constants[index]
        return array if constant is None or array is not None else self._store.array(constant)

    def _find(self, arrays: Sequence[np.ndarray | None]) -> _Selected | None:
        facts = tuple(
            fact if a is None else _fact(fact.element, a) for fact, a in zip(self._facts, arrays, strict=True)
        )
        outputs = as_tuple(self._definition.infer(facts, self._attributes))
        if not all(fact.is_static and fact.element is not None and fact.element.native for fact in (*facts, *outputs)):
            return None
        task = Task(
            self._definition, self._attributes, facts, self._constants, outputs, (True,) * len(outputs),
            input_orders=(None,) * len(facts), output_orders=(None,) * len(outputs),
            **vars(self._options),
        )  # fmt: skip
        best = min(offers(task), key=lambda candidate: candidate.cost, default=None)
        if best is None:
            return None
        kernel = best.construct()
        kernel.pack(self._store)
        return _Selected(kernel, task)


class _Selected:
    """The kernel for inputs of certain shapes, which runs on arrays of its own where these are small."""

    def __init__(self, kernel: Kernel, task: Task) -> None:
        self.kernel, self._task = kernel, task
        size = sum(fact.known_nbytes for fact in (*task.inputs, *task.outputs))
        self._is_small = size <= SMALL and (not isinstance(kernel, NativeKernel) or kernel.needed.size(1) <= SMALL)
        self._ran = False
        self._bound: _Bound | None = None
        self._lock = new_lock()

    def run(self, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
        """The outputs, in new arrays."""
        if self._is_small and self._ran and self._lock.acquire(blocking=False):
            try:
                if self._bound is None:
                    self._bound = _Bound(self.kernel, inputs, self._outputs())
                return self._bound.run(inputs)
            finally:
                self._lock.release()
        self._ran = True
        if self._is_small:
            # As those of ``_Bound``: sums of a strided array may have other bits.
            inputs = [None if x is None else np.asarray(x, order="C") for x in inputs]
        outputs = self._outputs()
        self.kernel.run(inputs, outputs, KernelContext.of(self.kernel, self._task.threads))
        return tuple(outputs)

    def _outputs(self) -> list[np.ndarray]:
        return [np.empty(fact.static_shape, fact.dtype) for fact in self._task.outputs]


class _Bound:
    """A kernel bound to its own arrays, for one thread at a time: several take longer for little work."""

    def __init__(self, kernel: Kernel, inputs: Sequence[np.ndarray | None], outputs: list[np.ndarray]) -> None:
        self._inputs = [None if x is None else np.empty(x.shape, x.dtype) for x in inputs]
        # A kernel of NumPy allocates what its scratch has no room for.
        self._scratch = Scratch.of_size(min(kernel.workspace, SMALL)), Scratch.of_size(kernel.shared_workspace)
        context = KernelContext(Pool(1), self._scratch[:1], self._scratch[1], fixed=True)
        self._outputs = outputs
        self._compute: Callable[[], None] = partial(context.run, kernel, self._inputs, outputs)
        if isinstance(kernel, NativeKernel):
            binding = kernel.bound(self._inputs, outputs, context)
            if binding.repeatable and not binding.late:
                self._compute = partial(Job([binding]).run, context.pool, alone=True)

    def run(self, inputs: Sequence[np.ndarray | None]) -> tuple[np.ndarray, ...]:
        """Copies of the outputs for these inputs."""
        for own, given in zip(self._inputs, inputs, strict=True):
            if own is not None and given is not None:
                np.copyto(own, given)
        self._compute()
        return tuple(output.copy() for output in self._outputs)


def _key(array: np.ndarray | None) -> Hashable:
    if array is None:
        return None
    return array.shape, array.dtype, array.tobytes() if _is_shape_like(array) else None


def _fact(element: Element | None, array: np.ndarray) -> Fact:
    """The fact by which a kernel is selected, with the value of an array that may be a shape."""
    known = Fact.of(array, element)
    return known if _is_shape_like(array) else Fact(known.element, known.shape)


def _is_shape_like(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and array.size <= 64
