"""``inside``: the model that OpenVINO's CPU plugin runs, beside the one that it was given."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from irexec import io
from irexec.analysis.model import Model
from irexec.api import as_model
from irexec.display import Column, Content, Table
from irexec.errors import InputError
from irexec.messages import counted
from irexec.records import Report
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.engines.releases.environments import Release, command_of, environments_folder
from irexec.tools.inside.cache import transformed
from irexec.tools.inside.published import is_published, published


@dataclass(frozen=True, kw_only=True)
class InsideOptions:
    """The OpenVINO that transforms, and its arithmetic.

    Attributes:
        release: the release of OpenVINO, such as "2025.4.0", of the environments that ``bisect`` makes; None for the
            one that is installed beside irexec.
        precision: INFERENCE_PRECISION_HINT: "f32", "f16" or "bf16".
    """

    release: str | None = None
    precision: str = "f32"


@dataclass(frozen=True, repr=False)
class Inside(Report):
    """A transformed model.

    Attributes:
        model: in published operations, with the names of layers and tensors that the plugin has left.
        version: the OpenVINO that transformed it.
        before, after: the number of layers of each operation, in the source and as the plugin runs it.
        rewritten: the layers of operations of the plugin, which ``model`` has as published ones.
    """

    model: Model
    version: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    rewritten: Mapping[str, int]

    def sections(self) -> list[Content]:
        """The operations whose numbers differ, and sentences."""
        names = sorted({*self.before, *self.after})
        rows = [(name, self.before.get(name, 0), self.after.get(name, 0)) for name in names]
        columns = [Column("operation"), Column("before", kind="number"), Column("inside", kind="number")]
        changed = Table(columns, [row for row in rows if row[1] != row[2]], what="operations")
        total = f"{counted(sum(self.before.values()), 'layer')} before, {sum(self.after.values()):,} inside"
        return [changed, f"OpenVINO {self.version}: {total}"]


def inside(path: str | Path, options: InsideOptions | None = None) -> Inside:
    """The model that OpenVINO's CPU plugin runs: what its transformations make of a model.

    Args:
        path: the .xml or .onnx.
        options: see InsideOptions.

    Raises:
        UnsupportedError: the release is not there, or has operations that irexec does not know.
        EngineError: OpenVINO refuses the model.
        ModelError: the model or the cache cannot be read.
    """
    options = options or InsideOptions()
    if options.precision not in ("f32", "f16", "bf16"):
        raise InputError(f"precision is {options.precision!r}, expected f32, f16 or bf16")
    source = as_model(path)
    made = transformed(str(path), (_python(options.release),), precision=options.precision)
    graph = io.read(made.xml, made.constants)
    after = Counter(node.type for node in graph.walk())
    rewritten = Counter(node.type for node in graph.walk() if not is_published(node))
    before = Counter(node.type for node in source.walk())
    model = published(graph, graph.name).model()
    return Inside(model, made.version, before, after, rewritten)


@dataclass(frozen=True, repr=False)
class InsideCheck(Report):
    """Where a difference between a model in irexec and in OpenVINO comes from.

    Attributes:
        verdict: "transformation" if the transformed model is another one, "kernel" if OpenVINO computes the same model
            otherwise, else "neither".
        transformation: the source and the transformed model, both in irexec.
        kernel: the source in irexec and in OpenVINO.
    """

    verdict: Literal["transformation", "kernel", "neither"]
    transformation: Comparison
    kernel: Comparison

    def sections(self) -> list[Content]:
        """The verdict, with the layer where the two part, if there is one."""
        found = {"transformation": self.transformation, "kernel": self.kernel}.get(self.verdict)
        if found is None:
            return ["neither: the transformed model is the source, and OpenVINO computes both as irexec does"]
        where = (
            "the results"
            if found.first is None
            else f"{found.first.suspect.layer.name!r} ({found.first.suspect.layer.type})"
        )
        said = {
            "transformation": "the transformed model gives other values than the source, both in irexec; first at",
            "kernel": "the transformed model is the source, and OpenVINO computes it otherwise; first at",
        }[self.verdict]
        return [f"{self.verdict}: {said} {where}"]


def check(path: str | Path, found: Inside, options: CompareOptions | None = None) -> InsideCheck:
    """Tell a wrong transformation from a wrong kernel, on random inputs.

    Args:
        path: the source.
        found: the transformed model of the OpenVINO that is installed.
        options: shapes, seed and tolerances; the runtimes are set here.

    Raises:
        InputError, ModelError, NodeError, EngineError: as for ``compare``.
    """
    options = replace(options or CompareOptions(), a_runtime="irexec")
    # OpenVINO runs the file of the user.
    kernel = compare(str(path), None, options=replace(options, b_runtime="openvino"))
    transformation = compare(str(path), found.model, options=replace(options, b_runtime="irexec"))
    verdict: Literal["transformation", "kernel", "neither"] = "neither"
    # Results alone: transformations move layers, and their names with them, to where other tensors are.
    if not transformation.results_agree:
        verdict = "transformation"
    elif not kernel.results_agree:
        verdict = "kernel"
    return InsideCheck(verdict, transformation, kernel)


def _python(release: str | None) -> str:
    if release is None:
        return sys.executable
    return command_of(Release("openvino", release), environments_folder())[0]
