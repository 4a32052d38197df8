"""Winograd's algorithm in C against a direct convolution in f64."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from irexec.backend.calls import loaded
from irexec.backend.chain import Chain
from irexec.backend.kernel import Order, Task
from irexec.backend.native import convolution
from irexec.backend.native.convolution import NativeWinograd
from irexec.native.library import library
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, in_order, task_of
from tests.support.convolutions import bias_residual_relu
from tests.support.run_kernel import run_kernel

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

LAST: Order = (0, 2, 3, 1)
PADS = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
UNEVEN = PADS | {"pads_begin": (2, 0), "pads_end": (0, 3)}
# Images, channels, height and width; outputs.
SIZES = [((1, 16, 12, 12), 24), ((2, 5, 11, 13), 7), ((1, 20, 9, 31), 70), ((3, 33, 6, 5), 130), ((1, 1, 3, 3), 1)]


def _arrays(data: tuple[int, ...], outputs: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in (data, (outputs, data[1], 3, 3))]


def _results(task: Task, inputs: list[np.ndarray], operands: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The results of each tile size, by the name of the algorithm."""
    given = [in_order(inputs[0], LAST), *inputs[1:]]
    found = [kernel for kernel in candidates(task) if isinstance(kernel, NativeWinograd)]
    return {kernel.algorithm: run_kernel(kernel, task, given, operands)[0] for kernel in found}


@pytest.mark.parametrize("part", [1, 20_000, 1 << 20], ids=["a tile at once", "some tiles", "all tiles"])
@pytest.mark.parametrize("written", [LAST, None], ids=["channels last", "channels first"])
@pytest.mark.parametrize("attributes", [PADS, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(("data", "outputs"), SIZES, ids=str)
def test_results(
    data: tuple[int, ...], outputs: int, attributes: dict[str, tuple[int, int]], written: Order | None, part: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A result, and one with bias, residual and limit; one thread and two give the same bits."""
    monkeypatch.setattr(convolution, "_PART", part)
    inputs = _arrays(data, outputs)
    definition = resolve("Convolution", "opset1")
    plain = definition(*[x.astype(np.float64) for x in inputs], **definition.arguments(attributes))
    operands = [np.linspace(-1, 1, outputs, dtype=np.float32).reshape(1, -1, 1, 1), plain.astype(np.float32)[..., ::-1]]
    operands = [np.ascontiguousarray(operand) for operand in operands]
    chained = np.maximum(plain + operands[0] + operands[1], 0)

    cases: list[tuple[Chain | None, list[np.ndarray], np.ndarray]] = [
        (None, [], plain), (bias_residual_relu(), operands, chained),
    ]  # fmt: skip
    for chain, added, expected in cases:
        task = task_of(
            "Convolution", "opset1", inputs, attributes, constants=[1], chain=chain, operands=added, native=True
        )
        orders = (LAST, *task.input_orders[1:])
        one, two = (
            _results(
                dataclasses.replace(task, input_orders=orders, output_orders=(written,), threads=threads), inputs, added
            )
            for threads in (1, 2)
        )
        assert len(one) == (3 if loaded().vector >= 8 else 2)
        for name, result in one.items():
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * np.abs(expected).max(), err_msg=name)
            np.testing.assert_array_equal(result, two[name])
