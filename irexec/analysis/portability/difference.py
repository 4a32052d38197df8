"""The declaration of a difference between implementations: its code, its texts and the layers that have it.

    @difference("IR913", "saturated sums of bytes", ("ReduceSum",), "CPU plugin", "values", does=..., ...)
    def _saturated(layer: Layer) -> bool:
        return layer.is_of_bytes()

The declarations were measured: tests/analysis/test_portability.py has a model for each and, with ``--oracle``, asks
OpenVINO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from irexec.ir import codes

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer

Who = Literal["CPU plugin", "constant folding", "shape inference", "reader"]
"""Implementations in OpenVINO: the plugin that runs models on a CPU; the reference kernels, with which constants are
computed; shape inference when a model is read; the reader of an .xml."""

Effect = Literal["values", "undefined values", "fails", "shape"]
"""The results have other values, or values that depend on chance; the model is not read, compiled or run; another shape
is inferred."""

Condition = Callable[["ExaminedLayer"], bool]


@dataclass(frozen=True)
class Difference:
    """A difference of one implementation of OpenVINO from the others, or from the specification.

    Attributes:
        code: of its finding.
        types: the operations; none means any.
        who, effect: the implementation, and the effect that a user sees.
        does: one sentence without a full stop: the behaviour of the implementation, and of the others.
        condition: True for a layer that has the difference.
        since, until: the first release that has the difference and the first that no longer has it; None where all
            releases from 2023.0 to 2026.4 are alike.
    """

    code: str
    types: tuple[str, ...]
    who: Who
    effect: Effect
    does: str
    condition: Condition
    since: str | None = None
    until: str | None = None


DIFFERENCES: dict[str, Difference] = {}
"""By code. irexec.analysis.portability has all of them."""


def difference(
    code: str, name: str, types: tuple[str, ...], who: Who, effect: Effect, *, does: str, example: str, repair: str,
    since: str | None = None, until: str | None = None,
) -> Callable[[Condition], Condition]:  # fmt: skip
    """Decorator of a condition: declare a difference and its finding code.

    Args:
        code, name, example, repair: as in irexec.ir.codes.Code; the example is a layer that has the difference.
        types, who, effect, does, since, until: as in Difference.

    Raises:
        ValueError: the code or the name is used already.
    """

    def register(condition: Condition) -> Condition:
        codes.add(code, "info", name, f"{does} (found with --portability)", example, repair)
        DIFFERENCES[code] = Difference(code, types, who, effect, does, condition, since, until)
        return condition

    return register


def always(layer: object) -> bool:
    """Condition of a difference that every layer of its types has."""
    return True
