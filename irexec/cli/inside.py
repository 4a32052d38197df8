"""irexec inside"""

from __future__ import annotations

from collections.abc import Sequence

import click

from irexec.api import save_model
from irexec.cli import render
from irexec.cli.option_groups import OVERWRITE, command, flag, json_option, option, refuse_without
from irexec.cli.values import SHAPES_GIVEN, FilePath, ShapeOptions, shapes_by_input
from irexec.io.writer import check_model_files
from irexec.messages import counted
from irexec.tools.compare import CompareOptions
from irexec.tools.inside import Inside, InsideCheck, InsideOptions, check
from irexec.tools.inside import inside as transformed
from irexec.tools.judge import JudgeOptions
from irexec.tools.run.input_sources import InputSource, files_read


@command()
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .xml to write; the .bin is beside it.", type=FilePath())
@option("--release", "The release, such as 2025.4.0, of those that irexec bisect installs; default: the installed one.")
@flag(
    "--check", "is_checked", "Tell a wrong transformation from a wrong kernel, on random inputs; exit code 1 for both."
)
@option("--shape", "For --check: the shape of an input; may be repeated.", **SHAPES_GIVEN)
@option("--seed", "For --check: of the random inputs.", type=click.IntRange(0), default=0)
@option("--precision", "What OpenVINO computes in.", choices=["f32", "f16", "bf16"], default="f32")
@OVERWRITE
@json_option
def inside(
    model: str,
    output: str | None,
    release: str | None,
    is_checked: bool,
    shape: tuple[ShapeOptions, ...],
    seed: int,
    precision: str,
    overwrite: bool,
    as_json: bool,
) -> int:
    """Show what OpenVINO's CPU plugin makes of MODEL (an .xml or .onnx), and write it.

    The transformations of the plugin fuse, move and replace layers before anything runs. The result is written in
    published operations, with the names of layers and tensors that are left, so that it is validated, drawn, run and
    compared as any other model. --check says whether a difference between irexec and OpenVINO comes from a
    transformation or from a kernel.

    \b
    irexec inside model.xml -o inside.xml
    irexec inside model.xml --check --shape "x[1,3,224,224]"
    irexec inside model.xml --check --release 2024.6.0
    irexec compare model.xml inside.xml
    """
    if not is_checked:
        refuse_without("check", "shape", "seed")
    if output is not None:
        check_model_files(output, files_read(model, None), overwrite=overwrite)
    with render.progress(f"compiling {model}"):
        found = transformed(model, InsideOptions(release=release, precision=precision))
    if output is not None:
        save_model(found.model, output, overwrite=overwrite)
    checked = None
    if is_checked:
        with render.progress(f"comparing {model}"):
            runtime = "openvino" if release is None else f"openvino=={release}"
            options = CompareOptions(shapes=shapes_by_input(shape, "--shape"), seed=seed, b_runtime=runtime)
            checked = check(model, found, options)
    return shown(found, checked, output, as_json)


def checked_inside(
    model: str,
    runtime: str,
    options: CompareOptions | JudgeOptions,
    sources: Sequence[InputSource],
    output: str | None,
    as_json: bool,
) -> InsideCheck:
    """``compare --inside`` and ``judge --inside``: print the verdict."""
    kind, _, release = runtime.partition("==")
    if kind not in ("openvino", "irexec"):
        raise click.UsageError(f"--inside is about OpenVINO, not {runtime}")
    with render.progress(f"compiling {model}"):
        found = transformed(model, InsideOptions(release=release or None, environments=options.environments))
    with render.progress(f"comparing {model}"):
        checked = check(model, found, options, sources=sources, notify=render.note_line, output=output)
    shown(found, checked, None, as_json)
    return checked


def shown(found: Inside, checked: InsideCheck | None, output: str | None, as_json: bool) -> int:
    """Print a transformed model and what is known of it; returns the exit code."""
    document = {
        "model": output, "version": found.version, "before": dict(found.before), "inside": dict(found.after),
        "rewritten": dict(found.rewritten), "layers": len(found.model.nodes),
        "verdict": None if checked is None else checked.verdict,
    }  # fmt: skip
    written = [] if output is None else [f"{output}: {counted(len(found.model.nodes), 'layer')}"]
    written = written or (["nothing is written"] if checked is None else [])
    verdict = [] if checked is None else checked.sections()
    render.result(as_json, lambda: document, [*found.sections(), *written, *verdict])
    return 0 if checked is None or checked.verdict == "neither" else 1
