"""Reduce networks with a planted fault.

Each network gets one fault in a layer that is chosen at random, and is reduced by the check that sees it. What is left must have at
most three layers beside Parameters, Constants and Results, the layer with the fault among them, and the printed command must show
the fault. Plants that need OpenVINO ask the real one. The networks are those of tests/data/networks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import irexec
from irexec.analysis.builder import packed
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import F32, I32
from irexec.errors import IrexecError
from irexec.io import write
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value
from irexec.tools.reduce import (
    Check,
    DoesNotFail,
    FindingCheck,
    ReduceOptions,
    Reduction,
    RuntimeCheck,
    ValuesCheck,
    reduce,
)
from irexec.tools.run.input_sources import InputSource
from tests.support.networks import NAMES, feeds, unpacked
from tests.support.paths import ROOT
from tests.sweep.kind import Case, Kind, Outcome, temporary

MOST = 3


class Unsuitable(Exception):
    """A network has no layer in which the fault can be planted."""


@dataclass(frozen=True)
class Planted:
    """A fault.

    Attributes:
        layers: the names of the layers of which at least one must be left.
        check: what sees it.
        shown: whether the output and the exit code of the printed command show it.
    """

    layers: tuple[str, ...]
    check: Callable[[], Check]
    shown: Callable[[int, str], bool]


@dataclass(frozen=True)
class Row:
    """What came of one network."""

    network: str
    plant: str
    fault: str
    before: int = 0
    after: int = 0
    types: tuple[str, ...] = ()
    checks: int = 0
    seconds: float = 0.0
    problem: str = ""


class Editing:
    """Adds layers to a model."""

    def __init__(self, model: irexec.Model) -> None:
        self.model = model
        self.next = max(node.id for node in model.nodes) + 1

    def layer(self, type: str, version: str, inputs: Sequence[Value], fact: Fact, **attributes: str) -> Node:
        node = Node(
            self.next,
            f"planted {type} {self.next}",
            type,
            version,
            [Input(value, value.fact) for value in inputs],
            attributes=attributes,
        )
        node.outputs.append(Value(node, 0, fact))
        self.next += 1
        # Before its readers, so that the order of the file stays a topological one.
        position = max((self.model.nodes.index(value.node) for value in inputs), default=-1) + 1
        self.model.nodes.insert(position, node)
        return node

    def constant(self, array: np.ndarray, element: irexec.Element) -> Value:
        attributes = {"element_type": element.name, "shape": ",".join(map(str, array.shape))}
        node = self.layer("Constant", "opset1", [], Fact(element, array.shape), **attributes)
        node.constant = packed(array, element)
        return node.outputs[0]

    def put_after(self, value: Value, new: Value, added: Sequence[Node]) -> None:
        """Every reader of ``value`` but the added layers reads ``new``."""
        for node in self.model.nodes:
            for port in node.ports:
                if port.source is value and node not in added:
                    port.source = new


def floats(model: irexec.Model, rng: np.random.Generator, rank: int | None = None, channels: bool = False) -> Value:
    """A random f32 tensor between layers."""
    facts = infer_shapes(model).facts
    values = [
        value
        for node in model.nodes
        if node.type not in ("Parameter", "Constant", "Result", "ReadValue", "Assign") and any(v is not None and v.node.type != "Constant" for v in node.inputs)
        for value in node.outputs
        if facts[value].element is F32 and (rank is None or facts[value].rank == rank) and any(v is value for n in model.nodes for v in n.inputs)
        and (not channels or isinstance((facts[value].shape or (0, None))[1], int))
    ]  # fmt: skip
    values = [value for value in values if not follows_constants(value, set())]
    if not values:
        raise Unsuitable("no such tensor")
    return values[int(rng.integers(len(values)))]


def follows_constants(value: Value, seen: set[Node]) -> bool:
    """Whether a value does not depend on any input."""
    waiting = [value.node]
    while waiting:
        node = waiting.pop()
        if node.type in ("Parameter", "ReadValue"):
            return False
        if node not in seen:
            seen.add(node)
            waiting += [source.node for source in node.inputs if source is not None]
    return True


def shown_by_compare(code: int, output: str) -> bool:
    return code in (1, 3, 4)


def refused(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """A transposed convolution of one group, which the CPU plugin refuses."""
    value, edit = floats(model, rng, rank=4, channels=True), Editing(model)
    shape = infer_shapes(model).facts[value].shape
    assert shape is not None
    channels = shape[1]
    assert isinstance(channels, int)
    weights = edit.constant(rng.standard_normal((1, channels, channels, 1, 1)).astype(np.float32), F32)
    node = edit.layer(
        "GroupConvolutionBackpropData", "opset1", [value, weights], Fact(F32, shape),
        strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,0", output_padding="0,0", auto_pad="explicit",
    )  # fmt: skip
    edit.put_after(value, node.outputs[0], [node])
    return Planted((node.name,), lambda: RuntimeCheck("openvino", timeout=120), shown_by_compare)


def division(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """An integer Divide that floors, which the CPU plugin rounds towards zero."""
    value, edit = floats(model, rng), Editing(model)
    shape = infer_shapes(model).facts[value].shape
    scaled = edit.layer(
        "Multiply",
        "opset1",
        [value, edit.constant(np.array(-50, np.float32), F32)],
        Fact(F32, shape),
        auto_broadcast="numpy",
    )
    whole = edit.layer("Convert", "opset1", [scaled.outputs[0]], Fact(I32, shape), destination_type="i32")
    divided = edit.layer(
        "Divide",
        "opset1",
        [whole.outputs[0], edit.constant(np.array(7, np.int32), I32)],
        Fact(I32, shape),
        auto_broadcast="numpy",
        m_pythondiv="true",
    )
    back = edit.layer("Convert", "opset1", [divided.outputs[0]], Fact(F32, shape), destination_type="f32")
    edit.put_after(value, back.outputs[0], [scaled, whole, divided, back])
    return Planted((divided.name,), lambda: RuntimeCheck("openvino", timeout=120), shown_by_compare)


def nan(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """The root of negative values."""
    value, edit = floats(model, rng), Editing(model)
    fact = Fact(F32, infer_shapes(model).facts[value].shape)
    less = edit.layer(
        "Subtract", "opset1", [value, edit.constant(np.array(1e4, np.float32), F32)], fact, auto_broadcast="numpy"
    )
    root = edit.layer("Sqrt", "opset1", [less.outputs[0]], fact)
    edit.put_after(value, root.outputs[0], [less, root])
    return Planted((root.name,), lambda: ValuesCheck(["nan"]), lambda code, output: code == 1 and "NaN" in output)


def nan_weight(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """A NaN among the weights of a product."""
    positions = [
        (node, i, source.node)
        for node in model.nodes
        if node.type in ("Convolution", "MatMul", "GroupConvolution", "Add", "Multiply")
        for i, source in enumerate(node.inputs)
        if source is not None
        and source.node.constant is not None
        and source.node.constant.element is F32
        and source.node.constant.count
    ]
    positions = [position for position in positions if not follows_constants(position[0].outputs[0], set())]
    if not positions:
        raise Unsuitable("no product with weights")
    node, _, source = positions[int(rng.integers(len(positions)))]
    assert source.constant is not None
    array = constant_value(source.constant).copy()
    array.reshape(-1)[:] = np.nan
    source.constant = packed(array, F32)
    readers = [n.name for n in model.nodes if any(v is not None and v.node is source for v in n.inputs)]
    return Planted(
        (*readers, node.name), lambda: ValuesCheck(["nan"]), lambda code, output: code == 1 and "NaN" in output
    )


def declared_shape(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """An output port that declares another shape than its layer gives."""
    facts = infer_shapes(model).facts
    positions = [
        (node, value)
        for node in model.nodes
        if node.type not in ("Parameter", "Constant", "Result")
        for value in node.outputs
        if value.fact is not None
        and value.fact.shape
        and any(isinstance(size, int) for size in facts[value].shape or ())
    ]
    node, value = positions[int(rng.integers(len(positions)))]
    assert value.fact is not None and value.fact.shape is not None
    sizes = list(value.fact.shape)
    known = [axis for axis, size in enumerate(facts[value].shape or ()) if isinstance(size, int)]
    axis = known[int(rng.integers(len(known)))]
    sizes[axis] = (facts[value].shape or ())[axis] + 3
    value.fact = Fact(value.fact.element, tuple(sizes))
    return Planted((node.name,), lambda: FindingCheck("IR201"), lambda code, output: code == 1 and "IR201" in output)


_WRONG = {
    "axis": "9", "strides": "0,0,0,0,0", "destination_type": "f31", "keep_dims": "perhaps", "transpose_a": "maybe",
    "mode": "round", "auto_broadcast": "some",
}  # fmt: skip


def wrong_attribute(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """An attribute that its operation does not take."""
    node = _with_wrong_attribute(model, rng)
    codes = [
        finding.code
        for finding in irexec.validate(model)
        if finding.layer_name == node.name and finding.code.startswith("IR1")
    ]
    if not codes:
        raise Unsuitable("it is taken")
    return Planted((node.name,), lambda: FindingCheck(codes[0]), lambda code, output: code == 1 and codes[0] in output)


def wrong_attribute_for_openvino(model: irexec.Model, rng: np.random.Generator) -> Planted:
    """The same, found by what OpenVINO says of it."""
    node = _with_wrong_attribute(model, rng)
    return Planted((node.name,), lambda: RuntimeCheck("openvino", timeout=120), shown_by_compare)


def _with_wrong_attribute(model: irexec.Model, rng: np.random.Generator) -> Node:
    positions = [
        (node, name)
        for node in model.nodes
        for name in node.attributes
        if name in _WRONG and node.type not in ("Constant", "Parameter")
    ]
    if not positions:
        raise Unsuitable("no such attribute")
    node, name = positions[int(rng.integers(len(positions)))]
    node.attributes[name] = _WRONG[name]
    return node


PLANTS: dict[str, Callable[[irexec.Model, np.random.Generator], Planted]] = {
    "nan": nan, "nan-weight": nan_weight, "declared-shape": declared_shape, "wrong-attribute": wrong_attribute,
    "refused": refused, "division": division, "wrong-attribute-openvino": wrong_attribute_for_openvino,
}  # fmt: skip
NEED_OPENVINO = ("refused", "division", "wrong-attribute-openvino")


def run(name: str, plant: str, seed: int, folder: Path, reproduce: bool = True) -> Row:
    """Plant a fault, reduce, and hold the result to what the module's docstring says."""
    source = unpacked(name, folder)
    model = irexec.read_model(source)
    rng = np.random.default_rng([seed, *plant.encode(), *name.encode()])
    arrays = dict(zip((port.name for port in model.inputs), feeds(source, model.inputs)[0], strict=True))
    planted = PLANTS[plant](model, rng)
    fault = ", ".join(planted.layers)
    faulty, inputs = folder / "faulty.xml", folder / "inputs.npz"
    write(model, faulty)
    np.savez(inputs, **arrays)
    start = time.perf_counter()
    try:
        with planted.check() as check:
            report = reduce(
                faulty, check, [InputSource(None, str(inputs))], ReduceOptions(output=str(folder / "min.xml"))
            )
    except DoesNotFail:
        raise Unsuitable("the fault has no effect") from None
    except IrexecError as error:
        return Row(name, plant, fault, problem=f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - start
    problem = judged(report, planted, folder, reproduce)
    types = tuple(layer.type for layer in report.layers)
    return Row(name, plant, fault, report.before, len(report.layers), types, report.checks, round(seconds, 2), problem)


def judged(report: Reduction, planted: Planted, folder: Path, reproduce: bool) -> str:
    """What is wrong with a reduction; "" if nothing is."""
    if len(report.layers) > MOST:
        return f"{len(report.layers)} layers are left"
    if not {layer.name for layer in report.layers} & set(planted.layers):
        return f"the layer with the fault, {planted.layers[0]!r}, is not left"
    if not reproduce:
        return ""
    command = [sys.executable, "-m", *report.command]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    return (
        ""
        if planted.shown(done.returncode, done.stdout)
        else f"the command ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
    )


class Sweep(Kind):
    """A fault in each network, of the plants in turns."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--plants", nargs="+", choices=PLANTS, default=list(PLANTS))
        add("--each", action="store_true", help="every plant in every network")

    def names(self) -> list[str]:
        return NAMES

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The first plant that the network has a layer for, or every one."""
        plants, first = self.options.plants, self.names().index(name)

        def case(number: int) -> Iterator[Outcome]:
            for plant in (plants[(first + i) % len(plants)] for i in range(len(plants))):
                with temporary() as folder:
                    try:
                        row = run(name, plant, number, folder)
                    except Unsuitable:
                        continue
                text = f"{row.before} -> {row.after} {' '.join(row.types)}, {row.checks} checks {row.problem}"
                kind = f"{plant}: {'not reduced' if row.problem else 'reduced'}"
                yield Outcome(kind, text, bool(row.problem), asdict(row))
                if not self.options.each:
                    return

        yield case
