"""The same input gives the same bits: with any number of threads, after any other inputs, and in any process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.native.library import path_of
from irexec.native.sources import is_supported, levels
from irexec.runtime.program import PLANS
from tests.support.paths import ROOT
from tests.support.processes import said
from tests.support.tiers import some

SIDES = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}


def _open_sizes() -> irexec.Model:
    """Convolutions of images of any size, and a product of their means."""
    rng = np.random.default_rng(0)
    x = opset.parameter(["?", 8, "?", "?"], "f32", "x")
    y = x
    for _ in range(3):
        y = opset.relu(opset.convolution(y, rng.standard_normal((8, 8, 3, 3)).astype(np.float32) / 10, **SIDES))
    y = opset.reduce_mean(opset.exp(y), np.array([2, 3]))
    return irexec.Model([opset.matmul(y, rng.standard_normal((8, 30)).astype(np.float32))], [x])


def _images(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    shapes = [(1 + i % 2, 8, 5 + i, 41 - i) for i in range(count)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _bits(compiled: irexec.CompiledModel, x: Any) -> bytes:
    return next(iter(compiled(x).values())).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("native", some([True, False], [True]))
def test_what_ran_before_and_beside_changes_no_bit(native: bool) -> None:
    model, rng = _open_sizes(), np.random.default_rng(1)
    images = _images(rng, 20)
    fresh = [_bits(irexec.compile_model(model, native=native, threads=1), x) for x in images]
    compiled = irexec.compile_model(model, native=native, threads=2)

    def work(seed: int) -> list[int]:
        order = np.random.default_rng(seed).permutation(len(images))
        return [int(i) for i in order if _bits(compiled, images[i]) != fresh[i]]

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(work, range(12))) == [[]] * 12


@pytest.mark.slow
def test_more_shapes_than_plans_change_no_bit() -> None:
    model, rng = _open_sizes(), np.random.default_rng(1)
    compiled = irexec.compile_model(model, threads=1)
    x = rng.standard_normal((1, 8, 16, 40)).astype(np.float32)
    found = set()
    for repeat in range(2):
        found.add(_bits(compiled, x))
        for width in range(2, PLANS + 3):
            compiled(np.zeros((1, 8, 2 + repeat, width), np.float32))
    assert len(found) == 1


@pytest.mark.parametrize("native", some(["", "0"], [""]))
@pytest.mark.slow
def test_batch_writes_the_same_bytes_with_any_number_of_jobs(tmp_path: Path, native: str) -> None:
    irexec.save_model(_open_sizes(), tmp_path / "m.xml")
    (tmp_path / "items").mkdir()
    for i, image in enumerate(_images(np.random.default_rng(2), 16)):
        np.save(tmp_path / "items" / f"{i % 3}{i:03}.npy", image[:1])
    for jobs in ("1", "3"):
        words = ["batch", "m.xml", "items", "-o", f"o{jobs}.npy", "--jobs", jobs]
        said(tmp_path, "-m", "irexec", *words, IREXEC_NATIVE=native)
    assert len({(tmp_path / f"o{jobs}.npy").read_bytes() for jobs in "13"}) == 1


def _random_layer(rng: np.random.Generator) -> irexec.Model:
    """A convolution, a transposed or depthwise one, or a product, of sizes at which kernels and blocks change."""

    def pick(*values: int) -> int:
        return int(rng.choice(values))

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    kind, images, inputs, outputs = (
        pick(0, 0, 1, 2, 3),
        pick(1, 1, 2),
        pick(1, 8, 24, 63, 64, 128),
        pick(1, 3, 16, 64, 128),
    )
    height, width = pick(3, 5, 7, 13, 16, 28, 33), pick(3, 5, 6, 8, 20, 33)
    if kind == 3:
        x = opset.parameter([images, height * width, inputs], "f32", "x")
        return irexec.Model([opset.add(opset.matmul(x, random(inputs, outputs)), random(outputs))], [x])
    x = opset.parameter([images, inputs, height, width], "f32", "x")
    sides, points = (SIDES, 3) if rng.random() < 0.7 else ({**SIDES, "pads_begin": [2, 2], "pads_end": [2, 2]}, 5)
    if kind == 2:
        y = opset.convolution_backprop_data(x, random(inputs, outputs, points, points), None, **sides)
    elif kind == 1:
        y = opset.group_convolution(x, random(inputs, pick(1, 1, 4), 1, points, points), **sides)
    else:
        y = opset.convolution(x, random(outputs, inputs, points, points), **sides)
    return irexec.Model([opset.relu(y)], [x])


SWEEP = """
import sys

import numpy as np

import irexec
from tests.runtime.test_same_bits import _bits, _random_layer

rng = np.random.default_rng(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    model = _random_layer(rng)
    x = rng.standard_normal(model.inputs[0].shape).astype(np.float32)
    bits = {_bits(irexec.compile_model(model, threads=threads), x) for threads in (1, 2, 3, 4)}
    assert len(bits) == 1, (i, model.inputs[0].shape, [node.type for node in model.nodes])
print("same")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", some(["0", "portable", "x86-64-v2", "x86-64-v3"], ["0", "x86-64-v3"]))
def test_any_number_of_threads_gives_the_same_bits(level: str) -> None:
    """In NumPy alone too, whose BLAS adds in another order in blocks of another size."""
    if level != "0" and not any(one.name == level and is_supported(one) and path_of(one).exists() for one in levels()):
        pytest.skip("the level was not built, or the processor does not have it")
    assert said(ROOT, "-c", SWEEP, "5", "24", IREXEC_NATIVE=level)[0] == "same\n"
