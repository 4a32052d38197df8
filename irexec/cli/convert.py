"""irexec convert"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from irexec.analysis.checks.layers import own_layers
from irexec.analysis.model import Model
from irexec.api import save_model
from irexec.cli import render
from irexec.cli.convert_for import FOR, is_ir, read_ir, write_for
from irexec.cli.convert_to_onnx import TO_ONNX, ToOnnx, onnx_target, refuse_options_of_onnx, write_onnx
from irexec.cli.next_steps import as_given, go_on
from irexec.cli.option_groups import OVERWRITE, command, flag, json_option, option
from irexec.cli.shape_option import ALTERNATIVE, SHAPES_GIVEN, ShapeOptions, shapes_by_input, shapes_by_name
from irexec.cli.values import FilePath, beside_model
from irexec.cli.verify_options import VERIFY, Verify, onnx_runtime, verified
from irexec.errors import ConversionError, InputError, OpError
from irexec.io.writer import check_model_files, is_ir_file
from irexec.ir.dims import PartialShape, shape_text
from irexec.messages import counted


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
    if own := own_layers(converted):
        layers = ", ".join(f"{node.name!r} ({node.type})" for node in own[:5]) + (", ..." if len(own) > 5 else "")
        text = f"OpenVINO refuses the IR: irexec alone has the operations of {counted(len(own), 'layer')}: {layers}"
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
        if code:
            same = as_given((), verification.shapes, verification.seed)
            go_on("compare", model, str(target), f"--a-runtime={onnx_runtime()}", *same)
    return code


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


def require_converters() -> Any:
    """The converter. It needs the package onnx, an extra that no other command needs."""
    try:
        import converters.onnx.translate
    except ImportError as error:
        raise ConversionError(
            f"conversion needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return converters


def onnx_support(path: str) -> list[str]:
    """The description of each node of an ONNX model that cannot be converted."""
    require_converters()
    from converters.onnx.translate import unsupported_nodes

    return list(unsupported_nodes(path))
