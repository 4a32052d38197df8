"""irexec convert with an .onnx as the output; the options that verify what is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click

from irexec.analysis.f32_arithmetic import compute_in_f32, computed_in_halves
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, flag, given_flags, option
from irexec.cli.options import Verify
from irexec.cli.render import as_given, show_next_command
from irexec.cli.values import FilePath, beside_model
from irexec.errors import ConversionError, EngineError, InputError
from irexec.io.files import new_file
from irexec.io.onnx_bytes import is_onnx_file
from irexec.io.writer import check_file
from irexec.ir.dims import PartialShape
from irexec.messages import counted, listed
from irexec.reading import read_model


@dataclass(frozen=True, kw_only=True)
class ToOnnx:
    """Opset of an .onnx that is written, whether its weights go to a file of their own, the file of the report, and the
    arithmetic of f16."""

    opset: int | None
    external_data: bool
    report: str | None
    arithmetic: Literal["as-written", "f32"]


TO_ONNX = OptionGroup(
    "ONNX",
    ToOnnx,
    {
        "opset": option(
            "The opset of ai.onnx, 13 or newer; default: the newest of ONNX Runtime.", type=click.IntRange(1)
        ),
        "external_data": flag("Write the weights to a file of their own beside the .onnx, as for models over 2 GB."),
        "report": option(
            "Write a JSON file that lists the nodes of each layer, or why there are none.", type=FilePath()
        ),
        "arithmetic": option(
            "Layers of f16 and bf16 compute as written, or in f32, as irexec and OpenVINO run them.",
            type=click.Choice(["as-written", "f32"]),
            default="as-written",
        ),
    },
)


def refuse_options_of_onnx() -> None:
    """Raise UsageError for an option of TO_ONNX where an IR is written."""
    for shown in given_flags(TO_ONNX.options):
        raise click.UsageError(f"{shown} is for an .onnx, and the output is an IR")


def onnx_target(model: str, output: str | None) -> Path:
    """The .onnx to write.

    Raises:
        click.UsageError: a file that the user has not named would be overwritten.
    """
    target = beside_model(model, ".onnx") if output is None else Path(output)
    if output is None and target.exists():
        raise click.UsageError(f"{str(target)!r} exists: -o names another file to write")
    return target


def write_onnx(
    model: str, target: Path, shapes: Mapping[str, PartialShape], strict: bool, options: ToOnnx, verification: Verify,
    as_json: bool, overwrite: bool,
) -> int:  # fmt: skip
    """Write a model as ONNX; returns the exit code."""
    named: Any = dict(shapes)
    with render.progress(f"reading {model}"):
        is_onnx = is_onnx_file(model)
        source = read_model(model, inputs=(named or None) if is_onnx else None)
        if named and not is_onnx:
            source.reshape(named)
    # Raise InputError for an input of unknown rank, which ONNX does not have.
    for port in source.inputs:
        if port.shape is None:
            hint = f'give it a shape with --input "{port.name}[...]"'
            raise InputError(f"the rank of input {port.name!r} is not known, and ONNX needs it: {hint}")
    _check_files(source, target, options, overwrite)
    if verification.wanted:
        from irexec.tools.verify import check_shapes

        check_shapes(source, verification.shapes)
    document: dict[str, Any] = {"model": str(target), "layers": len(source.nodes), "warnings": []}
    exported = _exported(source, options, strict, document)
    document["warnings"] = [str(one) for one in exported.remarks]
    for text in document["warnings"]:
        render.warning_line(text)
    from converters.ir_to_onnx.export import save_onnx

    with render.progress(f"writing {target}"):
        document["files"] = [str(path) for path in save_onnx(exported.proto, target, options.external_data)]
    code = 0
    if verification.wanted:
        code, document["verify"] = verified(str(target), _named(source, exported, target), verification, as_json)
    _report(options.report, document)
    if as_json:
        render.as_json({key: value for key, value in document.items() if key != "written"})
    else:
        nodes = sum(len(layer.operators) for layer in exported.layers)
        render.show(f"{target}: {counted(nodes, 'node')} of opset {document['opset']}")
        if exported.states:
            # The inputs and outputs of a model's states, as sentences.
            texts = [
                f"state {state.variable!r} is "
                + " and ".join(
                    f"{kind} {name!r}" for kind, name in (("input", state.input), ("output", state.output)) if name
                )
                for state in exported.states
            ]
            render.show(f"{listed(texts, 3)}; an output is passed to the next run as the input")
        if code:
            same = as_given((), verification.shapes, verification.seed)
            show_next_command("compare", model, str(target), f"--b-runtime={onnx_runtime()}", *same)
    return code


def require_converters() -> Any:
    """The converter. It needs the package onnx, an extra that no other command needs."""
    try:
        import converters.onnx.translate
    except ImportError as error:
        raise ConversionError(
            f"conversion needs the package onnx (pip install onnx): {error}", unsupported=True
        ) from None
    return converters


def _check_files(source: Model, target: Path, options: ToOnnx, overwrite: bool) -> None:
    """Raise InputError unless the files can be written without overwriting the model."""
    require_converters()
    from converters.ir_to_onnx.export import check_onnx_target, data_path

    check_onnx_target(source, target, "-o")
    data = data_path(target)
    if options.external_data and data.exists() and not target.exists() and not overwrite:
        raise InputError(f"-o {target}: {data} exists without {target.name} beside it: --overwrite replaces it")
    if options.report is not None:
        check_file("--report", Path(options.report), source.files)
        if Path(options.report) in (target, data_path(target)):
            raise InputError(f"--report {options.report} is a file of -o")


def _exported(source: Model, options: ToOnnx, strict: bool, document: dict[str, Any]) -> Any:
    """The model as ONNX; its layers, opset and states are put into the document.

    Raises:
        ConversionError: layers cannot be written; each has been printed on a line of its own.
    """
    from converters.ir_to_onnx.export import export
    from converters.ir_to_onnx.graph_writer import ExportError
    from converters.ir_to_onnx.opsets import checked_opset

    document["opset"] = checked_opset(options.opset)
    if options.arithmetic == "f32":
        source = source.clone()
        compute_in_f32(source, infer_shapes(source, tolerant=True).facts)
    elif computed := computed_in_halves(source):
        render.warning_line(
            f"{counted(len(computed), 'layer')}, such as {computed[0].name!r}, will compute in f16 or bf16; irexec and "
            "OpenVINO compute them in f32: --arithmetic f32 writes that"
        )
    try:
        exported = export(source, options.opset, strict)
    except ExportError as error:
        _report(options.report, {**document, "refused": error.layers})
        raise
    document |= {"written": exported.layers, "opset": exported.opset, "states": exported.states}
    return exported


def _report(path: str | None, document: Mapping[str, Any]) -> None:
    if path is not None:
        text = render.json_text(render.to_plain({"schema": render.SCHEMA, **document}), 2, ascii_only=False)
        with new_file(path) as file:
            file.write(text.encode() + b"\n")


def _named(source: Model, exported: Any, target: Path) -> Model:
    """A copy of the model that counts as read from the .onnx, whose names its inputs and outputs have."""
    model = source.clone()
    model.path = target
    inputs = [node.outputs[0] for node in model.parameters]
    outputs: list[Any] = [value for node in model.results for value in node.inputs]
    for values, names in ((inputs, exported.inputs), (outputs, exported.outputs)):
        for value, name in zip(values, names, strict=True):
            if name not in value.names:
                value.names.insert(0, name)
    return model


def onnx_runtime() -> str:
    """The runtime that --verify runs the .onnx file with."""
    return "onnxruntime" if find_spec("onnxruntime") else "onnx"


def verified(path: str, model: Any, options: Verify, as_json: bool) -> tuple[int, dict[str, Any]]:
    """Compare the .onnx file with the model whose ``path`` is that of the file; the table is printed.

    Returns:
        The exit code, and the comparison as JSON.
    """
    from converters.onnx.load import declared_shapes
    from irexec.tools.verify import verify

    runtime = onnx_runtime()
    try:
        with render.progress(f"verifying {path}"):
            result = verify(
                model, options.shapes, declared_shapes(path), runtime=runtime, seed=options.seed, rtol=options.rtol,
                atol=options.atol,
            )  # fmt: skip
    except EngineError as error:
        hint = " (ONNX Runtime is used if it is installed: pip install onnxruntime)" if runtime == "onnx" else ""
        render.warning_line(f"not verified: {error}{hint}")
        return 0, {"against": None, "error": str(error), "inputs": {}, "outputs": []}
    if not as_json:
        render.show(result.sections())
    return 0 if result.agrees else 1, {
        "against": result.against, "inputs": result.shapes, "outputs": result.agreements,
        **({} if result.known is None else {"known": result.known}),
    }  # fmt: skip
