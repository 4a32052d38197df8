"""How many steps and copies of tensors the recorded networks take: numbers that may only get smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
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
_ALL = Limits(1, 2212, 27, 2)
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
    assert others.keys() <= {"Concat"}
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
