"""Attributes and index types as OpenVINO reads and refuses them."""

from __future__ import annotations

import pytest

import irexec.ops  # noqa: F401  (the operations)
from irexec.ir import codes
from irexec.schema.attributes import write_attribute
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


# Attributes of published files that no reader uses are not findings: what Model Optimizer 2020 to 2022 wrote besides
# those of the operation.


WRITTEN = [
    ("Convolution", "opset1", "output_padding"),
    ("DetectionOutput", "opset1", "eta"),
    ("DetectionOutput", "opset1", "pad_mode"),
    ("DetectionOutput", "opset1", "resize_mode"),
    ("DetectionOutput", "opset1", "visualize"),
    ("DetectionOutput", "opset8", "num_classes"),
    ("GRUCell", "opset3", "activation_alpha"),
    ("LSTMCell", "opset4", "activation_beta"),
    ("PriorBox", "opset1", "img_size"),
    ("PriorBox", "opset1", "step_h"),
    ("PriorBoxClustered", "opset1", "flip"),
    ("PriorBoxClustered", "opset1", "img_w"),
    ("RNNCell", "opset1", "activation_alpha"),
    ("ShapeOf", "opset1", "output_type"),
]


@pytest.mark.parametrize(("type", "version", "attribute"), WRITTEN)
def test_an_attribute_that_nobody_reads(type: str, version: str, attribute: str) -> None:
    problems = resolve(type, version).parse({attribute: "0"}).problems
    assert not [problem for problem in problems if problem.code == codes.UNKNOWN_ATTRIBUTE]


# Recurrent layers that are built without activations have the specification's in their text: OpenVINO refuses none.


@pytest.mark.parametrize("kind", ["Cell", "Sequence"])
@pytest.mark.parametrize(
    ("type", "version", "text"),
    [
        ("LSTM", "opset5", "sigmoid, tanh, tanh"),
        ("LSTM", "opset1", "sigmoid, tanh, tanh"),
        ("GRU", "opset5", "sigmoid, tanh"),
        ("RNN", "opset5", "tanh"),
    ],
)
def test_default_activations(type: str, version: str, text: str, kind: str) -> None:
    found = resolve(f"{type}{kind}", "opset5" if kind == "Sequence" else version)
    activations = next(attribute for attribute in found.attributes if attribute.name == "activations")
    assert write_attribute(activations.default) == text
