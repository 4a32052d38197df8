"""Items and models of the long tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from irexec import Builder, save_model


def images(folder: Path, count: int) -> Path:
    """A folder of 28 x 28 images."""
    from PIL import Image

    random = np.random.default_rng(0)
    for i in range(count):
        inside = folder / f"{i // 1000:03d}"
        inside.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (28, 28), dtype=np.uint8)).save(
            inside / f"{i:06d}.png", compress_level=1
        )
    return folder


def rows(path: Path, count: int, width: int) -> Path:
    """A .npy of random rows, written in pieces."""
    random = np.random.default_rng(0)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (count, width)})
        for start in range(0, count, 10_000):
            file.write(random.random((min(10_000, count - start), width), np.float32).tobytes())
    return path


def products(folder: Path, width: int, layers: int, name: str) -> str:
    """A chain of matrix products of ``width``, whose weights take ``4 * layers * width ** 2`` bytes."""
    random, b = np.random.default_rng(1), Builder()
    value = b.parameter("f32", [-1, width], "x")
    for _ in range(layers):
        weights = random.standard_normal((width, width), np.float32) / np.float32(width) ** 0.5
        value = b.emit("Relu", b.emit("MatMul", value, b.constant(weights), transpose_b=True))
    b.result(b.emit("ReduceMean", value, b.constant(np.array([1])), keep_dims=False, names=["y"]))
    save_model(b.model(), folder / f"{name}.xml")
    return str(folder / f"{name}.xml")
