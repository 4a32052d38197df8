"""Operations that only move elements."""

from __future__ import annotations

MOVES = frozenset(
    {
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "StridedSlice", "Split", "VariadicSplit", "Concat",
        "Gather", "GatherElements", "GatherND", "Tile", "Broadcast", "Pad", "Reverse", "ReverseSequence", "Roll",
        "ShuffleChannels", "SpaceToDepth", "DepthToSpace", "SpaceToBatch", "BatchToSpace", "ReorgYolo", "GatherTree",
        "ExtractImagePatches", "Result", "Identity", "SliceScatter", "OneHot",
    }
)  # fmt: skip
"""Types whose outputs have the elements of the inputs, or zeros and a value for padding, to the last bit."""
