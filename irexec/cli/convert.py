"""irexec convert: ONNX to IR, and with --for IR for an older release of OpenVINO or for a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from irexec.analysis.checks.layers import refused_layers
from irexec.analysis.model import Model
from irexec.analysis.portability.findings import parse_target
from irexec.api import save_model
from irexec.cli import render
from irexec.cli.convert_to_onnx import (
    TO_ONNX,
    ToOnnx,
    onnx_runtime,
    onnx_target,
    refuse_options_of_onnx,
    require_converters,
    verified,
    write_onnx,
)
from irexec.cli.option_groups import OVERWRITE, OptionGroup, command, flag, json_option, option
from irexec.cli.options import VERIFY, Verify
from irexec.cli.render import as_given, show_next_command
from irexec.cli.values import (
    ALTERNATIVE,
    SHAPES_GIVEN,
    FilePath,
    ShapeOptions,
    beside_model,
    shapes_by_input,
    shapes_by_name,
)
from irexec.display import Content
from irexec.errors import ConversionError, InputError, OpError
from irexec.io.writer import check_model_files, is_ir_file
from irexec.ir.dims import PartialShape, shape_text
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.reading import read_model

_UNSUPPORTED = 4


def _target_of(release: str | None) -> str | None:
    return None if release is None else str(parse_target(release))


FOR = OptionGroup(
    "Another release or device",
    _target_of,
    {
        "release": option(
            "--for",
            "Write the IR for this release of OpenVINO, such as 2021.4, in the version of IR and in operations that it "
            "has, or for this device: CPU, GPU or NPU. MODEL may be an .xml.",
            metavar="TARGET",
        )
    },
)


def is_ir(path: str) -> bool:
    """Whether MODEL is an IR by its name."""
    return Path(path).suffix.lower() == ".xml"


def read_ir(
    path: str,
    output: str | None,
    shapes: Mapping[str | None, PartialShape],
    option: str = "-o",
    *,
    overwrite: bool | None = None,
) -> tuple[Model, Path]:
    """The IR, whose inputs get the shapes, and the .xml to write, which ``option`` must name.

    Raises:
        click.UsageError: no file to write is named.
        InputError: the file to write is one that is read, or the input does not exist.
        NodeError: the model cannot take the shapes.
        ModelError, UnsupportedError: the IR cannot be read.
    """
    # These modules load the compiler, which a conversion does not need.
    from irexec.tools.run.input_sources import external_files, files_read
    from irexec.tools.run.shapes import reshape

    if output is None:
        raise click.UsageError(f"{option} names the .xml to write: MODEL is an IR itself")
    read = files_read(path, None)
    check_model_files(output, read, option, overwrite=overwrite)
    with render.progress(f"reading {path}"):
        model = read_model(path)
    check_model_files(output, read | external_files(model), option, overwrite=overwrite)
    reshape(model, shapes)
    return model, Path(output)


def write_for(model: Model, target: Path, release: str, verification: Verify, as_json: bool, overwrite: bool) -> int:
    """Write a model for a release or device, and compare it with the original if that is wanted; the exit code."""
    code, document, contents = rewritten(model, target, release, verification, overwrite)
    render.result(as_json, lambda: document, contents)
    return code


def rewritten(
    model: Model, target: Path, release: str, verification: Verify, overwrite: bool = False
) -> tuple[int, dict[str, Any], list[Content]]:
    """Write a model for a release or device; the exit code, the JSON document and the contents to show."""
    from irexec.tools.downgrading import verify_rewriting, written_for

    name = parse_target(release).name
    with render.progress(f"rewriting for {name}"):
        written = written_for(model, release)
    found = written.found
    document: dict[str, Any] = {
        "model": None if found.findings else str(target), "layers": len(found.model.nodes),
        "warnings": [f"{remark.at()}: {remark.message}" for remark in found.remarks],
        "release": release, "version": found.model.version, "changes": found.changes, "findings": found.findings,
    }  # fmt: skip
    contents: list[Content] = [*written.sections()]
    if found.findings:
        contents.append(f"{counted(len(found.findings), 'finding')}: nothing is written for {name}")
        return _UNSUPPORTED, document, contents
    with render.progress(f"writing {target}"):
        save_model(found.model, target, overwrite=overwrite)
    layers = counted(len(found.model.nodes), "layer")
    contents.append(f"{target}: {layers}, IR version {found.model.version} for {name}")
    for text in document["warnings"]:
        render.note_line(text)
    if not verification.wanted:
        return 0, document, contents
    given = verification
    with render.progress("verifying"):
        result = verify_rewriting(model, found.model, given.shapes, seed=given.seed, rtol=given.rtol, atol=given.atol)
    contents.insert(-1, result.sections())
    document["verify"] = {"against": None, "inputs": result.shapes, "outputs": result.agreements}
    return 0 if result.agrees else 1, document, contents


@command()
@click.argument("model", type=FilePath())
@option(
    "-o",
    "--output",
    "The .xml or .onnx to write; default: MODEL with the other suffix of the two.",
    type=FilePath(),
)
@option("--input", "shapes", f"Set the shape of an input; may be repeated. {ALTERNATIVE}", **SHAPES_GIVEN)
@flag(
    "--strict",
    "Refuse what is otherwise a warning: an ONNX model that contradicts itself or that OpenVINO refuses as IR, and "
    "layers of an IR that ONNX computes differently, such as random ones.",
)
@OVERWRITE
@json_option
@FOR("release")
@VERIFY("verification")
@TO_ONNX("to_onnx")
def convert(
    model: str,
    output: str | None,
    shapes: tuple[ShapeOptions, ...],
    strict: bool,
    overwrite: bool,
    as_json: bool,
    release: str | None,
    verification: Verify,
    to_onnx: ToOnnx,
) -> int:
    """Convert MODEL: an .onnx to IR, an .xml and the .bin beside it, or an .xml to ONNX.

    \b
    irexec convert model.onnx
    irexec convert model.onnx -o ir/model.xml --input "x[1,3,224,224]"
    irexec convert model.onnx --verify --verify-shape "x[2,3,64,64]"
    irexec convert model.xml -o model.onnx --opset 17 --verify
    irexec convert model.xml -o old.xml --for 2021.4 --verify

    With --verify the exit code is 1 if results differ. If the ONNX model cannot be run,
    there is a warning and the exit code is 0. The output is written in either case.
    Layers that ONNX, or the release of --for, cannot express are listed all at once,
    with exit code 4; then nothing is written.
    """
    if release is not None and is_ir(model):
        refuse_options_of_onnx()
        source, target = read_ir(model, output, shapes_by_input(shapes, "--input"), overwrite=overwrite)
        return write_for(source, target, release, verification, as_json, overwrite)
    if _writes_onnx(model, output):
        named = shapes_by_name(shapes, "--input")
        return write_onnx(model, onnx_target(model, output), named, strict, to_onnx, verification, as_json, overwrite)
    if output is not None and _has_ir(model):
        raise click.UsageError(f"-o {output}: MODEL is an IR, which is written as an .onnx, or with --for as an .xml")
    refuse_options_of_onnx()
    target = _target(model, output, overwrite)
    converters = require_converters()
    warnings: list[str] = []
    with render.progress(f"converting {model}"):
        converted = _converted(converters, model, shapes_by_name(shapes, "--input"), strict, warnings.append)
    if refused := refused_layers(converted):
        names = [f"{node.name!r} ({node.type})" for node in refused[:5]]
        layers = ", ".join([*names, "..."] if len(refused) > 5 else names)
        text = f"OpenVINO refuses the IR: it does not read the operations of {counted(len(refused), 'layer')}: {layers}"
        if strict:
            raise ConversionError(text, unsupported=True)
        warnings.append(text)
    for text in warnings:
        render.warning_line(text)
    if release is not None:
        return write_for(converted, target, release, verification, as_json, overwrite)
    if verification.wanted:
        # The compiler is imported only where the IR is run.
        from irexec.tools.verify import check_shapes

        check_shapes(converted, verification.shapes)
    with render.progress(f"writing {target}"):
        save_model(converted, target, overwrite=overwrite)
    document: dict[str, Any] = {"model": str(target), "layers": len(converted.nodes), "warnings": warnings}
    code = 0
    if verification.wanted:
        code, document["verify"] = verified(model, converted, verification, as_json)
    if as_json:
        render.as_json(document)
    else:
        render.show(f"{target}: {counted(len(converted.nodes), 'layer')}")
        if any(map(_is_pair, converted.nodes)):
            render.note_line("OpenVINO computes QuantizeLinear in f32; irexec edit --fake-quantize lets it use 8 bits")
        if code:
            same = as_given((), verification.shapes, verification.seed)
            show_next_command("compare", model, str(target), f"--a-runtime={onnx_runtime()}", *same)
    return code


def _is_pair(node: Node) -> bool:
    """Whether a layer is the end of a QuantizeLinear with its DequantizeLinear, whose scales are constants."""
    last = node
    for type in ("Subtract", "Convert", "Convert", "Clamp", "Add", "Round", "Divide"):
        source = last.inputs[0] if last.inputs else None
        if source is not None and source.node.type == type:
            last = source.node
        elif type not in ("Subtract", "Add"):
            return False
    scales = (one.inputs[1] for one in (node, last))
    return node.type == "Multiply" and all(one is not None and one.node.constant is not None for one in scales)


def _writes_onnx(model: str, output: str | None) -> bool:
    """Whether the output is an .onnx: it has that name, or none, and MODEL is an IR."""
    if output is not None:
        return output.lower().endswith(".onnx")
    return _has_ir(model)


def _has_ir(model: str) -> bool:
    """Whether MODEL is an IR by its name and by what it contains."""
    return is_ir(model) and is_ir_file(Path(model))


def _converted(
    converters: Any, path: str, shapes: Mapping[str, PartialShape], strict: bool, warn: Callable[[str], object]
) -> Model:
    """The IR.

    Raises:
        InputError: the model does not accept the shapes given.
        ConversionError: it cannot be converted for any other reason.
    """
    try:
        model: Model = converters.convert(path, inputs=shapes, strict=strict, warn=warn)
    except ConversionError as error:
        if not shapes or not isinstance(error.__cause__, OpError):
            raise
        given = " ".join(f"--input {name}{shape_text(shape)}" for name, shape in shapes.items())
        raise InputError(f"the model does not take {given}: {error}") from None
    return model


def _target(model: str, output: str | None, overwrite: bool) -> Path:
    """The .xml to write.

    Raises:
        click.BadParameter, InputError: MODEL or the output is not the path of a file, or would be overwritten.
        ConversionError: MODEL is not an ONNX model.
    """
    source = Path(model)
    beside = beside_model(model, ".xml")
    target = beside if output is None else Path(output)
    if output is not None or source.exists():
        read = dict.fromkeys(map(str, _files_of(source)), "part of the model")
        check_model_files(str(target), read, overwrite=overwrite)
    if output is None and target.is_file() and not is_ir_file(target):
        raise click.UsageError(f"{str(target)!r} exists and is not an IR: -o names another file to write")
    return target


def _files_of(source: Path) -> list[Path]:
    """An ONNX model and the files of its weights. Raises ConversionError for another model."""
    if not source.exists():
        return []
    require_converters()
    from converters.onnx.load import external_files

    return [*external_files(source), source]


def onnx_support(path: str) -> list[str]:
    """The description of each node of an ONNX model that cannot be converted."""
    require_converters()
    from converters.onnx.translate import unsupported_nodes

    return list(unsupported_nodes(path))
