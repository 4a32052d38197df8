"""Differences between irexec and OpenVINO that are known, and why irexec is right or the question is moot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.support.cases import Case


@dataclass(frozen=True)
class Known:
    """A difference: the types, what of a row and of the message it applies to, and the reason."""

    types: tuple[str, ...]
    applies: Callable[[Case, str], bool]
    why: str


def _odd(row: Case, difference: str) -> bool:
    """An input holds an infinity or NaN."""
    return any(x.array.dtype.kind == "f" and not np.isfinite(x.array).all() for x in row.inputs)


def _pdpd(row: Case, difference: str) -> bool:
    return row.attributes.get("auto_broadcast") == "pdpd" and row.inputs[0].array.shape != row.inputs[1].array.shape


def _of(*names: str) -> Callable[[Case, str], bool]:
    return lambda row, difference: row.inputs[0].element.name in names


_BITWISE = tuple(f"Bitwise{name}" for name in ("And", "Or", "Xor", "LeftShift", "RightShift"))
_SMALL = ("i8", "i16", "u8", "u16", "u32", "u64")


def _of_no_extent(row: Case, difference: str) -> bool:
    return row.attributes.get("sampling_ratio") == "0" and "nan location mismatch" in difference


def _one_off_in_integers(row: Case, difference: str) -> bool:
    return row.inputs[0].element.is_integer and "Max absolute difference among violations: 1 " in difference


KNOWN: tuple[Known, ...] = (
    Known(("GridSample",), _one_off_in_integers, "what should be whole is cut after it was rounded in another order"),
    Known(("ROIAlign",), _of_no_extent, "the plugin divides by no points at all: a box without extent gives 0, as in the reference"),
    Known(("Gelu",), _odd, "the plugin's error function gives NaN for infinities; the product of inf and 2 is inf"),
    Known(("HardSigmoid",), lambda row, _: _odd(row, _) and "nan" in _, "the plugin bounds NaN, here it stays NaN"),
    Known(("HardSigmoid",), lambda row, _: row.inputs[2].array == 0, "the plugin takes 0.5 for a beta of 0"),
    Known(
        (*_BITWISE, "Greater"),
        _pdpd,
        "the plugin aligns the second operand at the end; Greater is turned into Less with the operands swapped",
    ),
    Known(("Divide",), _of("i8", "i16"), "the plugin rounds towards zero; m_pythondiv is read as the reference does, which floors"),
    Known(
        ("Divide",),
        lambda row, _: _of("f64")(row, _) and "inf" in _,
        "the plugin computes f64 in f32, and makes infinities its largest number",
    ),
    Known(
        ("NonMaxSuppression",),
        lambda row, difference: row.since in (1, 3, 4) and "is looser than" in difference,
        "before version 5 OpenVINO infers a static shape, and runs with as many rows as boxes selected",
    ),
)


def reason(row: Case, difference: str) -> str:
    """Why the row may differ so; nothing if that is not known."""
    return next((known.why for known in KNOWN if row.type in known.types and known.applies(row, difference)), "")
