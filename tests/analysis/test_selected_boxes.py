"""Versions of NonMaxSuppression whose declared shape is not the one that they give."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.builder import Builder


@pytest.mark.parametrize("since", [1, 3, 4])
def test_constant_boxes_may_declare_room_for_all(since: int) -> None:
    """OpenVINO declares a row for each box that could be selected, also where the boxes are constants."""
    builder = Builder("boxes")
    boxes = builder.constant(np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6]]]))
    scores = builder.constant(np.float32([[[0.9, 0.8, 0.7]]]))
    limits = [builder.constant(np.array(3)), builder.constant(np.float32(0.5)), builder.constant(np.float32(0.1))]
    builder.result(builder.emit("NonMaxSuppression", boxes, scores, *limits, version=since))
    text, weights = io.write_text(builder.model())
    declared = io.read_text(text.replace(b"<dim>-1</dim>", b"<dim>3</dim>"), weights)
    assert irexec.validate(declared) == []
    assert irexec.compile_model(declared)({})[0].tolist() == [[0, 0, 0], [0, 0, 2]]
