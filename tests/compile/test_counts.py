"""How many steps and copies the recorded networks take, and work that must not grow: per layer, or for tensors without elements."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.kernel import Kernel
from irexec.backend.native.elementwise import Followed
from irexec.backend.registry import add_native, is_element_wise, loader
from irexec.compile.steps import Plan, Step
from irexec.dtypes.elements import F32
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import resolve
from tests.support.networks import feeds, unpacked
from tests.support.paths import NETWORKS
from tests.support.tiers import some

# What chains hang on: products, pooling, normalizations, reductions and other chains.
FEEDS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "MatMul", "MaxPool", "AvgPool", "MVN",
         "GroupNormalization", "NormalizeL2", "ReduceMean", "ReduceSum", "ReduceMax", "Softmax", "Chain")  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Networks, and the counts of all their plans together: steps, copies of tensors by a Reshape, and Transposes."""

    every: int
    steps: int
    copies: int
    transposes: int


# Without any pass there are 5,152 steps of all networks; half of them is the aim.
_ALL = Limits(1, 2213, 27, 2)
_A_THIRD = Limits(3, 860, 4, 0)


@pytest.fixture(
    scope="module", params=[pytest.param(_A_THIRD, id="third"), pytest.param(_ALL, id="all", marks=pytest.mark.slow)]
)
def limits(request: pytest.FixtureRequest) -> Limits:
    return request.param


@pytest.fixture(scope="module")
def compiled(limits: Limits, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[CompiledModel, Plan]]:
    """Each network for NumPy alone, with the plan for the shapes of its first run."""
    folder, found = tmp_path_factory.mktemp("networks"), {}
    for path in sorted(NETWORKS.glob("*.zip"))[:: limits.every]:
        xml = unpacked(path.stem, folder)
        model = irexec.compile_model(irexec.read_model(xml), threads=1, native=False)
        inputs = feeds(xml, model.inputs)[0]
        found[path.stem] = model, model.program.plan(tuple(array.shape for array in inputs), None)
    return found


@pytest.fixture(scope="module")
def plans(compiled: dict[str, tuple[CompiledModel, Plan]]) -> dict[str, Plan]:
    return {name: plan for name, (_, plan) in compiled.items()}


def test_steps(limits: Limits, plans: dict[str, Plan]) -> None:
    assert sum(len(plan.steps) for plan in plans.values()) <= limits.steps


def test_copies_of_tensors_in_another_order_or_shape(limits: Limits, plans: dict[str, Plan]) -> None:
    """A Transpose of known shape is a view. A Reshape that is a step copies what a Transpose before it left in another order:
    heads of attention, windows of images. The others are of shapes that are known only when they run."""
    types = Counter(
        step.report.type
        for plan in plans.values()
        for step in plan.steps
        if step.call is None or step.call.check is None
    )
    assert types["Transpose"] == 0
    assert sum(types[name] for name in ("Reshape", "Squeeze", "Unsqueeze")) <= limits.copies
    everything = Counter(step.report.type for plan in plans.values() for step in plan.steps)
    assert everything["Transpose"] <= limits.transposes


def test_element_wise_steps_after_what_could_take_them_have_a_reason(plans: dict[str, Plan]) -> None:
    unexplained, count = [], 0
    for name, plan in plans.items():
        producers = {slot: step for step in plan.steps for slot in step.outputs if slot >= 0}
        for step in filter(_is_element_wise, plan.steps):
            for producer in (producers[slot] for slot in step.inputs if slot in producers):
                if producer.kernel is None or producer.report.type not in FEEDS:
                    continue
                count += 1
                layers = {node.name for node in (*step.report.origins, *producer.report.origins)}
                if not any(refusal.layer in layers for refusal in plan.refusals):
                    unexplained.append((name, producer.node.name, step.node.name))
    assert count > 0
    assert unexplained == []


def _is_element_wise(step: Step) -> bool:
    return step.report.type == "Chain" or (
        step.report.type == step.node.type and is_element_wise(resolve(step.node.type, step.node.version))
    )


def test_no_constant_is_held_twice(compiled: dict[str, tuple[CompiledModel, Plan]]) -> None:
    """Neither in two packings, nor packed and as it is stored."""
    for name, (model, _) in compiled.items():
        packings = Counter(source for sources, _ in model.program.compilation.store._entries for source in sources)
        assert packings, name
        assert set(packings.values()) == {1}, name


def test_the_arena_is_a_part_of_all_tensors() -> None:
    """A row of residual blocks: three tensors live at any time, whatever the depth; the rest is workspace."""
    builder, size, depth = irexec.Builder("residual"), 1 << 16, 20
    x = builder.parameter(F32, (64, size // 64), "x")
    for _ in range(depth):
        y = builder.emit("Softmax", builder.emit("Softmax", x, axis=1), axis=0)
        x = builder.emit("Add", x, y)
    builder.result(x)
    plan = irexec.compile_model(builder.model(), threads=1).program.plan((), None)
    assert plan.intermediate >= 2 * depth * size * 4
    assert plan.arena <= 7 * size * np.dtype(np.float32).itemsize


@pytest.mark.parametrize(
    "name",
    some(["bert_sdpa", "diffusion_unet", "gpt2_sdpa", "swin", "unet", "whisper_encoder"], ("swin", "diffusion_unet")),
)
def test_kernels_are_compared_without_being_constructed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layouts and kernels are chosen by estimates: each step constructs its kernel, and no other is constructed."""
    constructed: Counter[str] = Counter()
    add_native()
    loader.load()
    for kind in _kinds(Kernel):
        monkeypatch.setattr(kind, "__init__", _counting(kind, kind.__init__, constructed))
    xml = unpacked(name, tmp_path)
    model = irexec.compile_model(irexec.read_model(xml), threads=1)
    shapes = tuple(array.shape for array in feeds(xml, model.inputs)[0])
    made_before = sum(constructed.values())
    plan = model.program.plan(shapes, None)
    steps = [step.kernel for step in plan.steps if step.kernel is not None]
    kernels = Counter(type(part).__name__ for kernel in steps for part in _parts(kernel))
    assert made_before == 0
    assert kernels.total() >= 9
    # A Concat whose inputs were written side by side is not a step.
    others = constructed - kernels
    assert others.keys() <= {"Concat", "Moves"}
    assert others.total() <= 8
    assert kernels - constructed == Counter()


def _parts(kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernel, and those that it consists of."""
    return (kernel, kernel.kernel, kernel.chain) if isinstance(kernel, Followed) else (kernel,)


def _kinds(kind: type[Kernel]) -> Iterator[type[Kernel]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)


def _counting(kind: type[Kernel], construct: Callable[..., None], constructed: Counter[str]) -> Callable[..., None]:
    def counted(self: Kernel, *arguments: Any, **named: Any) -> None:
        constructed[kind.__name__] += type(self) is kind
        construct(self, *arguments, **named)

    return counted


# What is done for a layer does not grow with the number of layers, where every tensor is asked for, or a Split has many
# parts.


def _calls(work: Callable[[], Any]) -> int:
    """Number of calls of functions and resumptions of generators in ``work``."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _chain(layers: int) -> irexec.Model:
    builder = irexec.Builder("chain")
    value = builder.parameter("f32", (1, 4), "x")
    for i in range(layers // 2):
        value = builder.emit("Multiply", builder.emit("Relu", value, name=f"relu{i}"), value, name=f"mul{i}")
    builder.result(value)
    return builder.model()


def _parts_of_many(layers: int) -> irexec.Model:
    builder = irexec.Builder("parts")
    parts = builder.emit("Split", builder.parameter("f32", (layers, 4), "x"), np.int64(0), num_splits=layers)
    builder.result(builder.emit("Concat", *[builder.emit("Relu", part) for part in parts], axis=0))
    return builder.model()


def _results(layers: int) -> irexec.Model:
    builder = irexec.Builder("results")
    x = builder.parameter("f32", (1, 4), "x")
    for _ in range(layers):
        builder.result(builder.emit("Relu", x, name="same"))
    return builder.model()


@pytest.mark.parametrize("build", [_chain, _parts_of_many, _results])
@pytest.mark.parametrize("everything", some([True, False], [True]))
def test_calls_for_each_layer(build: Callable[[int], irexec.Model], everything: bool) -> None:
    def work(layers: int) -> None:
        compiled = irexec.compile_model(build(layers))
        inputs = [np.ones([int(size) for size in port.shape or ()], np.float32) for port in compiled.inputs]
        names = [node.name for node in compiled.model.nodes if node.type not in ("Constant", "Result")]
        compiled.session().run(inputs, outputs=names if everything else None)

    work(50)
    few, many = _calls(lambda: work(50)), _calls(lambda: work(200))
    assert many < 5 * few


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lengths", [[1, 4, 2], [0, 3, 4], [7], [2, -1, 2]])
def test_parts_of_any_array(lengths: list[int], order: Any) -> None:
    """They are slices, which are the same whatever the memory of the array is."""
    builder = irexec.Builder("parts")
    x = builder.parameter("f32", (3, 7, 2), "x")
    parts = builder.emit("VariadicSplit", x, np.int64(1), np.array(lengths))
    for i, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
        builder.result(part, f"part{i}")
        builder.result(builder.emit("Exp", builder.emit("Transpose", part, np.array([2, 0, 1]))), f"exp{i}")
    data = np.arange(42, dtype=np.float32).reshape(3, 7, 2) / 10
    found = irexec.compile_model(builder.model())([np.asarray(data, order=order)])
    expected = np.split(data, np.cumsum([2, 3, 2] if -1 in lengths else lengths)[:-1], 1)
    for i, part in enumerate(expected):
        np.testing.assert_array_equal(found[f"part{i}"], part)
        np.testing.assert_allclose(found[f"exp{i}"], np.exp(part).transpose(2, 0, 1), rtol=1e-6)


# What has no elements is not computed, so that nothing on the way can be too large: attributes may be any number up to
# 2^63 - 1.


LARGE = 2**40
ROWS: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], tuple[Any, ...]]] = [
    ("DepthToSpace", {"mode": "blocks_first", "block_size": LARGE}, (1, 0, 0, 1), (1, 0, 0, LARGE), ()),
    ("DepthToSpace", {"mode": "depth_first", "block_size": LARGE}, (1, 0, 0, 1), (1, 0, 0, LARGE), ()),
    ("LRN", {"alpha": 1.0, "beta": 0.5, "bias": 1.0, "size": 2**63 - 1}, (0, 2, 3), (0, 2, 3), (np.array([1]),)),
    ("LRN", {"alpha": 1.0, "beta": 0.5, "bias": 1.0, "size": 2**61 - 1}, (0, 2, 3), (0, 2, 3), (np.array([1, 2]),)),
]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("known", ["shape", "rank", "value"])
@pytest.mark.parametrize(("type", "attributes", "shape", "expected", "rest"), ROWS)
def test_no_elements(
    type: str,
    attributes: dict[str, Any],
    shape: tuple[int, ...],
    expected: tuple[int, ...],
    rest: tuple[np.ndarray, ...],
    known: str,
    optimize: bool,
) -> None:
    x = np.zeros(shape, np.float32)
    builder = irexec.Builder("m")
    given = x if known == "value" else builder.parameter("f32", shape if known == "shape" else (-1,) * len(shape), "x")
    builder.result(builder.emit(type, builder.constant(given) if known == "value" else given, *rest, **attributes))
    model = builder.model()
    assert not irexec.validate(model)
    result = irexec.compile_model(model, optimize=optimize)([] if known == "value" else [x])[0]
    assert result.shape == expected
    assert result.dtype == np.float32


def test_effects_remain() -> None:
    """An Assign of no elements changes the state."""
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (0,), "x")
    kept = builder.emit("ReadValue", x, variable_id="v", variable_type="f32", variable_shape="0", version="opset6")
    builder.emit("Assign", kept, variable_id="v", version="opset6")
    builder.result(kept)
    session = irexec.compile_model(builder.model()).session()
    session.run([np.zeros(0, np.float32)])
    assert session.variables["v"].shape == (0,)


def test_values_are_not_propagated_through_large_arrays() -> None:
    """The sum over channels is of 2 elements, but its windows are of 2^30 bytes: a run may compute it, shape inference does not."""
    builder = irexec.Builder("m")
    x = builder.constant(np.ones((1, 2), np.float32))
    builder.result(builder.emit("LRN", x, np.array([1]), alpha=1.0, beta=0.5, bias=1.0, size=2**28))
    model = builder.model()
    tracemalloc.start()
    infer_shapes(model)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert highest < 1 << 24


def test_kernels_do_not_reckon_with_sizes_beyond_any_memory() -> None:
    """The keys are of more than 2^63 bytes; the error names them, and not an array that a kernel would have made."""
    builder = irexec.Builder("m")
    query, key = builder.parameter("f32", (1, 1, 2, 4), "query"), builder.parameter("f32", (1, 1, 2**62, 4), "key")
    builder.result(builder.emit("ScaledDotProductAttention", query, key, key, causal=False))
    with pytest.raises(irexec.NodeError, match=r"'key' f32\[1,1,4611686018427387904,4\] takes"):
        irexec.compile_model(builder.model())
