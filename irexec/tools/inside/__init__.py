"""The model that OpenVINO's CPU plugin runs after its transformations, in published operations."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, NamedTuple

from irexec import io
from irexec.analysis.model import Model
from irexec.api import as_model
from irexec.display import Column, Content, Table
from irexec.errors import EngineError, InputError, ModelError, UnsupportedError
from irexec.io.payload import info_entry
from irexec.ir.graph import Graph
from irexec.messages import counted, listed, sentence, silent
from irexec.records import Report
from irexec.tools.compare import CompareOptions, Comparison, compare
from irexec.tools.engines.releases import Release, clean_environment, command_of, environments_folder
from irexec.tools.images import Notify
from irexec.tools.inside.published import is_published, published
from irexec.tools.judge import Judgement, JudgeOptions, judge
from irexec.tools.run.input_sources import InputSource

PROGRAM = Path(__file__).with_name("program.py")
_PLACES = struct.Struct("<6Q")
_ALLOWED = ("agrees", "precision", "open", "model")
"""Verdicts of judge that allow results beyond the tolerances of compare."""
_SEARCHED = 4096
"""Bytes from the beginning of the file in which the numbers are."""


class Transformed(NamedTuple):
    """The IR of a transformed model, as text, its constants, and the version of OpenVINO that made it."""

    xml: bytes
    constants: bytes
    version: str


def transformed(model: str, python: Sequence[str] = (sys.executable,), *, precision: str = "f32") -> Transformed:
    """Compile a model with OpenVINO's CPU plugin, and take the transformed model from its cache.

    Args:
        model: the path of an .xml or .onnx.
        python: the command of a Python that has OpenVINO.
        precision: INFERENCE_PRECISION_HINT.

    Raises:
        UnsupportedError: this Python has no OpenVINO.
        EngineError: OpenVINO refuses the model, or this release keeps no file.
        ModelError: the file is scrambled, or laid out as no known release does it.
    """
    if python[0] == sys.executable and importlib.util.find_spec("openvino") is None:
        raise UnsupportedError("inside needs the package openvino (pip install openvino), which is not installed")
    with tempfile.TemporaryDirectory(prefix="irexec-inside-") as folder:
        command = [*python, str(PROGRAM), str(Path(model).absolute()), folder, precision]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
        files = [path for path in Path(folder).iterdir() if path.is_file()]
        if done.returncode or len(files) != 1:
            said = done.stderr.strip().splitlines() or [f"it kept {len(files)} files"]
            raise EngineError(f"OpenVINO did not compile {model} into its cache: {sentence(said[-1])}")
        return parts(files[0].read_bytes(), done.stdout.strip())


def parts(blob: bytes, version: str) -> Transformed:
    """The model and the constants of a cache file.

    Raises:
        ModelError: the model is scrambled, or the file is laid out as in no known release.
    """
    for at in range(min(len(blob) - _PLACES.size, _SEARCHED)):
        notes, notes_size, constants, constants_size, model, model_size = _PLACES.unpack_from(blob, at)
        for base in (at, 0):
            # Each part follows the one before, and the notes the numbers.
            if notes + base != at + _PLACES.size or not notes + notes_size <= constants <= model:
                continue
            if constants + constants_size > model or base + model + model_size > len(blob):
                continue
            text = blob[base + model : base + model + model_size]
            if not text.lstrip().startswith((b"<?xml", b"<net")):
                raise ModelError(f"OpenVINO {version} has scrambled the model in its cache")
            data = blob[base + constants : base + constants + constants_size]
            return Transformed(text.rstrip(b"\0"), data, version)
    raise ModelError(f"the cache of OpenVINO {version} is laid out as in no release that is known here")


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
    python = sys.executable
    if options.release is not None:
        python = command_of(Release("openvino", options.release), environments_folder(options.environments))[0]
    made = transformed(str(path), (python,), precision=options.precision)
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
            found[node.name] = tuple(name.strip() for name in names.split(","))
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
        found = self.transformation if self.verdict == "transformation" else self.kernel
        if isinstance(found, Judgement):
            return [f"{self.verdict}: the transformed model is the source; {found.sentence}"]
        if self.verdict == "neither":
            return ["neither: the transformed model is the source, and OpenVINO computes both as irexec does"]
        where = "the results"
        if found.first is not None:
            layer = found.first.suspect.layer
            fused = self.fused.get(layer.name, ()) if self.verdict == "transformation" else ()
            sources = f", made of {listed(list(map(repr, fused)), 6)}" if fused else ""
            where = f"{layer.name!r} ({layer.type}){sources}"
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
    if isinstance(options, JudgeOptions):
        own = CompareOptions(a_weights=options.weights, shapes=options.shapes, seed=options.seed, runs=options.steps)
    else:
        own = replace(options, a_runtime="irexec", b_runtime="irexec", properties=None)
    transformation = compare(str(path), found.model, options=own, sources=sources)
    kernel: Comparison | Judgement
    # OpenVINO runs the file of the user.
    if isinstance(options, JudgeOptions):
        kernel = judge(str(path), None, options, sources=sources, notify=notify, output=output)
        is_kernel = kernel.is_bug
    else:
        runtime = "openvino" if options.b_runtime == "irexec" else options.b_runtime
        kernel = compare(
            str(path), None, options=replace(options, a_runtime="irexec", b_runtime=runtime), sources=sources,
            notify=notify, output=output,
        )  # fmt: skip
        is_kernel = not kernel.results_agree
        if is_kernel and transformation.results_agree:
            # A tolerance knows nothing of equal scores, of which TopK may take any, nor of layers that amplify.
            judgement = judge(str(path), None, _to_judge(options, runtime), sources=sources)
            if judgement.verdict in _ALLOWED:
                kernel, is_kernel = judgement, False
    verdict: Literal["transformation", "kernel", "neither"] = "kernel" if is_kernel else "neither"
    # Results alone: transformations move layers, and their names with them, to where other tensors are.
    if not transformation.results_agree:
        verdict = "transformation"
        if output is not None:
            compare(str(path), found.model, options=own, sources=sources, output=output)
    return InsideCheck(verdict, transformation, kernel, found.fused)


def _to_judge(options: CompareOptions, runtime: str) -> JudgeOptions:
    """The options of a judgement of the runtime that a comparison runs."""
    both = {one.name for one in fields(JudgeOptions)} & {one.name for one in fields(options)}
    given = {name: getattr(options, name) for name in both}
    return JudgeOptions(runtime=runtime, weights=options.a_weights, steps=options.runs, **given)
