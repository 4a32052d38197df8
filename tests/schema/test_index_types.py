"""Indices and sizes that OpenVINO refuses to read in other element types than a few, most of them i32 and i64."""

from __future__ import annotations

import pytest

import irexec.ops  # noqa: F401  (the operations)
from irexec.schema.registry import resolve

_INPUTS = [
    ("CumSum", "opset3", "axis"),
    ("EmbeddingBagPacked", "opset15", "indices"),
    ("EmbeddingBagPackedSum", "opset3", "indices"),
    *(("EmbeddingSegmentsSum", "opset3", name) for name in ("indices", "segment_ids", "num_segments", "default_index")),
    *(("Eye", "opset9", name) for name in ("num_rows", "num_columns", "diagonal_index", "batch_shape")),
    ("GatherElements", "opset6", "indices"),
    ("Col2Im", "opset15", "output_size"),
    ("Col2Im", "opset15", "kernel_size"),
    *(("ISTFT", "opset16", name) for name in ("frame_size", "frame_step", "signal_length")),
    *(("STFT", "opset15", name) for name in ("frame_size", "frame_step")),
    ("Roll", "opset7", "shift"),
    ("Roll", "opset7", "axes"),
    ("ScatterNDUpdate", "opset4", "indices"),
    ("ScatterNDUpdate", "opset15", "indices"),
    ("SegmentMax", "opset16", "segment_ids"),
    ("SegmentMax", "opset16", "num_segments"),
    ("SparseFillEmptyRows", "opset16", "dense_shape"),
    ("SparseFillEmptyRows", "opset16", "indices"),
]


_SIZES = ["i32", "i64", "u32", "u64"]
_SCALES = ["bf16", "f16", "f32"]
_OTHERS = [
    ("TopK", "opset1", "k", ["i32", "i64", "i8"]),
    *(("Interpolate", "opset4", name, _SIZES) for name in ("output_shape", "axes")),
    ("Interpolate", "opset4", "scales", _SCALES),
    ("Interpolate", "opset11", "axes", _SIZES),
]


@pytest.mark.parametrize(
    ("type", "version", "name", "elements"), [*((*row, ["i32", "i64"]) for row in _INPUTS), *_OTHERS]
)
def test_elements(type: str, version: str, name: str, elements: list[str]) -> None:
    spec = next(spec for spec in resolve(type, version).inputs if spec.name == name)
    assert spec.elements is not None
    assert sorted(element.name for element in spec.elements.elements) == elements
