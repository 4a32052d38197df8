"""Models to draw."""

from __future__ import annotations

import numpy as np

import irexec
from irexec.analysis.builder import Builder
from tests.support.paths import ROOT

DIGITS = ROOT / "samples" / "digits"
DATA = ROOT / "tests" / "data" / "openvino"

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" 'and' `ticked`",
    "line\nbreak\r\n\ttab",
    "\x00\x07\x1b[31mred\u202e\ufffe\uffff\ud800",
    "n" * 10_000,
    "]]> --> %% end ; } { \\ \\n #quot; &amp; <!--",
    "名前/é/🙂",
    "graph TD; subgraph end",
    "",
)
"""Names of layers that must be shown, and nothing else."""


def digits() -> irexec.Model:
    """A small convolutional network of 21 layers."""
    return irexec.read_model(DIGITS / "classifier.xml")


def chain(names: list[str] | tuple[str, ...]) -> irexec.Model:
    """A chain of layers of these names, between a Parameter x and a Result."""
    builder = Builder("chain")
    value = builder.parameter("f32", (1, 4), "x")
    for i, _ in enumerate(names):
        value = builder.emit("Relu", value, name=f"layer{i}")
    builder.result(value)
    model = irexec.Model.of(builder.model())
    for i, name in enumerate(names):
        next(node for node in model.nodes if node.name == f"layer{i}").name = name
    return model


def diamond() -> irexec.Model:
    """x -> a -> (b, c) -> d, where c adds a constant w, and d is the result."""
    builder = Builder("diamond")
    a = builder.emit("Relu", builder.parameter("f32", (1, 4), "x"), name="a")
    b = builder.emit("Sigmoid", a, name="b")
    c = builder.emit("Add", a, builder.constant(np.ones((1, 4), np.float32), "f32", "w"), name="c")
    builder.result(builder.emit("Multiply", b, c, name="d"))
    return irexec.Model.of(builder.model())


def blocks(count: int = 3) -> irexec.Model:
    """``count`` blocks encoder/layer.I of four layers each, and a head."""
    builder = Builder("blocks")
    value = builder.parameter("f32", (1, 4), "x")
    for i in range(count):
        scope = f"encoder/layer.{i}"
        first = builder.emit("Relu", value, name=f"{scope}/relu")
        second = builder.emit("Sigmoid", first, name=f"{scope}/gate/sigmoid")
        third = builder.emit("Tanh", second, name=f"{scope}/gate/tanh")
        value = builder.emit("Add", third, value, name=f"{scope}/add")
    builder.result(builder.emit("Softmax", value, axis=1, name="head"))
    return irexec.Model.of(builder.model())
