"""Public reports of wrong results, rebuilt, and the verdict about each: ``python -m tests.judge_sweep.public``.

A report with values is judged as a recording of them. A report without values, such as one about a fused layer, has a
runtime with this fault. With OpenVINO installed, its CPU plugin is judged on the same model, too. Exit code 1 for
another verdict than the expected one.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from irexec import Model, opset
from irexec.dtypes.elements import F32
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.tools.judge import Judgement, judge
from tests.judge_sweep.faults import replace_output
from tests.reduce_sweep import Editing
from tests.tools.judge.faulty import Damage, plant

Arrays = dict[str, np.ndarray]
_ELEMENTS = {"float32": "f32", "uint8": "u8", "int8": "i8", "int32": "i32", "int64": "i64"}
_X = np.random.default_rng(0).normal(10, 0.01, (4, 8)).astype(np.float32)


def _f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def _whole(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _half(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float16).astype(np.float32)


@dataclass(frozen=True)
class PublicFault:
    """A report.

    Attributes:
        thread: repository and number of its issue.
        what: the runtime and its fault.
        verdict: the expected verdict.
        inputs: inputs by name.
        build: the results of the model, from its parameters.
        seen: the reported tensors; empty for a planted fault.
        damage: the planted fault.
        arithmetic: of the runtime.
    """

    thread: str
    what: str
    verdict: str
    inputs: Arrays
    build: Callable[..., object]
    seen: Arrays = field(default_factory=dict)
    damage: Damage | None = None
    arithmetic: str | None = None

    @property
    def link(self) -> str:
        """The thread as a link of a page."""
        repository, number = self.thread.split("#")
        name = f"#{number}" if repository == "openvinotoolkit/openvino" else self.thread
        return f"[{name}](https://github.com/{repository}/issues/{number})"

    @property
    def model(self) -> Model:
        """The model of the report."""
        parameters = [opset.parameter(x.shape, _ELEMENTS[x.dtype.name], name) for name, x in self.inputs.items()]
        results = self.build(*parameters)
        return Model([*results] if isinstance(results, Sequence) else [results], parameters)  # type: ignore[list-item]

    def judged(self) -> Judgement:
        """The judgement of what was reported."""
        if self.damage is not None:
            with pytest.MonkeyPatch.context() as patch:
                return judge(self.model, self.inputs, runtime=plant(patch, self.damage), arithmetic=self.arithmetic)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recorded.npz"
            np.savez(path, **{**self.inputs, **self.seen})
            return judge(self.model, self.inputs, runtime=str(path), arithmetic=self.arithmetic)


def _distances(x: Value, y: Value) -> Value:
    """Squared distances between rows by |x|^2 - 2 x y + |y|^2."""
    own = opset.reduce_sum(opset.multiply(x, x, names=["xx"]), [1], keep_dims=True, names=["own"])
    other = opset.reduce_sum(opset.multiply(y, y, names=["yy"]), [1], keep_dims=True, names=["other"])
    twice = opset.multiply(opset.matmul(x, y, transpose_b=True, names=["product"]), _f32(2), names=["twice"])
    row = opset.transpose(other, [1, 0], names=["row"])
    return opset.add(opset.subtract(own, twice, names=["apart"]), row, name="distances", names=["distances"])


def _distances_in_halves(x: np.ndarray, y: np.ndarray) -> Arrays:
    """The tensors of ``_distances``, each rounded to f16."""
    x, y = _half(x), _half(y)
    found = {"xx": _half(x * x), "yy": _half(y * y), "product": _half(x @ y.T)}
    found |= {"own": _half(found["xx"].sum(1, keepdims=True)), "other": _half(found["yy"].sum(1, keepdims=True))}
    found |= {"twice": _half(2 * found["product"]), "row": found["other"].T}
    found |= {"apart": _half(found["own"] - found["twice"])}
    return {**found, "distances": _half(found["apart"] + found["row"])}


def _only_unobserved(inner: str, layer: str, change: Callable[[Value, Editing], Value]) -> Damage:
    """A layer has another value unless an inner tensor is observed."""

    def damage(model: Model, values: Sequence[Value]) -> None:
        nodes = {node.name: node for node in model.nodes}
        if layer not in nodes or inner not in nodes or nodes[inner].outputs[0] in values:
            return
        node = nodes[layer]
        replace_output(model, values, node, lambda edit: change(node.outputs[0], edit))

    return damage


def _layer(edit: Editing, type: str, *inputs: Value) -> Value:
    return edit.layer(type, "opset1", inputs, Fact(F32, (3,))).outputs[0]


def _top_one(mode: str) -> Callable[[Value], Sequence[Value]]:
    return lambda x: opset.topk(
        x, np.int64(1), axis=0, mode=mode, sort="value", index_element_type="i64", name="top", names=["value", "index"]
    )


def _named(make: Callable[..., Value], **attributes: object) -> Callable[..., Value]:
    return lambda *inputs: make(*inputs, name="y", names=["y"], **attributes)


def _after(first: Callable[..., Value], make: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda x: make(first(x, name="s", names=["s"]))


_BYTES = {"a": np.array([200, 100, 255, 128], np.uint8), "b": np.array([100, 200, 10, 200], np.uint8)}
_SIGNED = {"a": np.array([100, -110, 60], np.int8), "b": np.array([80, -50, 90], np.int8)}

FAULTS = (
    PublicFault(
        "openvinotoolkit/openvino#37731", "GPU: PRelu of Log(-1) is 0", "bug", {"x": _f32(-1)},
        _after(opset.log, lambda s: opset.prelu(s, _f32(0.1), name="y", names=["y"])),
        {"s": _f32(np.nan), "y": _f32(0)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#37729", "GPU: Elu of Sqrt(-1) is 0", "bug", {"x": _f32(-1)},
        _after(opset.sqrt, lambda s: opset.elu(s, alpha=1.0, name="y", names=["y"])),
        {"s": _f32(np.nan), "y": _f32(0)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35934", "CPU 2026.1: Gelu of infinity is NaN", "bug", {"x": _f32(np.inf, np.inf, 5e30, 75)},
        _named(opset.gelu, approximation_mode="ERF"), {"y": _f32(np.nan, np.nan, 5e30, 75)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35838", "CPU 2026.1: Power of i64 is rounded to f32", "bug",
        {"a": _whole(13, 17, 19, 23), "b": _whole(8, 7, 7, 6)}, _named(opset.power),
        {"y": _whole(815730752, 410338688, 893871744, 148035888)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35829", "CPU 2026.1: Mod of i64 by 13 is 0 and -128", "bug",
        {"a": _whole(3, 1234567890, 999999999, 1999999993, 1500000001), "b": _whole(13, 13, 13, 13, 13)},
        _named(opset.floor_mod), {"y": _whole(3, 0, -64, -128, 0)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#2925", "GPU 2021.1 in f16: Mish overflows", "bug", {"x": _f32(12, 1)},
        _named(opset.mish), {"y": _f32(np.nan, 0.865)}, arithmetic="f16",
    ),
    PublicFault(
        "openvinotoolkit/openvino#31252", "CPU 2025.3: SoftSign at the end of a fused chain is wrong", "fusion", {"x": _f32(0.5, 1, 3)},
        lambda x: opset.softsign(opset.add(x, _f32(1), name="sum", names=["sum"]), name="y", names=["y"]),
        damage=_only_unobserved("sum", "y", lambda y, edit: _layer(edit, "Add", y, y)),
    ),
    PublicFault(
        "openvinotoolkit/openvino#25744", "CPU 2024.2: wrong results, which are right if more outputs are added", "fusion", {"x": _f32(-1, 1, 3)},
        lambda x: opset.multiply(opset.relu(x, name="inner", names=["inner"]), _f32(3), name="y", names=["y"]),
        damage=_only_unobserved("inner", "y", lambda y, edit: _layer(edit, "Negative", y)),
    ),
    PublicFault(
        "openvinotoolkit/openvino#29552", "GPU in f16: distances by a sum of squares", "precision", {"x": _X, "y": _X + np.float32(0.01)},
        _distances, _distances_in_halves(_X, _X + np.float32(0.01)), arithmetic="f16",
    ),
    PublicFault(
        "openvinotoolkit/openvino#23673", "CPU 2024.0 to 2026.4: Softplus below -10 is inexact, and negative", "bug",
        {"x": _f32(-29.100761, -12)}, _named(opset.softplus), {"y": _f32(-1.9073486e-06, 5.722046e-06)},
    ),
    PublicFault(
        "microsoft/onnxruntime#10491", "CPU 1.10: Softplus of -12.3392 by log(1 + exp(x))", "precision",
        {"x": _f32(-12.3392)}, _named(opset.softplus), {"y": _f32(4.41073e-06)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35931", "CPU 2026.1: Softplus of -75 is 0", "agrees", {"x": _f32(-150, -75, 1)},
        _named(opset.softplus), {"y": _f32(0, 0, 1.3132617)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#33398", "CPU 2026.0: a later one of equal values is the largest", "agrees", {"x": _f32(1, 3, 3, 2)},
        _top_one("max"), {"value": _f32(3), "index": np.array([2])},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35928", "CPU 2026.1: ReduceMin passes over NaN and what was before", "open", {"x": _f32(2, 8, np.nan, 5, 6)},
        _named(lambda x, **names: opset.reduce_min(x, [0], **names)), {"y": np.float32(5)},  # type: ignore[arg-type]
    ),
    PublicFault(
        "openvinotoolkit/openvino#33455", "GPU: Minimum of NaN and a number is the number", "open",
        {"a": _f32(np.nan, 1, np.nan, 5), "b": _f32(2, np.nan, 3, 4)}, _named(opset.minimum), {"y": _f32(2, 1, 3, 4)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35839", "CPU 2026.1: Minimum of NaN and a number is the second one", "open",
        {"a": _f32(np.nan, 7, np.nan, -2.5), "b": _f32(10, np.nan, np.nan, 9)}, _named(opset.minimum),
        {"y": _f32(10, np.nan, np.nan, -2.5)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35930", "CPU 2026.1: HardSigmoid of NaN is 1", "open", {"x": _f32(np.nan, np.nan, 1e25, 5)},
        lambda x: opset.hard_sigmoid(x, np.float32(0.16667), np.float32(0.5), name="y", names=["y"]),
        {"y": _f32(1, 1, 1, 1)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#37730", "GPU: Maximum of 0 and Sqrt(-1) is 0", "open", {"x": _f32(-1)},
        _after(opset.sqrt, lambda s: opset.maximum(_f32(0), s, name="y", names=["y"])),
        {"s": _f32(np.nan), "y": _f32(0)},
    ),
    PublicFault("openvinotoolkit/openvino#37732", "GPU: Sign of NaN is -1", "open", {"x": _f32(np.nan)}, _named(opset.sign), {"y": _f32(-1)}),
    PublicFault(
        "openvinotoolkit/openvino#36290", "CPU: FakeQuantize of an empty range is NaN", "open", {"x": _f32(0.5, -1, 2)},
        lambda x: opset.fake_quantize(x, *map(_f32, (0, 0, 2, 2)), levels=256, name="y", names=["y"]),
        {"y": _f32(np.nan, np.nan, np.nan)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#33456", "GPU: Softmax of an infinity is NaN throughout", "model", {"x": _f32(np.inf, 1, 2)},
        _named(opset.softmax, axis=0), {"y": _f32(np.nan, np.nan, np.nan)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#33626", "GPU: the largest of NaNs is number 6", "model", {"x": _f32(*[np.nan] * 58)},
        _top_one("max"), {"value": _f32(np.nan), "index": np.array([6])},
    ),
    PublicFault("openvinotoolkit/openvino#35647", "CPU 2026.1: u8 Add saturates", "no-bound", _BYTES, _named(opset.add), {"y": np.full(4, 255, np.uint8)}),
    PublicFault(
        "openvinotoolkit/openvino#35651", "CPU 2026.1: i8 Add saturates", "no-bound",
        {"a": np.array([100, 127, -128, -100], np.int8), "b": np.array([100, 10, -10, -50], np.int8)},
        _named(opset.add), {"y": np.array([127, 127, -128, -128], np.int8)},
    ),
    PublicFault(
        "openvinotoolkit/openvino#35798", "CPU 2026.1: i8 Multiply saturates", "no-bound", _SIGNED,
        _named(opset.multiply), {"y": np.full(3, 127, np.int8)},
    ),
)  # fmt: skip


def main() -> int:
    """Print a line for each report; the exit code."""
    wrong = 0
    for fault in FAULTS:
        found = fault.judged()
        wrong += found.verdict != fault.verdict
        print(f"{fault.thread} {fault.what}\n    {found.verdict}: {found.sentence}")
        if importlib.util.find_spec("openvino") is not None:
            own = judge(fault.model, fault.inputs, runtime="openvino")
            print(f"    OpenVINO's CPU plugin {own.version.split('-')[0]}: {own.verdict}")
    print(f"{len(FAULTS)} reports, {wrong} with another verdict than expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
