"""``inside``: the model that OpenVINO's CPU plugin runs, beside the one that it was given."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from irexec import io
from irexec.analysis.model import Model
from irexec.api import as_model
from irexec.display import Column, Content, Table
from irexec.errors import InputError
from irexec.io.payload import info_entry
from irexec.ir.graph import Graph
from irexec.messages import counted, listed, silent
from irexec.records import Report
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.engines.releases.environments import Release, command_of, environments_folder
from irexec.tools.images import Notify
from irexec.tools.inside.cache import transformed
from irexec.tools.inside.published import is_published, published
from irexec.tools.judge import Judgement, JudgeOptions, judge
from irexec.tools.run.input_sources import InputSource


@dataclass(frozen=True, kw_only=True)
class InsideOptions:
    """The OpenVINO that transforms, and its arithmetic.

    Attributes:
        release: the release of OpenVINO, such as "2025.4.0", of the environments that ``bisect`` makes; None for the
            one that is installed beside irexec.
        precision: INFERENCE_PRECISION_HINT: "f32", "f16" or "bf16".
        environments: the folder of the environments of releases; by default that of ``bisect``.
    """

    release: str | None = None
    precision: str = "f32"
    environments: str | None = None


@dataclass(frozen=True, repr=False)
class Inside(Report):
    """A transformed model.

    Attributes:
        model: in published operations, with the names of layers and tensors that the plugin has left.
        version: the OpenVINO that transformed it.
        before, after: the number of layers of each operation, in the source and as the plugin runs it.
        rewritten: the layers of operations of the plugin, which ``model`` has as published ones.
        fused: the names of the layers of the source that each layer of the plugin stands for, as it says.
    """

    model: Model
    version: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    rewritten: Mapping[str, int]
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

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
    made = transformed(str(path), (_python(options),), precision=options.precision)
    graph = io.read(made.xml, made.constants)
    after = Counter(node.type for node in graph.walk())
    rewritten = Counter(node.type for node in graph.walk() if not is_published(node))
    before = Counter(node.type for node in source.walk())
    model = published(graph, graph.name).model()
    return Inside(model, made.version, before, after, rewritten, _fused(graph))


def _fused(graph: Graph) -> dict[str, tuple[str, ...]]:
    """The fused names of each layer of a transformed model; a layer alone stands for itself."""
    found: dict[str, tuple[str, ...]] = {}
    for node in graph.walk():
        names = (info_entry(node, "fused_names") or {}).get("value", "")
        if names not in ("", node.name):
            found[node.name] = tuple(names.split(","))
    return found


@dataclass(frozen=True, repr=False)
class InsideCheck(Report):
    """Where a difference between a model in irexec and in OpenVINO comes from.

    Attributes:
        verdict: "transformation" if the transformed model is another one, "kernel" if OpenVINO computes the same model
            otherwise, else "neither".
        transformation: the source and the transformed model, both in irexec.
        kernel: the source in irexec and in OpenVINO.
        fused: see Inside.
    """

    verdict: Literal["transformation", "kernel", "neither"]
    transformation: Comparison
    kernel: Comparison | Judgement
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def sections(self) -> list[Content]:
        """The verdict, with the first layer that differs and the layers of the source that it stands for."""
        if isinstance(self.kernel, Judgement) and self.verdict != "transformation":
            return [f"{self.verdict}: the transformed model is the source; {self.kernel.sentence}"]
        if self.verdict == "neither":
            return ["neither: the transformed model is the source, and OpenVINO computes both as irexec does"]
        found = self.transformation if self.verdict == "transformation" else self.kernel
        if not isinstance(found, Comparison):
            raise AssertionError("a judgement is of a kernel")
        where = "the results"
        if found.first is not None:
            layer = found.first.suspect.layer
            fused = self.fused.get(layer.name, ()) if self.verdict == "transformation" else ()
            where = f"{layer.name!r} ({layer.type})" + (
                f", made of {listed(list(map(repr, fused)), 6)}" if fused else ""
            )
        said = {
            "transformation": "the transformed model gives other values than the source, both in irexec; first at",
            "kernel": "the transformed model is the source, and OpenVINO computes it otherwise; first at",
        }[self.verdict]
        return [f"{self.verdict}: {said} {where}"]


def check(
    path: str | Path,
    found: Inside,
    options: CompareOptions | JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = silent,
    output: str | None = None,
) -> InsideCheck:
    """Tell a wrong transformation from a wrong kernel.

    Args:
        path: the source.
        found: the transformed model of the runtime of ``options``.
        options: shapes, seed, tolerances and the runtime, which is ``b_runtime``, or OpenVINO where that is irexec; of
            a judgement, whose bounds then tell wrong kernels.
        sources: sources of the inputs; by default random ones.
        notify: receives unexpected facts.
        output: the .html or .svg to draw the comparison to that the verdict rests on; None draws nothing.

    Raises:
        InputError, ModelError, NodeError, EngineError: as for ``compare``.
    """
    options = options or CompareOptions()
    kernel: Comparison | Judgement
    # OpenVINO runs the file of the user.
    if isinstance(options, JudgeOptions):
        kernel = judge(str(path), None, options, sources=sources, notify=notify, output=output)
        is_kernel = kernel.is_bug
        own = CompareOptions(a_weights=options.weights, shapes=options.shapes, seed=options.seed, runs=options.steps)
    else:
        runtime = "openvino" if options.b_runtime == "irexec" else options.b_runtime
        own = replace(options, a_runtime="irexec", b_runtime="irexec", properties=None)
        kernel = compare(
            str(path), None, options=replace(options, a_runtime="irexec", b_runtime=runtime), sources=sources,
            notify=notify, output=output,
        )  # fmt: skip
        is_kernel = not kernel.results_agree
    transformation = compare(str(path), found.model, options=own, sources=sources)
    verdict: Literal["transformation", "kernel", "neither"] = "neither"
    # Results alone: transformations move layers, and their names with them, to where other tensors are.
    if not transformation.results_agree:
        verdict = "transformation"
    elif is_kernel:
        verdict = "kernel"
    if output is not None and verdict == "transformation":
        compare(str(path), found.model, options=own, sources=sources, output=output)
    return InsideCheck(verdict, transformation, kernel, found.fused)


def _python(options: InsideOptions) -> str:
    if options.release is None:
        return sys.executable
    return command_of(Release("openvino", options.release), environments_folder(options.environments))[0]
