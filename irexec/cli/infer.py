"""irexec infer"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from irexec.analysis.model import Model
from irexec.analysis.validate import validate
from irexec.api import compile_model, read_model
from irexec.cli import render
from irexec.errors import InputError, ModelError, OpError
from irexec.io.files import replacing
from irexec.ir.codes import EDGE_ELEMENT, EDGE_SHAPE, INPUT_ELEMENT, INPUT_SHAPE, OUTPUT_ELEMENT, OUTPUT_SHAPE
from irexec.ir.findings import Finding
from irexec.runtime.session import CompiledModel
from irexec.tools.dump import dump, every_tensor
from irexec.tools.images import PICTURES, Picture
from irexec.tools.input_sources import Feed, arrays, load, parse_feed
from irexec.tools.results import Agreement, compare, describe, read_labels, top_classes

_PORT_CODES = {OUTPUT_SHAPE, OUTPUT_ELEMENT, INPUT_SHAPE, INPUT_ELEMENT, EDGE_SHAPE, EDGE_ELEMENT}


class Numbers(click.ParamType):
    """Finite numbers with commas between them, 0 among them or not."""

    name = "number[,number...]"

    def __init__(self, zero: bool = True) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """The numbers as a tuple."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            return self.fail(f"{value!r} is not a list of numbers", param, ctx)
        if not all(map(math.isfinite, numbers)) or (0 in numbers and not self.zero):
            return self.fail(f"{value!r} holds a number other than finite ones{'' if self.zero else ' that are not 0'}", param, ctx)
        return numbers


@dataclass(frozen=True)
class Wanted:
    """What of the results is asked for."""

    out: str | None
    topk: int | None
    labels: str | None
    everything: bool
    names: tuple[str, ...]
    directory: str | None
    reference: str | None
    rtol: float
    atol: float
    as_json: bool


@click.command(short_help="Run an .xml on arrays, pictures or random numbers.")
@click.argument("model", type=click.Path())
@click.option("-i", "--input", "inputs", multiple=True, metavar="[NAME=]SOURCE", help="A .npy, .npz, picture, or random; may be repeated.")
@click.option("--bin", "weights_path", type=click.Path(), help="The weights, if not beside the model under the same name.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random inputs.")
@click.option("--shape", "shapes", multiple=True, metavar="[NAME=]1,3,224,224", help="Give an input this shape first; may be repeated.")
@click.option("--layout", help="Axes of the input that takes a picture, such as NCHW.")
@click.option("--mean", type=Numbers(), default="0", help="Taken off every pixel (0..255): one number, or one per channel.")
@click.option("--scale", type=Numbers(zero=False), default="1", help="Every pixel is divided by it, after --mean.")
@click.option("--bgr", is_flag=True, help="Pictures go blue, green, red.")
@click.option("-o", "--output", "out", type=click.Path(), help="Write the results to a .npz.")
@click.option("--topk", type=click.IntRange(1), help="Show the most probable classes of each result.")
@click.option("--labels", type=click.Path(), help="Names of the classes of --topk, one a line.")
@click.option(
    "--tensor", "names", multiple=True, metavar="NAME", help="Give this tensor, by name, layer, id or name:port, not the results."
)
@click.option("--all", "everything", is_flag=True, help="Give every tensor, not the results alone.")
@click.option("--dump-layers", "directory", type=click.Path(), help="Write every tensor to a .npy in this folder.")
@click.option("--assert", "reference", type=click.Path(), help="Compare with the arrays of a .npz by name; exit code 1 if they differ.")
@click.option("--rtol", default=1e-4, show_default=True, help="Relative tolerance of --assert.")
@click.option("--atol", default=1e-5, show_default=True, help="Absolute tolerance of --assert.")
@click.option("--threads", type=click.IntRange(1), help="How many threads the products may use.")
@click.option("--no-optimize", is_flag=True, help="Run the plain kernels alone.")
@click.option("--strict", is_flag=True, help="Refuse a model in which validate finds any error.")
@click.option("--json", "as_json", is_flag=True, help="Versioned json instead of tables.")
def infer(model: str, inputs: tuple[str, ...], weights_path: str | None, seed: int, shapes: tuple[str, ...], **options: Any) -> int:
    """Run MODEL (an .xml) on arrays, pictures or random numbers.

    \b
    irexec infer model.xml -i x=a.npy -i y=b.npy -o out.npz
    irexec infer model.xml -i cat.png --scale 255 --topk 5 --labels classes.txt
    irexec infer model.xml -i random --shape 1,3,224,224 --dump-layers tensors/
    """
    feeds = [parse_feed(text) for text in inputs]
    _check_usage(feeds)
    read = read_model(model, weights_path)
    errors = [finding for finding in validate(read) if finding.severity == "error"]
    if options["strict"] and errors:
        _refuse(read, errors)
    if shapes:
        _reshape(read, shapes)
    compiled = compile_model(read, threads=options["threads"], optimize=not options["no_optimize"])
    _warn(errors)
    picture = Picture(options["layout"], options["mean"], options["scale"], options["bgr"])
    fed = arrays(feeds, compiled.inputs, seed=seed, picture=picture)
    fields = Wanted.__dataclass_fields__
    return _give(compiled, fed, Wanted(**{name: value for name, value in options.items() if name in fields}))


def _check_usage(feeds: Sequence[Feed]) -> None:
    """Options that would do nothing are refused: whoever gives them expects that they do."""
    context = click.get_current_context()

    def given(name: str) -> bool:
        return context.get_parameter_source(name) is ParameterSource.COMMANDLINE

    if given("labels") and not given("topk"):
        raise click.UsageError("--labels names the classes of --topk, which is not given")
    for name in ("layout", "mean", "scale", "bgr"):
        if given(name) and not any(feed.is_picture for feed in feeds):
            raise click.UsageError(f"--{name} is for pictures, and no -i is one ({', '.join(PICTURES)})")
    for name in ("rtol", "atol"):
        if given(name) and not given("reference"):
            raise click.UsageError(f"--{name} is for --assert, which is not given")


def _reshape(model: Model, shapes: Sequence[str]) -> None:
    wanted: dict[str | int, str] = {}
    for text in shapes:
        name, shape = _shape(text, model)
        if name in wanted:
            raise InputError(f"--shape is given twice for input {name!r}")
        wanted[name] = shape
    try:
        model.reshape(wanted)
    except OpError as error:
        raise InputError(f"the model does not take --shape {' --shape '.join(shapes)}: {error}") from None


def _refuse(model: Model, errors: Sequence[Finding]) -> None:
    first = errors[0]
    layer = "" if first.layer_id is None else f", layer {first.layer_id} {first.layer_name!r} ({first.layer_type})"
    more = f" (and {len(errors) - 1} more errors, see irexec validate)" if len(errors) > 1 else ""
    raise ModelError(f"{model.path}, line {first.line}{layer}: {first.code} {first.message}{more}")


def _warn(errors: Sequence[Finding]) -> None:
    """Ports that declare what is not so do not keep a model from running, since shapes are inferred anyway."""
    for finding in errors:
        if finding.code in _PORT_CODES:
            place = f"layer {finding.layer_id} {finding.layer_name!r} ({finding.layer_type}), line {finding.line}"
            render.warning_line(f"{place}: {finding.message}")


def _shape(text: str, model: Model) -> tuple[str | int, str]:
    name, equals, shape = text.rpartition("=")
    if not equals and len(model.inputs) != 1:
        raise InputError(f"--shape {text!r} names no input: the model has {', '.join(port.name for port in model.inputs)}")
    return (name if equals else 0), shape


def _give(compiled: CompiledModel, fed: Mapping[str, np.ndarray], wanted: Wanted) -> int:
    results = _run(compiled, fed, wanted)
    if wanted.directory is not None:
        count = dump(compiled, fed, Path(wanted.directory))
        render.remark(f"{wanted.directory}: {count} tensors")
    if wanted.out is not None:
        _save(wanted.out, results)
    labels = read_labels(wanted.labels) if wanted.labels else []
    classes = top_classes(results, wanted.topk, labels) if wanted.topk else []
    agreements = _agreements(compiled, fed, wanted) if wanted.reference else []
    lines = [describe(name, array) for name, array in results.items()]
    if wanted.as_json:
        document: dict[str, Any] = {"outputs": [asdict(line) for line in lines]}
        document |= {"topk": [asdict(c) for c in classes]} if wanted.topk else {}
        document |= {"assert": [asdict(a) for a in agreements]} if wanted.reference else {}
        render.as_json(document)
    else:
        _show(lines, classes, agreements)
    return 0 if all(agreement.agrees for agreement in agreements) else 1


def _run(compiled: CompiledModel, fed: Mapping[str, np.ndarray], wanted: Wanted) -> Mapping[str, np.ndarray]:
    if wanted.everything:
        return every_tensor(compiled, fed)
    return compiled.run(fed, list(wanted.names) or None)


def _save(path: str, results: Mapping[str, np.ndarray]) -> None:
    """The results as a .npz: whole, or as it was before."""
    try:
        # Not by np.savez, which takes a result called "file" for an argument of its own.
        with replacing(Path(path)) as (file,), zipfile.ZipFile(file, "w") as archive:
            for name, array in results.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array.astype(str) if array.dtype == object else array, allow_pickle=False)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from None


def _agreements(compiled: CompiledModel, fed: Mapping[str, np.ndarray], wanted: Wanted) -> list[Agreement]:
    reference = load(wanted.reference or "")
    if not reference:
        raise InputError(f"{wanted.reference} holds no arrays to compare with")
    if "" in reference:
        reference = {compiled.outputs[0].name: reference[""]}
    named = set(compiled.outputs[0].names if len(compiled.outputs) == 1 else ())
    actual = compiled.run(fed, list(reference)) if not named.issuperset(reference) else compiled(fed)
    return [compare(name, actual[name], expected, wanted.rtol, wanted.atol) for name, expected in reference.items()]


def _show(lines: Sequence[Any], classes: Sequence[Any], agreements: Sequence[Agreement]) -> None:
    rows = [(x.name, x.type, render.sizes(x.shape), x.min, x.max, x.mean, x.nans or None, _first(x)) for x in lines]
    render.table(("output", "type", "shape", "min", "max", "mean", "NaN", "first"), rows, right=(3, 4, 5, 6))
    if classes:
        render.line()
        many = len({(c.output, c.row) for c in classes}) > 1
        named = [((f"{c.output}[{c.row}]",) if many else ()) + (c.rank, c.index, c.label, c.score) for c in classes]
        render.table((("output",) if many else ()) + ("rank", "class", "label", "score"), named, right=(many, many + 1, many + 3))
    if agreements:
        render.line()
        compared = [(a.name, "agrees" if a.agrees else "differs", a.largest, a.message) for a in agreements]
        render.table(("compared", "", "largest difference", ""), compared, right=(2,))


def _first(line: Any) -> str:
    shown = ", ".join(render.number(v) if isinstance(v, float) else str(v) for v in line.first)
    return shown + (", ..." if int(np.prod(line.shape, dtype=object)) > len(line.first) else "")
