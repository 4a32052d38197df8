"""The NumPy calls of the blocks of a step: recorded in its first run, repeated later; switches that check them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from irexec.backend.scratch import Block, Call, Scratch
from irexec.errors import InputError

CHECK_PASSES = "IREXEC_CHECK_PASSES"
"""Check the invariants of the compile graph after each pass."""

CHECK_RECORDS = "IREXEC_CHECK_RECORDS"
"""Compare the results of a step's recorded calls with the results of its kernel."""
MAXIMUM_BLOCKS = 16
"""Maximum number of blocks of a recorded step: the interpreter's time counts where blocks are few."""

Arrays = Sequence[Any]


def is_on(variable: str) -> bool:
    """True if the environment variable is set to 1.

    Raises:
        InputError: the variable is neither 1, 0, nor empty.
    """
    text = os.environ.get(variable, "").strip()
    if text not in ("", "0", "1"):
        raise InputError(f"{variable} is {text!r}, expected 0 or 1")
    return text == "1"


class RecordedKernel(Protocol):
    """The part of a kernel that a recording uses."""

    algorithm: str
    joins: bool

    def run(self, inputs: Arrays, outputs: Arrays, context: Any) -> None:
        """Write the outputs."""


class Blocks(Protocol):
    """The part of a context that a recording uses."""

    scratches: Sequence[Scratch]

    def compute(self, count: int, block: Block) -> None:
        """Call ``block`` for every index below ``count``."""


class Recording:
    """The recorded calls of one step, on arrays that are the same in every run."""

    def __init__(self) -> None:
        self._sections: list[_Section] = []
        self._is_open = self._is_complete = self._is_refused = False

    def run(self, kernel: RecordedKernel, inputs: Arrays, outputs: Arrays, context: Blocks) -> None:
        """Repeat the recorded calls, or run the kernel and record them."""
        if self._is_complete:
            self._repeat(context)
        else:
            self._record(kernel, inputs, outputs, context)

    def _record(self, kernel: RecordedKernel, inputs: Arrays, outputs: Arrays, context: Blocks) -> None:
        self._is_open = not self._is_refused
        try:
            kernel.run(inputs, outputs, context)
            self._is_complete = self._is_open
        finally:
            self._is_open = False
            if not self._is_complete:
                self._sections.clear()

    def _repeat(self, context: Blocks) -> None:
        for section in self._sections:
            context.compute(section.count, section.run)

    def refuse(self) -> None:
        """The kernel does more than its blocks do: nothing is recorded, neither in this run nor in later ones."""
        self._is_open, self._is_refused = False, True

    def recording(self, count: int, block: Block) -> Block:
        """The block, recording its calls if the kernel runs for the first time."""
        if self._is_open and count > MAXIMUM_BLOCKS:
            self.refuse()
        if not self._is_open:
            return block
        section = _Section(count, block)
        self._sections.append(section)
        return section.run


class CheckedRecording(Recording):
    """Compares the recorded calls with the kernel itself in every run, bit by bit."""

    def run(self, kernel: RecordedKernel, inputs: Arrays, outputs: Arrays, context: Blocks) -> None:
        """See Recording.run.

        Raises:
            AssertionError: the recorded calls compute other outputs than the kernel.
        """
        was_complete = self._is_complete
        before = [_copy(array) for array in (*inputs, *outputs)]
        super().run(kernel, inputs, outputs, context)
        if not self._is_complete:
            return
        first = [_copy(array) for array in outputs]
        _reset(inputs, outputs, before, keep_outputs=kernel.joins)
        for scratch in context.scratches:
            scratch.overwrite()
        if was_complete:
            kernel.run(inputs, outputs, context)
        else:
            self._repeat(context)
        for index, (a, b) in enumerate(zip(first, outputs, strict=True)):
            if a is not None and a.tobytes() != b.tobytes():
                raise AssertionError(
                    f"kernel {kernel.algorithm!r}: its recorded calls compute another output {index} than its run does"
                )


def new_recording() -> Recording:
    """A recording for a step, checked if the environment variable IREXEC_CHECK_RECORDS is set."""
    return CheckedRecording() if is_on(CHECK_RECORDS) else Recording()


def _copy(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else array.copy()


def _reset(inputs: Arrays, outputs: Arrays, before: Arrays, *, keep_outputs: bool) -> None:
    """Restore inputs, and outputs if parts are computed in place.

    Otherwise outputs are filled with values that no kernel computes.
    """
    for output, values in zip(outputs, before[len(inputs) :], strict=True):
        if output is not None:
            output[...] = values if keep_outputs else np.nan if output.dtype.kind in "fc" else 77
    for array, values in zip(inputs, before, strict=False):
        if array is not None and any(output is not None and np.may_share_memory(array, output) for output in outputs):
            array[...] = values


class _Section:
    """The blocks of one ``parallel`` of a kernel, with their calls as recorded on each thread's scratch."""

    def __init__(self, count: int, block: Block) -> None:
        self.count, self._block = count, block
        self._calls: dict[tuple[int, int], list[Call]] = {}

    def run(self, index: int, scratch: Scratch) -> None:
        """Run a block."""
        calls = self._calls.get((index, id(scratch)))
        if calls is None:
            self._calls[index, id(scratch)] = scratch.record(lambda scratch: self._block(index, scratch))
        else:
            for call in calls:
                call()
