"""irexec edit"""

from __future__ import annotations

from dataclasses import replace

import click

from irexec.analysis.model import Model
from irexec.api import save_model
from irexec.authoring.editor import Editor
from irexec.cli import render
from irexec.cli.edit_options import EditCommand, Steps, step_options
from irexec.cli.option_groups import OVERWRITE, command, flag, json_option, option
from irexec.cli.options import WEIGHTS, WeightsOptions
from irexec.cli.values import FilePath
from irexec.io.writer import check_model_files
from irexec.messages import counted
from irexec.tools.diff import Diff, diff
from irexec.tools.diff.patch import diff_sections
from irexec.tools.run.input_sources import external_files, files_read
from irexec.tools.run.shapes import Shapes, read_with_shapes

_SHOWN = 5
"""Number of notes that are printed; --json has all."""


@command(kind=EditCommand)
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .xml to write; the .bin is written beside it.", type=FilePath())
@flag("--dry-run", "Make all steps and show the changes, but write nothing.")
@OVERWRITE
@json_option
@WEIGHTS("files")
@step_options
def edit(
    model: str,
    output: str | None,
    dry_run: bool,
    overwrite: bool,
    as_json: bool,
    files: WeightsOptions,
    steps: Steps,
    shapes: Shapes,
) -> int:
    """Change MODEL, an .xml or .onnx, and write it as IR.

    Every option below "Weights" is a step. Steps are made in the order in which they are given, each is checked when
    it is made, and nothing is written unless all of them can be made. At the end the changes are shown as irexec diff
    shows them.

    \b
    irexec edit model.xml -o part.xml --cut-from conv1 --cut-to relu5
    irexec edit model.xml -o fixed.xml --batch 1 --rename 'x=image'
    irexec edit model.xml --set conv1.strides=2,2 --dry-run
    """
    _check_usage(output, dry_run, bool(steps))
    read = files_read(model, files.weights)
    if output is not None:
        check_model_files(output, read, overwrite=overwrite)
    with render.progress(f"reading {model}"):
        edited = read_with_shapes(model, files.weights, shapes, mmap=files.mmap)
    before = edited.clone()
    with render.progress(f"editing {model}"):
        editor = _make(edited, steps)
        found = diff(before, edited)
    if output is not None and not dry_run:
        check_model_files(output, read | external_files(edited), overwrite=overwrite)
        with render.progress(f"writing {output}"):
            save_model(edited, output, overwrite=overwrite)
        found = replace(found, b=output)
    _show(editor, None if dry_run else output, found, as_json)
    return 0


def _check_usage(output: str | None, dry_run: bool, has_steps: bool) -> None:
    if output is None and not dry_run:
        raise click.UsageError("-o names the .xml to write, and --dry-run writes nothing: neither is given")
    if not has_steps:
        raise click.UsageError("no step is given, such as --rename OLD=NEW")


def _make(model: Model, steps: Steps) -> Editor:
    """Make all steps or none."""
    editor = Editor(model)
    with editor:
        for step in steps:
            step(editor)
    return editor


def _show(editor: Editor, output: str | None, found: Diff, as_json: bool) -> None:
    count, steps, notes = len(editor.model.nodes), editor.steps, editor.notes
    if as_json:
        changes = found.as_dict()
        render.as_json({"model": output, "layers": count, "steps": steps, "notes": notes, "changes": changes})
        return
    written = "nothing is written" if output is None else f"{output}: {counted(count, 'layer')}"
    render.show([*diff_sections(found), *_notes(notes), f"{counted(len(steps), 'step')}; {written}"])


def _notes(notes: list[str]) -> list[str]:
    shown = [f"note: {note}" for note in notes[:_SHOWN]]
    return shown if len(notes) <= _SHOWN else [*shown, f"note: ... and {len(notes) - _SHOWN} more"]
