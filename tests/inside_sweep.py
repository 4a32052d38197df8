"""Tell planted transformations from planted kernels.

A transformation is planted in the model that OpenVINO has transformed, a kernel in a runtime that computes the source
with irexec's kernels and a fault in one layer. Each fault changes a result visibly, by itself. ``irexec inside --check``
must name the right one of both; a network without a fault is "neither".

Case 0 of every recorded network, and of those in ``--models``, is the network as it is beside OpenVINO: "neither", or a
difference that ``EXPLAINED`` explains. The other cases are planted in ten networks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import packed
from irexec.analysis.shape_inference import infer_shapes
from irexec.ir.graph import Node
from irexec.tools.compare import CompareOptions
from irexec.tools.inside import Inside, check, inside
from irexec.tools.run.input_sources import InputSource
from tests.judge_sweep.faults import FAULTS, planted
from tests.support.networks import NAMES, feeds, unpacked
from tests.sweep.kind import Case, Kind, Outcome, temporary
from tests.tools.judge.faulty import plant

NETWORKS = (
    "resnet18", "yolo", "bert_sdpa", "mobilenet_v3", "unet", "gru_tagger", "swin", "convnext", "super_resolution",
    "vit_sdpa",
)  # fmt: skip
EXPLAINED: dict[str, str] = {}
"""Networks in which OpenVINO has other values than the source, and the reason."""
_TRIES = 30
_VISIBLE = 1e-2


def _scaled(node: Node) -> bool:
    return _constant(node, lambda array: array * 1.25)


def _transposed(node: Node) -> bool:
    square = node.constant is not None and len(node.constant.shape) == 2 and len(set(node.constant.shape)) == 1
    return square and _constant(node, lambda array: array.T)


def _dropped(node: Node) -> bool:
    is_bias = node.constant is not None and max(node.constant.shape, default=1) == node.constant.count
    return is_bias and _constant(node, lambda array: 0 * array)


def _reversed(node: Node) -> bool:
    return _constant(node, lambda array: array[::-1])


def _constant(node: Node, change: Callable[[np.ndarray], np.ndarray]) -> bool:
    constant = node.constant
    if constant is None or not constant.element.is_float or constant.count < 4:
        return False
    node.constant = packed(np.ascontiguousarray(change(node.array)), constant.element)
    return True


def _attribute(name: str, value: str) -> Callable[[Node], bool]:
    def change(node: Node) -> bool:
        if name not in node.attributes:
            return False
        node.attributes[name] = value
        return True

    return change


def _type(before: str, after: str) -> Callable[[Node], bool]:
    def change(node: Node) -> bool:
        if node.type != before:
            return False
        node.type = after
        return True

    return change


TRANSFORMATIONS: dict[str, Callable[[Node], bool]] = {
    "scale folded wrongly": _scaled,
    "weights transposed": _transposed,
    "bias dropped": _dropped,
    "weights reversed": _reversed,
    "epsilon": _attribute("eps", "0.5"),
    "another activation": _type("ReLU", "Sigmoid"),
    "another gate": _type("Swish", "Gelu"),
    "another sum": _type("Add", "Subtract"),
    "another product": _type("Multiply", "Add"),
    "another pooling": _type("MaxPool", "AvgPool"),
}
"""Ways in which a transformation is wrong: each changes a layer of a transformed model, or says that it does not fit."""


def _as_it_is(name: str, path: Path, folder: Path) -> Outcome:
    """What ``inside --check`` says of a network beside OpenVINO, with inputs that suit it."""
    model = irexec.read_model(path)
    arrays = feeds(path, model.inputs)[0]
    np.savez(folder / "inputs.npz", **{port.name: array for port, array in zip(model.inputs, arrays, strict=True)})
    try:
        found = inside(path)
    except irexec.UnsupportedError as error:
        return Outcome("refused", f"{name}: {error}", fails=True)
    made = check(path, found, CompareOptions(runs=1), sources=[InputSource(None, str(folder / "inputs.npz"))])
    text = f"{name}: {' '.join(str(one) for one in made.sections())}"
    if made.verdict == "neither":
        return Outcome("neither")
    return (
        Outcome("explained", f"{text}: {EXPLAINED[name]}") if name in EXPLAINED else Outcome(made.verdict, text, True)
    )


class Planted:
    """The planted faults of one network.

    Args:
        path: of the network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = irexec.inside(path)
        self.model = irexec.read_model(path)
        self.facts = infer_shapes(self.model).facts

    def transformation(self, rng: np.random.Generator, kind: str) -> tuple[str, str] | None:
        """The changed layer and the verdict; None if no layer shows it."""
        for i in rng.permutation(len(self.found.model.nodes))[: 10 * _TRIES]:
            model = copy.copy(self.found.model)
            node = model.nodes[i]
            try:
                if not TRANSFORMATIONS[kind](node) or not self._shows(model):
                    continue
            except irexec.IrexecError:
                continue
            damaged = Inside(model, self.found.version, {}, {}, {}, self.found.fused)
            return node.name, check(self.path, damaged, CompareOptions(b_runtime="reference")).verdict
        return None

    def kernel(self, rng: np.random.Generator) -> tuple[str, str] | None:
        """The layer with a wrong kernel and the verdict; None if no layer shows it."""
        for _ in range(_TRIES):
            fault = FAULTS[int(rng.integers(len(FAULTS)))]
            fitting = [node for node in self.model.nodes if node.outputs and fault.fits(node, self.facts)]
            if not fitting:
                continue
            node = fitting[int(rng.integers(len(fitting)))]
            damage = planted(fault, node.name, self.facts[node.outputs[0]])
            damaged = copy.copy(self.model)
            damage(damaged, [])
            if not self._shows(damaged):
                continue
            with pytest.MonkeyPatch.context() as patch:
                runtime = plant(patch, damage, kernels="irexec")
                return f"{node.name} ({fault.kind})", check(
                    self.path, self.found, CompareOptions(b_runtime=runtime)
                ).verdict
        return None

    def _shows(self, damaged: irexec.Model) -> bool:
        """Whether a result differs visibly from the source's."""
        options = CompareOptions(rtol=_VISIBLE)
        return not irexec.compare(self.path, damaged, options=options).results_agree


class Sweep(Kind):
    """See the module."""

    cases = 5
    told = frozenset({"explained", "refused"})

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--models", type=Path, help="a folder of further .xml, each with its .bin and the .json of its inputs")

    def names(self) -> Sequence[str]:
        return [*NAMES, *self._given]

    @property
    def _given(self) -> dict[str, Path]:
        folder = self.options.models
        return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.xml"))}

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        with temporary() as folder:
            path = self._given.get(name) or unpacked(name, folder)
            planted_in = Planted(path) if name in NETWORKS and self.options.cases > 1 else None

            def case(number: int) -> Iterator[Outcome]:
                if number == 0:
                    yield _as_it_is(name, path, folder)
                elif planted_in is not None:
                    yield from self._case(planted_in, name, number)

            yield case

    def _case(self, one: Planted, name: str, number: int) -> Iterator[Outcome]:
        rng = np.random.default_rng([number, *name.encode()])
        if number % 2:
            made = one.kernel(rng)
            right = "kernel"
        else:
            kinds = list(TRANSFORMATIONS)
            made = next(filter(None, (one.transformation(rng, kinds[i]) for i in rng.permutation(len(kinds)))), None)
            right = "transformation"
        if made is None:
            yield Outcome("no layer shows a fault", name)
        else:
            yield Outcome(f"{right}: {made[1]}", f"{name}: {made[0]}", made[1] != right)
