"""irexec convert"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from irexec.analysis.model import Model
from irexec.api import save_model
from irexec.cli import render
from irexec.cli.next_steps import as_given, go_on
from irexec.cli.option_groups import OptionGroup, command, flag, json_option, option, refuse_without
from irexec.cli.options import tolerance
from irexec.cli.shape_option import ALTERNATIVE, SHAPES_GIVEN, ShapeOptions, shapes_by_name
from irexec.cli.values import FilePath
from irexec.errors import ConversionError, EngineError, InputError, OpError
from irexec.io.output_file import check_model_files
from irexec.ir.dims import PartialShape, shape_text
from irexec.messages import counted


@dataclass(frozen=True, kw_only=True)
class _Verify:
    """Whether the IR is compared with the ONNX model, with which sizes of inputs and which tolerances."""

    wanted: bool
    shapes: Mapping[str, PartialShape]
    seed: int
    rtol: float
    atol: float


def _verify_options(verify: bool, verify_shapes: tuple[ShapeOptions, ...], **values: Any) -> _Verify:
    if not verify and not verify_shapes:
        refuse_without("verify", "seed", "rtol", "atol")
    shapes = shapes_by_name(verify_shapes, "--verify-shape")
    return _Verify(wanted=verify or bool(verify_shapes), shapes=shapes, **values)


_VERIFY = OptionGroup(
    "Verification",
    _verify_options,
    {
        "verify": flag(
            "--verify",
            "Run the ONNX model (by ONNX Runtime if installed, else by the reference evaluator of onnx) and the "
            "IR on the same random inputs, and compare the results. Dynamic dimensions stay dynamic in the IR and get "
            "random sizes here.",
        ),
        "verify_shapes": option(
            "--verify-shape",
            "The shape of an input for --verify only; the IR is not changed. Implies --verify; may be repeated.",
            **SHAPES_GIVEN,
        ),
        "seed": option("--seed", "For the random inputs and sizes of --verify.", type=click.IntRange(0), default=0),
        **tolerance("--verify", rtol=1e-3, atol=1e-4).options,
    },
)


@command()
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .xml to write; default: MODEL with the suffix .xml.", type=FilePath())
@option("--input", "shapes", f"Set the shape of an input of the IR; may be repeated. {ALTERNATIVE}", **SHAPES_GIVEN)
@flag("--strict", "Refuse a model that declares types or shapes which its nodes contradict; default: warn.")
@json_option
@_VERIFY("verification")
def convert(
    model: str,
    output: str | None,
    shapes: tuple[ShapeOptions, ...],
    strict: bool,
    as_json: bool,
    verification: _Verify,
) -> int:
    """Convert MODEL (an .onnx) to IR: an .xml and the .bin beside it.

    \b
    irexec convert model.onnx
    irexec convert model.onnx -o ir/model.xml --input "x[1,3,224,224]"
    irexec convert model.onnx --verify --verify-shape "x[2,3,64,64]"

    With --verify the exit code is 1 if results differ. If the ONNX model cannot be run,
    there is a warning and the exit code is 0. The IR is written in either case.
    """
    target = _target(model, output)
    converters = _converters()
    warnings: list[str] = []
    with render.progress(f"converting {model}"):
        converted = _converted(converters, model, shapes_by_name(shapes, "--input"), strict, warnings.append)
    for text in warnings:
        render.warning_line(text)
    if verification.wanted:
        # The compiler is imported only where the IR is run.
        from irexec.tools.verify import check_shapes

        check_shapes(converted, verification.shapes)
    with render.progress(f"writing {target}"):
        save_model(converted, target)
    document: dict[str, Any] = {"model": str(target), "layers": len(converted.nodes), "warnings": warnings}
    code = 0
    if verification.wanted:
        code, document["verify"] = _verify(model, converted, verification, as_json)
    if as_json:
        render.as_json(document)
    else:
        render.show(f"{target}: {counted(len(converted.nodes), 'layer')}")
        if code:
            same = as_given((), verification.shapes, verification.seed)
            go_on("compare", model, str(target), f"--a-runtime={_runtime()}", *same)
    return code


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


def _target(model: str, output: str | None) -> Path:
    """The .xml to write.

    Raises:
        click.BadParameter, InputError: MODEL or the output is not the path of a file, or would be overwritten.
        ConversionError: MODEL is not an ONNX model.
    """
    source = Path(model)
    if source.is_dir():
        raise click.BadParameter(f"{model!r} is not a file", param_hint="'MODEL'")
    target = source.with_suffix(".xml") if output is None else Path(output)
    if output is not None or source.exists():
        check_model_files(str(target), dict.fromkeys(map(str, _files_of(source)), "part of the model"))
    if output is None:
        _check_not_named(target)
    return target


def _check_not_named(target: Path) -> None:
    """Raise click.UsageError if a file to write, which the user has not named, exists and is not part of an IR."""
    binary = target.with_suffix(".bin")
    if target.is_file():
        if not _may_be_ir(target):
            raise click.UsageError(f"{str(target)!r} exists and is not an IR: -o names another file to write")
    elif binary.is_file():
        raise click.UsageError(f"{str(binary)!r} exists and has no .xml beside it: -o names another file to write")


def _may_be_ir(path: Path) -> bool:
    """Whether a file starts as an IR does, so that it may be replaced although the user has not named it."""
    with path.open("rb") as file:
        return b"<net" in file.read(1 << 12)


def _files_of(source: Path) -> list[Path]:
    """An ONNX model and the files of its weights. Raises ConversionError for another model."""
    if not source.exists():
        return []
    _converters()
    from converters.onnx.load import external_files

    return [*external_files(source), source]


def _runtime() -> str:
    """The runtime that --verify runs the .onnx file with."""
    return "onnxruntime" if find_spec("onnxruntime") else "onnx"


def _verify(path: str, model: Model, options: _Verify, as_json: bool) -> tuple[int, dict[str, Any]]:
    """The exit code, and the comparison as JSON; the table is printed."""
    from converters.onnx.declared import declared_shapes
    from irexec.tools.verify import verify

    runtime = _runtime()
    try:
        with render.progress(f"verifying {path}"):
            result = verify(
                model,
                options.shapes,
                declared_shapes(path),
                runtime=runtime,
                seed=options.seed,
                rtol=options.rtol,
                atol=options.atol,
            )
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


def _converters() -> Any:
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
    _converters()
    from converters.onnx.translate import unsupported_nodes

    return list(unsupported_nodes(path))
