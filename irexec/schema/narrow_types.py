"""Tensors of a few bits that OpenVINO's CPU plugin does not move: it writes beyond the memory that it has for them."""

from __future__ import annotations

NOT_MOVED = frozenset({"u1", "u2", "u3", "u6", "nf4", "f4e2m1"})
"""The element types. u4 and i4 are moved right."""

MOVES = (
    "Gather", "GatherElements", "GatherND", "Slice", "StridedSlice", "Concat", "Split", "VariadicSplit", "Tile",
    "Broadcast", "Pad", "Roll", "DepthToSpace",
)  # fmt: skip
"""The operations, measured with OpenVINO 2026.4. Transpose, Reshape, Unsqueeze and ScatterUpdate are right."""
