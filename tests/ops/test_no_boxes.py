"""Scores without boxes take no memory, so that a small file may have any number of classes."""

import time

import numpy as np

from irexec.schema.registry import resolve
from irexec.testing.rows import read_attributes


def test_classes_without_boxes_take_no_time() -> None:
    definition = resolve("NonMaxSuppression", "opset9")
    attributes = read_attributes(definition, {})
    inputs = [np.zeros((1, 0, 4), np.float32), np.zeros((1, 10**7, 0), np.float32), np.array(3)]
    start = time.process_time()
    indices, scores, count = definition(*inputs, **attributes)
    assert time.process_time() - start < 5
    assert (indices.shape, scores.shape, count.tolist()) == ((0, 3), (0, 3), [0])
