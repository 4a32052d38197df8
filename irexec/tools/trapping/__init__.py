"""Runs that stop at the first layer with a value that should not be there, and recorded ranges of tensors.

Here are the conditions of a trap: what sets them loads nothing that runs a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["nan", "inf", "f16", "range"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MARGIN = 1e-3
"""How far, as a part of the largest magnitude recorded, a tensor may leave its range: other kernels round in another
way."""


@dataclass(frozen=True, kw_only=True)
class TrapOptions:
    """The conditions that stop a run, and the recording of its ranges.

    Attributes:
        kinds: the conditions to stop at: "nan", "inf", "f16", "range"; none only to record.
        ranges: the file of ranges for "range".
        margin: distance by which a tensor may leave its range, as a fraction of the largest recorded magnitude.
        ignore: names or ids of layers, names of tensors, inputs and constants to leave out; ``*`` stands for any text.
        record: the file to add the ranges of this run to.
    """

    kinds: tuple[Kind, ...] = ()
    ranges: str | None = None
    margin: float = MARGIN
    ignore: tuple[str, ...] = ()
    record: str | None = None

    def files_read(self) -> dict[str, str]:
        """The files that are read, with what they are."""
        return {} if self.ranges is None else {self.ranges: "the file of ranges"}
