"""Models written for old releases of OpenVINO and run there.

Each release has an environment of its Python, see irexec.tools.engines.releases. A model that is written
must be loaded there, and give the values that irexec gives for the original, unless a remark says other values of a
layer on which an output depends; a model that is refused must be refused by the release too, when it is written all the
same.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from irexec import Model, save_model
from irexec.analysis.model import Port
from irexec.authoring.downgrade import Downgraded, downgrade
from irexec.dtypes.elements import BF16, F16, Element, pack, unpack
from irexec.errors import EngineError, IrexecError, RunTimeoutError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Graph, Node
from irexec.ir.order import needed
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.releases import Release, environments_folder, installed
from irexec.tools.engines.runtimes.runtime import Worker
from tests.release_sweep.sample import Sample, forms, network_names, operations
from tests.sweep.kind import Case, Kind, Outcome


class Written:
    """The outcomes of samples in one release."""

    def __init__(self, release: Release) -> None:
        self._worker = Worker(release.package, 60, release)
        # The name that irexec convert --for takes: 2021.4 for 2021.4.2.
        self._name = ".".join(release.version.split(".")[:2])

    def outcome(self, sample: Sample) -> Outcome:
        """Write, load and compare one sample."""
        kind, remark = self._outcome(sample)
        return Outcome(kind, f"{sample.name}: {remark}"[:400], fails=kind.isupper())

    def close(self) -> None:
        self._worker.close()

    def _outcome(self, sample: Sample) -> tuple[str, str]:
        found = downgrade(sample.model, self._name)
        if found.findings:
            reason = found.findings[0].message
            # Memory that nothing has written may hold the right values.
            is_false = "nothing has written" not in reason and self._runs_all_the_same(sample, found.model)
            return ("FALSE REFUSAL" if is_false else "refused"), reason
        try:
            expected = _results(sample.model, sample.runs)
        except IrexecError as error:
            return "not run by irexec", str(error)
        # Plugins take NaN for various numbers, and infinities for the largest one.
        finite = all(map(_is_finite, (*chain(*sample.runs), *_constants(sample.model), *expected)))
        if not _agree(expected, _results(found.model, sample.runs)):
            return ("WRONG REWRITE" if finite else "not finite"), str(found.changes)
        try:
            given = self._run(found.model, sample.runs)
        except (EngineError, RunTimeoutError) as error:
            # A remark that says other values does not say that the model fails.
            is_said = any(word in remark.message for remark in found.remarks for word in ("fails", "ends the process"))
            said = ",".join(remark.code for remark in found.remarks)
            return ("as said" if is_said else "NOT RUN"), f"{said} {error}".replace("\n", " ")
        # Releases round some weights of f16 once more than others.
        halves = any(node.constant is not None and node.constant.element is F16 for node in sample.model.walk())
        if _agree(expected, given, 3e-3 if halves else 2e-4):
            return "equal", ""
        excuses = _excuses(found)
        if excuses:
            return "as said", excuses
        return ("DIFFERENT" if finite else "not finite"), _difference(expected, given)

    def _runs_all_the_same(self, sample: Sample, written: Model) -> bool:
        """Whether the release gives the right values for a model that is refused: as it is, or as far as written."""
        original = sample.model.clone()
        original.version = 10 if self._name < "2022.1" else 11
        return any(self._runs(sample, model) for model in (original, written))

    def _runs(self, sample: Sample, model: Model) -> bool:
        try:
            expected = _results(sample.model, sample.runs)
            # Results without elements agree whatever is computed.
            return any(x.size for x in expected) and _agree(expected, self._run(model, sample.runs))
        except IrexecError:
            return False

    def _run(self, model: Model, runs: list[list[np.ndarray]]) -> list[np.ndarray]:
        """The outputs of all runs."""
        feeds = [
            {
                node.name: _as_given(x, port.element)
                for node, port, x in zip(model.parameters, model.inputs, inputs, strict=True)
            }
            for inputs in runs
        ]
        with tempfile.TemporaryDirectory() as folder:
            # Some releases free weights that are passed in memory.
            path = Path(folder) / "one.xml"
            save_model(model, path)
            # As written: FakeQuantize is not computed in 8 bits, which gives quantised networks other values.
            as_written = {"LP_TRANSFORMS_MODE": "NO"}
            preferred = {"INFERENCE_PRECISION_HINT": "f32", **as_written}
            options = as_written if self._name < "2022.1" else {}
            job = EngineJob("openvino", str(path), "", options=options, preferred=preferred)
            given = self._worker.run(job, feeds, "the model")
        return [_as_values(x, port) for one in given for x, port in zip(one, model.outputs, strict=False)]


def _excuses(found: Downgraded) -> str:
    """The codes of remarks that say other values, not only a failure, of layers on which an output depends."""
    layers = {(node.id, node.name) for node in _read(found.model)}
    return ",".join(
        one.code
        for one in found.remarks
        if (one.layer_id, one.layer_name) in layers
        and not re.search(r"OpenVINO \S+ (fails|ends the process)(?!, or)", one.message)
    )


def _read(graph: Graph) -> Iterator[Node]:
    """The layers on which an output depends, those of bodies included."""
    for node in needed(graph):
        yield node
        for body in node.bodies.values():
            yield from _read(body.graph)


def _as_given(array: np.ndarray, element: Element | None) -> np.ndarray:
    """An array in the type of an input; bits of types that NumPy lacks travel as f16 or bytes."""
    if element is None or element.native:
        return array if element is None else array.astype(element.carrier)
    raw = pack(element, array)
    return raw.view(np.float16).reshape(array.shape) if element.bits == 16 else raw


def _as_values(array: np.ndarray, port: Port) -> np.ndarray:
    """An output as numbers; the bits of bf16 arrive as f16, those of smaller types as bytes."""
    element = port.element
    if element is BF16 and array.dtype == np.float16:
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if element is None or element.native or element is BF16 or array.dtype not in (np.uint8, np.int8):
        return array
    sizes = [size for size in port.shape or () if isinstance(size, int)]
    raw = np.ascontiguousarray(array).view(np.uint8)
    return unpack(element, raw.ravel(), math.prod(sizes)).reshape(sizes)


def _results(model: Model, runs: list[list[np.ndarray]]) -> list[np.ndarray]:
    compiled = CompiledModel(model)
    results = []
    for inputs in runs:
        given = [x.astype(p.element.carrier) if p.element else x for x, p in zip(inputs, model.inputs, strict=True)]
        found = compiled(given)
        results += [np.asarray(found[i]) for i in range(len(found))]
    return results


def _agree(expected: list[np.ndarray], found: list[np.ndarray], tolerance: float = 2e-4) -> bool:
    return len(expected) == len(found) and all(_alike(a, b, tolerance) for a, b in zip(expected, found, strict=True))


def _alike(expected: np.ndarray, found: np.ndarray, tolerance: float = 2e-4) -> bool:
    """The same shape and values, as far as the type of an output of version 10 holds them."""
    if expected.shape != found.shape and not expected.shape == () != found.shape == (1,):
        return False
    if found.dtype == np.int32 and expected.dtype.kind in "iu":
        # Integers beyond i32 are not given by version 10.
        info = np.iinfo(np.int32)
        is_held = (expected >= info.min) & (expected <= info.max)
        expected, found = expected[is_held], found.reshape(expected.shape)[is_held]
    # Results of bf16 are compared as f32 with the precision of bf16.
    tolerance = 2e-2 if np.float16 in (expected.dtype, found.dtype) or _is_bf16(expected) else tolerance
    a, b = expected.astype(np.float64), found.astype(np.float64)
    # The lowest value of a type stands for minus infinity.
    scale = np.abs(a[np.abs(a) < 1e30]).max(initial=1)
    return bool(np.allclose(a, b, tolerance, tolerance * scale, equal_nan=True))


def _is_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array.astype(np.float64)).all())


def _constants(model: Model) -> Iterator[np.ndarray]:
    return (constant_value(node.constant) for node in model.walk() if node.constant is not None)


def _is_bf16(array: np.ndarray) -> bool:
    """Whether f32 numbers have at most the bits of bf16."""
    return array.dtype == np.float32 and not (np.ascontiguousarray(array).view(np.uint32) & 0xFFFF).any()


def _difference(expected: list[np.ndarray], found: list[np.ndarray]) -> str:
    for a, b in zip(expected, found, strict=False):
        if not _alike(a, b):
            return f"{a.dtype}{a.shape} {a.ravel()[:6]} and {b.dtype}{b.shape} {b.ravel()[:6]}".replace("\n", "")
    return f"{len(expected)} and {len(found)} outputs"


def _releases() -> dict[str, Release]:
    return {release.version: release for release in installed("openvino", environments_folder())}


class Sweep(Kind):
    """Models of one operation in each installed release, such as 2021.4.2."""

    def names(self) -> list[str]:
        return list(_releases())

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """A random row of tests.cases for each number."""
        release = Written(_releases()[name])
        try:
            yield lambda number: map(release.outcome, operations(1, number))
        finally:
            release.close()


class Networks(Kind):
    """Whole networks in each installed release: "2021.4.2 resnet18"."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--folder", type=Path, help="of networks of tests.networks.build; default: those of tests/data/networks")

    def names(self) -> list[str]:
        return [f"{release} {name}" for release in _releases() for name in network_names(self.options.folder)]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The network as it is, and with the shapes of its inputs set."""
        version, network = name.split(" ", 1)
        release = Written(_releases()[version])
        try:
            yield lambda number: map(release.outcome, forms(network, self.options.folder))
        finally:
            release.close()
