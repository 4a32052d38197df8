"""The three models: a classifier of a fixed batch, a transformer of dynamic shapes, and one with several outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from irexec import Builder, save_model


def build(folder: Path) -> dict[str, str]:
    """Paths of the models by name."""
    return {
        "classifier": "samples/digits/classifier.xml",
        "transformer": _transformer(folder),
        "several": _several(folder),
    }


def slow(folder: Path) -> dict[str, str]:
    """A model whose runs take seconds, by its name."""
    b = Builder()
    value = b.parameter("f32", [-1, 1024], "x")
    weights = b.constant(np.eye(1024, dtype=np.float32))
    for _ in range(150):
        value = b.emit("Tanh", b.emit("MatMul", value, weights))
    b.result(value)
    return {"slow": _saved(b, folder, "slow")}


def _transformer(folder: Path, width: int = 64, layers: int = 2) -> str:
    """Attention and products over tokens, of any number in a text and of texts."""
    random, b = np.random.default_rng(0), Builder()

    def weights(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)

    x = b.parameter("i64", [-1, -1], "tokens")
    value = b.emit("Gather", b.constant(weights(1000, width)), x, b.constant(np.int64(0)), batch_dims=0)
    for _ in range(layers):
        q, k, v = (b.emit("MatMul", value, b.constant(weights(width, width))) for _ in range(3))
        value = b.emit("Add", value, b.emit("ScaledDotProductAttention", q, k, v, causal=False))
        hidden = b.emit("Gelu", b.emit("MatMul", value, b.constant(weights(width, 4 * width))))
        value = b.emit("Add", value, b.emit("MatMul", hidden, b.constant(weights(4 * width, width))))
    b.result(b.emit("ReduceMean", value, b.constant(np.array([1])), keep_dims=False, names=["embedding"]))
    return _saved(b, folder, "transformer")


def _several(folder: Path) -> str:
    b = Builder()
    x = b.parameter("f32", [-1, 4], "x")
    b.result(b.emit("Multiply", x, b.constant(np.float32(2)), names=["twice"]))
    b.result(b.emit("ReduceSum", x, b.constant(np.array([1])), keep_dims=True, names=["sum"]))
    b.result(b.emit("Greater", x, b.constant(np.float32(0)), names=["positive"]))
    return _saved(b, folder, "several")


def _saved(b: Builder, folder: Path, name: str) -> str:
    save_model(b.model(), folder / f"{name}.xml")
    return str(folder / f"{name}.xml")
