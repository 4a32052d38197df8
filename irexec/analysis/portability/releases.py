"""Inputs that each release of OpenVINO reads: opsets, operations, element types, versions of IR.

Sources: up to 2022.3 the table of operation sets in OpenVINO's documentation; from 2023.0 on the reader of each release
itself, which was asked for every operation, opset and element type.
"""

from __future__ import annotations

from typing import NamedTuple

from irexec.errors import InputError


class Release(NamedTuple):
    """A release, such as 2023.3; patches do not change what is read."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year}.{self.number}"


def parse_release(text: str) -> Release:
    """A release from "2023.3" or "2023.3.0"; raises InputError for anything else, and for one that is not known."""
    parts = text.split(".")
    if len(parts) in (2, 3) and all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        found = Release(int(parts[0]), int(parts[1]))
        if OLDEST <= found <= NEWEST:
            return found
    raise InputError(f"{text!r} is not a known release of OpenVINO, expected {OLDEST} to {NEWEST}, CPU, GPU or NPU")


OPSETS: dict[int, Release] = {
    1: Release(2020, 1), 2: Release(2020, 2), 3: Release(2020, 4), 4: Release(2021, 1), 5: Release(2021, 2),
    6: Release(2021, 3),
    7: Release(2021, 4), 8: Release(2022, 1), 9: Release(2022, 2), 10: Release(2022, 3), 11: Release(2023, 0),
    12: Release(2023, 1), 13: Release(2023, 2), 14: Release(2024, 0), 15: Release(2024, 5), 16: Release(2026, 0),
}  # fmt: skip
"""The first release in which a layer of any operation may name an opset, from opset1 on; an opset that is not complete
yet is not here."""

OLDEST, NEWEST = Release(2020, 1), Release(2026, 4)

NOT_ASKED = Release(2025, 0)
"""The first release of which no plugin was asked what it computes otherwise."""

# By release: the operations that came before or after their opset was complete.
_OPERATIONS: dict[tuple[int, int], tuple[tuple[str, int], ...]] = {
    (2023, 3): (("FakeConvert", 13), ("ScaledDotProductAttention", 13)),
    (2024, 2): (("Col2Im", 15), ("EmbeddingBagOffsets", 15), ("EmbeddingBagPacked", 15), ("ROIAlignRotated", 15),
    ("ScatterNDUpdate", 15)), (2024, 4): (
        ("BitwiseLeftShift", 15), ("BitwiseRightShift", 15), ("SliceScatter", 15), ("StringTensorPack", 15),
        ("StringTensorUnpack", 15),
    ),
    (2025, 0): (("Identity", 16),),
    (2025, 1): (("ISTFT", 16), ("SegmentMax", 16)),
    (2025, 2): (("SparseFillEmptyRows", 16),),
    (2025, 3): (("AvgPool", 16),),
    (2025, 4): (("OneHot", 16),),
    (2026, 2): (("ErfInv", 17),),
    (2026, 3): (("GroupedMatMul", 17),),
    (2026, 4): (("BGRtoNV12", 17), ("RGBtoNV12", 17)),
}  # fmt: skip
OPERATIONS: dict[tuple[str, int], Release] = {
    operation: Release(*release) for release, group in _OPERATIONS.items() for operation in group
}
"""The first release of the versions of operations that did not come with their opset, by type and opset."""

ELEMENTS: dict[str, Release] = {
    "nf4": Release(2023, 2), "string": Release(2023, 3), "f8e4m3": Release(2024, 0), "f8e5m2": Release(2024, 0),
    "u2": Release(2024, 1),
    "u3": Release(2024, 1), "u6": Release(2024, 1), "f8e8m0": Release(2024, 3), "f4e2m1": Release(2024, 3),
}  # fmt: skip
"""The first release of the element types that are newer than 2023.0."""

IR_VERSIONS: dict[int, Release] = {10: Release(2020, 1), 11: Release(2022, 1)}
"""The first release that reads a version of IR; 10 is read to this day."""


def first_release(type: str, since: int) -> Release | None:
    """The first release that has a version of an operation; None if none of those known has it."""
    return OPERATIONS.get((type, since)) or OPSETS.get(since)
