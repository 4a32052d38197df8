"""The options of irexec convert for the verification of what is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, flag, option, refuse_without
from irexec.cli.options import tolerance
from irexec.cli.shape_option import SHAPES_GIVEN, ShapeOptions, shapes_by_name
from irexec.errors import EngineError
from irexec.ir.dims import PartialShape


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Whether the IR is compared with the ONNX model, with which sizes of inputs and which tolerances."""

    wanted: bool
    shapes: Mapping[str, PartialShape]
    seed: int
    rtol: float
    atol: float


def _verify_options(verify: bool, verify_shapes: tuple[ShapeOptions, ...], **values: Any) -> Verify:
    if not verify and not verify_shapes:
        refuse_without("verify", "seed", "rtol", "atol")
    shapes = shapes_by_name(verify_shapes, "--verify-shape")
    return Verify(wanted=verify or bool(verify_shapes), shapes=shapes, **values)


VERIFY = OptionGroup(
    "Verification",
    _verify_options,
    {
        "verify": flag(
            "--verify",
            "Run the ONNX model (by ONNX Runtime if installed, else by the reference evaluator of onnx) and the "
            "IR on the same random inputs, and compare the results; with --for, the original and the IR. Dynamic "
            "dimensions stay dynamic in the IR and get random sizes here.",
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
