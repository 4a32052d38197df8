"""How tensors lie in memory, and which operations give views of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.kernel import Order
from irexec.compile.graph import Operation
from irexec.compile.lower import lower
from irexec.compile.storage.views import as_views, may_be_views, order_of, ordered, outputs_of


def _lowered(type: str, shape: str, *inputs: object, **attributes: object) -> Operation:
    builder = irexec.Builder("m")
    builder.result(builder.emit(type, builder.parameter("f32", shape, "x"), *inputs, **attributes))
    model = builder.model()
    (operation,) = lower(model, infer_shapes(model), {})
    return operation


@pytest.mark.parametrize("order", [None, *itertools.permutations(range(4))])
def test_an_array_has_the_order_that_it_was_made_with(order: Order | None) -> None:
    array = ordered((2, 3, 4, 5), order, lambda shape: np.arange(120).reshape(shape))
    assert array.shape == (2, 3, 4, 5)
    assert array.transpose(order or range(4)).ravel("K").tolist() == list(range(120))
    assert array.transpose(order or range(4)).flags.c_contiguous
    assert order_of(array) == (None if order == (0, 1, 2, 3) else order)


def test_axes_of_size_one_have_no_order() -> None:
    assert order_of(np.empty((1, 3, 1, 5)).transpose(2, 1, 0, 3)) is None
    assert order_of(np.empty((4, 1, 3)).transpose(2, 1, 0)) == (2, 1, 0)


def test_operations_whose_outputs_may_be_views() -> None:
    reshape = _lowered("Reshape", "2,3", np.array([3, 2]), special_zero=False)
    assert may_be_views(reshape)
    assert not may_be_views(_lowered("Relu", "2,3"))
    assert not may_be_views(_lowered("Reshape", "?,3", np.array([3, -1]), special_zero=False))


def test_what_would_be_copied_or_is_refused_is_not_a_view() -> None:
    outputs, array = (
        outputs_of(_lowered("Reshape", "2,3", np.array([3, 2]), special_zero=False)),
        np.arange(6).reshape(2, 3),
    )
    (result,) = as_views(outputs, array) or ()
    assert result.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert np.shares_memory(result, array)
    assert as_views(outputs, np.asfortranarray(array)) is None
    assert as_views(outputs_of(_lowered("Squeeze", "3,1", np.array([1]))), np.empty(3)) is None
    assert (
        as_views(outputs_of(_lowered("Reshape", "0,3", np.array([3, 0]), special_zero=False)), np.empty((0, 3)))
        is not None
    )
