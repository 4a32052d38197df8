"""One difference between implementations of an operation, as data; irexec.analysis.portability decides which layers
have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Who = Literal["CPU plugin", "constant folding", "shape inference", "reader"]
"""Implementations in OpenVINO: the plugin that runs models on a CPU; the reference implementations, with which
constants are computed; shape inference
 when a model is read; and what reads an .xml."""

Effect = Literal["values", "undefined values", "fails", "shape"]
"""The results have other values, or any at all; the model is not read, compiled or run; another shape is inferred."""


@dataclass(frozen=True)
class Difference:
    """A difference of one implementation of OpenVINO from others, or from the specification.

    Attributes:
        code, name: of its finding.
        types: the operations; none is any.
        who, effect: which implementation, and what one sees of it.
        does: one sentence without a full stop: what it does and what the others do.
        example: a layer that has it.
        repair: how to write a model without it.
        since, until: the first release that does so and the first that does not any more; None where no release was
            seen that does otherwise, of those from 2023.0 to 2026.4.
    """

    code: str
    name: str
    types: tuple[str, ...]
    who: Who
    effect: Effect
    does: str
    example: str
    repair: str
    since: str | None = None
    until: str | None = None
