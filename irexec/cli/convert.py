"""irexec convert"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from irexec.analysis.model import Model
from irexec.api import compile_model, save_model
from irexec.cli import render
from irexec.errors import ConversionError, InputError
from irexec.ir.dims import PartialShape
from irexec.tools.input_sources import random_array, static
from irexec.tools.results import Agreement, compare


@click.command(short_help="Convert an .onnx to IR.")
@click.argument("model", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="The .xml to write; MODEL with another suffix unless told.")
@click.option(
    "--input", "specs", multiple=True, metavar='"x[1,3,?,?]"', help="The shape of an input; may be repeated. ? is any size, 1..8 a range."
)
@click.option("--verify", is_flag=True, help="Run the ONNX model and the IR on the same random inputs and compare.")
@click.option("--seed", default=0, show_default=True, help="For the random inputs of --verify.")
@click.option("--rtol", default=1e-3, show_default=True, help="Relative tolerance of --verify.")
@click.option("--atol", default=1e-4, show_default=True, help="Absolute tolerance of --verify.")
@click.option("--json", "as_json", is_flag=True, help="Versioned json instead of tables.")
def convert(
    model: str, output: str | None, specs: tuple[str, ...], verify: bool, seed: int, rtol: float, atol: float, as_json: bool
) -> int:
    """Convert MODEL (an .onnx) to IR: an .xml and the .bin beside it.

    \b
    irexec convert model.onnx
    irexec convert model.onnx -o ir/model.xml --input "x[1,3,224,224]" --verify
    """
    converters = _converters()
    shapes = _shapes(specs, converters)
    target = Path(output) if output else Path(model).with_suffix(".xml")
    if target.suffix != ".xml":
        raise click.BadParameter(f"{target} does not end in .xml", param_hint="'-o'")
    converted, warned = _converted(converters, model, shapes)
    engine, agreements = _verify(model, converted, seed, rtol, atol) if verify else ("", [])
    save_model(converted, target)
    if as_json:
        document: dict[str, Any] = {"model": str(target), "layers": len(converted.nodes), "warnings": warned}
        document |= {"verify": {"against": engine, "outputs": [asdict(a) for a in agreements]}} if verify else {}
        render.as_json(document)
    else:
        if verify:
            rows = [(a.name, "agrees" if a.agrees else "differs", a.largest, a.message) for a in agreements]
            render.table(("output", f"against {engine}", "largest difference", ""), rows, right=(2,))
        render.line(f"{target}: {len(converted.nodes)} layers")
    return 0 if all(a.agrees for a in agreements) else 1


def _converted(converters: Any, path: str, shapes: Mapping[str, PartialShape]) -> tuple[Model, list[str]]:
    """The model, and what the converter warns of, which is said in a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model: Model = converters.convert(path, inputs=shapes)
    warned = [str(warning.message) for warning in caught]
    for text in warned:
        render.warning_line(text)
    return model, warned


def _converters() -> Any:
    """The converter, which needs onnx: an extra that no other command needs."""
    try:
        import converters.onnx.translate
    except ImportError as error:
        raise ConversionError(f"converting needs the package onnx (pip install 'irexec[onnx]'): {error}") from None
    return converters


def _shapes(specs: tuple[str, ...], converters: Any) -> dict[str, PartialShape]:
    shapes: dict[str, PartialShape] = {}
    for spec in specs:
        name, shape = converters.parse_input_spec(spec)
        if name in shapes:
            raise InputError(f"the shape of input {name!r} is given twice")
        shapes[name] = shape
    return shapes


def _verify(path: str, model: Model, seed: int, rtol: float, atol: float) -> tuple[str, list[Agreement]]:
    """What ran the ONNX model, and whether the IR gives the same, output by output."""
    from converters.onnx.verify import run_onnx

    inputs = _inputs(model, seed)
    engine, reference = run_onnx(path, inputs)
    results = compile_model(model)(inputs)
    return engine, [compare(name, results[name], np.asarray(expected), rtol, atol) for name, expected in reference.items()]


def _inputs(model: Model, seed: int) -> Mapping[str, np.ndarray]:
    inputs: dict[str, np.ndarray] = {}
    for number, port in enumerate(model.inputs):
        if static(port.shape) is None:
            raise InputError(f'--verify needs every size: give --input "{port.name}[...]" (it is {port})')
        inputs[port.name] = random_array(port, seed + number)
    return inputs


def onnx_support(path: str) -> list[str]:
    """One sentence for each node of an ONNX model that cannot be converted."""
    _converters()
    from converters.onnx.translate import unsupported_nodes

    return list(unsupported_nodes(path))
