"""Attributes of published files that no reader uses are not findings: what Model Optimizer 2020 to 2022 wrote besides those of the operation."""

from __future__ import annotations

import pytest

from irexec.ir import codes
from irexec.schema.registry import resolve

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
