"""What the page shows: the functions that the commands of irexec call, for Pyodide.

``call`` takes the name of a function of ``_CALLS`` and its arguments as JSON, and returns JSON: what the page shows is
HTML, what it saves is the path of a file.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.analysis.open_sizes import sizes_for
from irexec.analysis.shape_inference import Inference
from irexec.analysis.validate import infer_all, validate
from irexec.api import save_model, to_onnx
from irexec.display import Content, Text, sections_of
from irexec.display.hypertext import Html, element, html, joined, page
from irexec.errors import InputError, IrexecError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import shape_text
from irexec.ir.findings import Findings
from irexec.ir.shape_text import parse_shape
from irexec.reading import read_tolerant
from irexec.tools.images import ImageOptions
from irexec.tools.run.infer_report import InferReport
from irexec.tools.run.input_sources import GivenInputs, InputSource, input_arrays
from irexec.tools.run.results import has_classes, predictions
from irexec.tools.run.shapes import read_with_shapes, reshape
from irexec.tools.validation import FileReport

OUT = Path("/tmp/irexec")
"""The folder of files to save."""

_FOLDERS = re.compile(r"/(?:models/[ab]|inputs)/")
_HEIGHT = """
const tell = () => parent.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) + 1 }, "*");
tell();
new ResizeObserver(tell).observe(document.body);
"""
_SELECTION = """
<script>addEventListener("irexec-select", (event) => parent.postMessage({ layer: event.detail }, "*"));</script>
"""


@dataclass
class _Opened:
    """A model of the page.

    Attributes:
        path: the file.
        model: the model; None if it cannot be converted.
        findings: all findings.
        inference: the facts of the model.
        compiled: the model of the last run; None before.
        inputs: the inputs of the last run.
    """

    path: str
    model: Model | None
    findings: Findings
    inference: Inference
    compiled: Any = None
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def read(self) -> Model:
        """The model; raises InputError if it cannot be converted."""
        if self.model is None:
            raise InputError(f"{Path(self.path).name} cannot be converted to IR; the findings say why")
        return self.model


_opened: dict[str, _Opened] = {}


def call(name: str, arguments: str) -> str:
    """Call a function by name; JSON with its value, or with the error in words."""
    try:
        answer: dict[str, Any] = {"value": _CALLS[name](**json.loads(arguments))}
    except IrexecError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "the memory of a page, 2 to 4 GB, is not enough for this; the command line has more"}
    except Exception as error:
        answer = {"error": f"a fault of irexec, please report it: {type(error).__name__}: {error}"}
    # Names of files as the reader knows them.
    return _FOLDERS.sub("", json.dumps(answer))


def open_model(slot: str, path: str) -> dict[str, Any]:
    """Read and validate a model; ``slot`` names it in later calls."""
    _opened.pop(slot, None)
    model, before = read_tolerant(path)
    inference = Inference() if model is None else infer_all(model)
    findings = Findings(before if model is None else [*before, *validate(model, inference=inference)])
    _opened[slot] = opened = _Opened(path, model, findings, inference)
    name = Path(path).name
    report = FileReport(name, tuple(findings))
    contents: list[Content] = [Text(f"{name}: {_counts(report)}", "title"), report.sections()[0]]
    if model is not None:
        # A model that was read is described, however damaged it is.
        from irexec.tools.inspect.summary import summarize

        contents += [Text("The model", "title"), *sections_of(summarize(model))]
    return {
        "name": name, "counts": report.counts, "html": _page(name, contents),
        "inputs": [] if model is None else [_input(port) for port in model.inputs],
        "tensors": [] if model is None else _tensors(model), "formats": _formats(opened),
    }  # fmt: skip


def _counts(report: FileReport) -> str:
    return str(report.sections()[-1]).rpartition(": ")[2]


def _page(title: str, contents: Sequence[Content]) -> str:
    return page(title, html(contents), script=_HEIGHT)


def _input(port: Port) -> dict[str, Any]:
    sizes = [None] if port.shape is None else port.shape
    return {
        "name": port.name, "type": "" if port.element is None else port.element.name,
        "shape": shape_text(port.shape), "is_static": all(isinstance(size, int) for size in sizes),
    }  # fmt: skip


def _tensors(model: Model) -> list[str]:
    """Names of the tensors of layers outside of bodies, without constants."""
    computed = [node for node in model.nodes if node.constant is None and node.type not in ("Result", "Assign")]
    return [next(iter(value.names), None) or node.name for node in computed for value in node.outputs]


def graph(slot: str) -> dict[str, Any]:
    """The graph with findings, as a page."""
    from irexec.tools.graph import draw, graph_page

    opened = _opened[slot]
    drawing = draw(opened.read, cluster=None, statistics=True, findings=opened.findings, inference=opened.inference)
    return {"html": graph_page(drawing).replace("</body>", f"{_SELECTION}</body>")}


def run(
    slot: str, inputs: Sequence[Mapping[str, str]] = (), seed: int = 0, scale: Sequence[float] = (1.0,),
    mean: Sequence[float] = (0.0,), bgr: bool = False, resize: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run a model, as ``irexec infer`` does.

    Args:
        slot: the model.
        inputs: for each input its name, source (random, zeros, ones or a file), and a shape or "".
        seed: of random values.
        scale, mean, bgr, resize: as for ImageOptions.
    """
    opened = _opened[slot]
    notes: list[str] = []
    sources = [InputSource(one["name"], one["source"]) for one in inputs] or [InputSource(None, "random")]
    shapes = {one["name"]: parse_shape(one["shape"]) for one in inputs if one.get("shape")}
    image = ImageOptions(scale=tuple(scale), mean=tuple(mean), bgr=bgr, resize=resize or None)
    model = opened.model
    if model is None or shapes:
        model = read_with_shapes(opened.path, None, shapes, given=GivenInputs(sources, image=image))
        reshape(model, shapes, tolerant=True)
    # Compiling is most of the work of a run, and is not imported before.
    from irexec.tools.run.shapes import SessionOptions

    opened.compiled = compiled = SessionOptions().compiled(model, tolerant=True)
    opened.inputs = input_arrays(
        sources, compiled.inputs, seed=seed, image=image, notify=notes.append, sizes=sizes_for(model)
    )
    results = dict(compiled(opened.inputs))
    ranked = {name: array for name, array in results.items() if has_classes(array)}
    found = InferReport(results, tuple(predictions(ranked, 5)) if ranked else None)
    OUT.mkdir(exist_ok=True)
    np.savez(OUT / "results.npz", **results)
    return {"html": _page("results", [*notes, *found.sections()]), "path": str(OUT / "results.npz")}


def values(slot: str, tensor: str) -> dict[str, Any]:
    """A tensor of the last run, or of a run with random inputs: statistics, histogram and values."""
    from irexec.tools.arrays.statistics import histogram

    if _opened[slot].compiled is None:
        run(slot)
    opened = _opened[slot]
    array = opened.compiled.run(opened.inputs, [tensor])[0]
    parts = [Text(tensor, "title"), *list(InferReport({tensor: array}).sections())]
    if array.dtype.kind in "fiub" and array.size:
        parts += histogram(array).sections()
    first = np.array2string(array, threshold=100, edgeitems=3, max_line_width=76, precision=6)
    lines = joined(part for line in first.splitlines() for part in (line, Html("\n")))
    return {"html": _page(tensor, [*parts, element("div", element("pre", lines), class_="scroll")])}


def compare(a: str, b: str) -> dict[str, Any]:
    """Compare two models on the same random inputs, as ``irexec compare -o`` does: the picture, and the tables."""
    from irexec.tools.compare import CompareOptions
    from irexec.tools.compare import compare as compared

    notes: list[str] = []
    random = [InputSource(None, "random")]
    OUT.mkdir(exist_ok=True)
    picture = OUT / "compare.html"
    found = compared(
        _opened[a].read, _opened[b].read, None, CompareOptions(), sources=random, notify=notes.append,
        output=str(picture),
    )  # fmt: skip
    html = _page("compare", [*notes, *sections_of(found)])
    return {"html": html, "picture": picture.read_text("utf-8"), "agrees": found.agrees}


def _formats(opened: _Opened) -> list[tuple[str, str]]:
    """What can be saved of a model: the key for ``save``, and its description."""
    found = [("report", "a report: everything that can be said of it, one page")]
    if opened.model is None:
        return found
    is_ir = not is_onnx_file(opened.path)
    found.append(("ir", "IR, as irexec writes it (an old version as version 11)" if is_ir else "IR (.xml and .bin)"))
    if not any(finding.severity == "error" for finding in opened.findings):
        found += [
            ("optimize", "IR with fewer layers: constants folded, layers merged"),
            ("f16", "IR with weights in 16 bits"),
            ("int8", "IR with weights in 8 bits"),
            ("for", "IR in operations that a release or device has"),
        ]
        if is_ir:
            found.append(("onnx", "ONNX"))
    return found


def save(slot: str, format: str, target: str = "") -> dict[str, Any]:
    """Write a model in another form; the path of the file, a .zip of several."""
    opened = _opened[slot]
    stem = Path(opened.path).stem
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob(f"{stem}.*"):
        old.unlink()
    notes: list[str] = []
    if format == "report":
        from irexec.tools.report import report

        report(opened.path if opened.model is None else opened.model, OUT / f"{stem}.html")
    elif format == "onnx":
        to_onnx(opened.read, OUT / f"{stem}.onnx")
    else:
        save_model(_rewritten(opened.read, format, target, notes), OUT / f"{stem}.xml", overwrite=True)
    files = sorted(OUT.glob(f"{stem}.*"))
    path = files[0]
    if len(files) > 1:
        path = OUT / f"{stem}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in files:
                archive.write(file, file.name)
    return {"path": str(path), "html": _page("saved", [f"{path.name}: {path.stat().st_size:,} bytes", *notes])}


def _rewritten(model: Model, format: str, target: str, notes: list[str]) -> Model:
    """The model in another form; ``notes`` are what was changed."""
    if format == "for":
        from irexec.tools.downgrading import written_for

        if not target:
            raise InputError("a release such as 2023.3, or CPU, GPU or NPU, is missing")
        written = written_for(model, target)
        if written.found.findings:
            raise InputError("; ".join(str(finding) for finding in written.found.findings))
        return written.found.model
    if format == "ir":
        return model
    changed = model.clone()
    before = len(changed.nodes)
    with changed.edit() as editor:
        if format == "optimize":
            editor.fold()
            editor.optimize()
        else:
            editor.compress(format)
    notes.append(f"{before} layers before, {len(changed.nodes)} now")
    return changed


_CALLS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "open": open_model, "graph": graph, "run": run, "values": values, "compare": compare, "save": save,
}  # fmt: skip
