"""irexec against OpenVINO: networks with one layer on which the CPU plugin is known to differ are traced to that layer.

Each network is a convolution with an activation, what leads to the layer, the layer itself, and a pooled head after it. What is known of
the plugin is in tests/oracle/explained.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import irexec
from irexec import Builder, Model
from irexec.ir.graph import Value
from irexec.tools.compare import CompareOptions, compare
from tests.sweep.kind import Case, Kind, Outcome

RNG = np.random.default_rng(3)
Middle = Callable[[Builder, Value], Value]
LAYER = "the layer"


def network(middle: Middle) -> Model:
    """The network around a layer that is given and gives f32[1,4,6,6]."""
    b = Builder("m")
    x = b.parameter("f32", (1, 3, 6, 6), "x")
    sizes = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    x = b.emit("Convolution", x, RNG.standard_normal((4, 3, 3, 3)).astype(np.float32), name="first", **sizes)
    x = middle(b, b.emit("Tanh", x, name="tanh"))
    weights = RNG.standard_normal((5, 4, 1, 1)).astype(np.float32)
    x = b.emit(
        "Convolution", x, weights, name="second", strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1)
    )
    b.result(b.emit("ReduceMean", b.emit("Relu", x, name="relu"), np.array([2, 3]), keep_dims=False, name="mean"))
    return b.model()


def whole(b: Builder, x: Value, kind: str, factor: float) -> Value:
    """In integers. Tanh is often 1: its product must not be near a whole number, which both may cut to another one."""
    return b.emit(
        "Convert", b.emit("Multiply", x, np.float32(factor), name="scaled"), destination_type=kind, name="whole"
    )


def back(b: Builder, x: Value) -> Value:
    return b.emit(
        "Multiply", b.emit("Convert", x, destination_type="f32", name="float"), np.float32(0.01), name="small"
    )


def python_division(b: Builder, x: Value) -> Value:
    return back(b, b.emit("Divide", whole(b, x, "i16", 97.3), np.array(7, np.int16), m_pythondiv=True, name=LAYER))


def squared_difference(b: Builder, x: Value) -> Value:
    x = whole(b, b.emit("Add", x, np.float32(1)), "u8", 97.3)
    return back(b, b.emit("SquaredDifference", x, np.array(90, np.uint8), name=LAYER))


def inverse_error_function(b: Builder, x: Value) -> Value:
    return b.emit("ErfInv", x, name=LAYER)


def sum_of_bytes(b: Builder, x: Value) -> Value:
    x = whole(b, b.emit("Add", x, np.float32(1)), "u8", 97.3)
    x = b.emit("ReduceSum", x, np.array([1]), keep_dims=True, name=LAYER)
    return b.emit("Add", back(b, x), np.zeros((1, 4, 1, 1), np.float32), name="wide")


def loop_of_sums(b: Builder, x: Value) -> Value:
    """A TensorIterator whose state is what it gives."""
    made = irexec.read_model(Path(__file__).parent.parent / "data" / "openvino" / "tensor_iterator.xml")
    node = next(node for node in made.nodes if node.type == "TensorIterator")
    # (2, 4, 3) and (2, 3) from the middle, and back.
    flat = b.emit("Reshape", x, np.array([6, 4, 6]), special_zero=False, name="flat")
    data = b.emit("Slice", flat, np.array([0, 0, 0]), np.array([2, 4, 3]), np.array([1, 1, 1]), name="data")
    start = b.emit("Slice", b.emit("Reshape", x, np.array([24, 6]), special_zero=False, name="rows"), np.array([0, 0]), np.array([2, 3]), np.array([1, 1]), name="start")  # fmt: skip
    node.name = LAYER
    _, every = b.clone_node(node, data, start)
    return b.emit(
        "Add", x, b.emit("ReduceMax", every, np.array([0, 1, 2]), keep_dims=False, name="largest"), name="sum"
    )


MIDDLES: dict[str, Middle] = {
    middle.__name__: middle
    for middle in (
        python_division, squared_difference,  inverse_error_function,  sum_of_bytes,
         loop_of_sums,
    )
}  # fmt: skip


def traced(name: str, *, isolate: bool = False) -> str:
    """Which layer irexec compare names; "" if nothing differs."""
    middle = MIDDLES[name]
    x = np.random.default_rng(11).standard_normal((1, 3, 6, 6)).astype(np.float32)
    found = compare(network(middle), None, {"x": x}, CompareOptions(b_runtime="openvino", isolate=isolate))
    return "" if found.first is None else found.first.row.b.name


def verdict(name: str, *, isolate: bool) -> Outcome:
    """Whether the layer is named, of inputs that each model computes itself, or of its own alone."""
    named = traced(name, isolate=isolate)
    kind = "does not differ" if not named else "traced" if named == LAYER else "wrong"
    return Outcome(f"{kind}, alone" if isolate else kind, named, fails=kind == "wrong")


class Sweep(Kind):
    """The networks of MIDDLES; there is one case of each."""

    cases = 1

    def names(self) -> list[str]:
        return list(MIDDLES)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The network, once as it is and once with the layer alone."""
        yield lambda number: [verdict(name, isolate=isolate) for isolate in (False, True)]
