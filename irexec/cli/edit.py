"""irexec edit: each option is one method of an Editor; they are made in the order given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from irexec.api import save_model
from irexec.authoring.compression import MODES
from irexec.authoring.editor import Editor
from irexec.cli import render
from irexec.cli.option_groups import OVERWRITE, GroupedCommand, Option, OptionGroup, command, flag, json_option, option
from irexec.cli.options import WEIGHTS, WeightsOptions
from irexec.cli.values import (
    SHAPES_GIVEN,
    FilePath,
    Parsed,
    attribute_value,
    element_type,
    kind_for_output,
    kind_with_options,
    named,
    numbers,
    pair,
    resizing,
    shapes_by_input,
)
from irexec.errors import InputError, ModelError
from irexec.io.writer import check_model_files
from irexec.ir.shape_text import ShapeLike
from irexec.messages import counted
from irexec.reading import read_model
from irexec.tools.diff import Diff, diff
from irexec.tools.diff.patch import diff_sections
from irexec.tools.run.input_sources import external_files, files_read
from irexec.tools.run.shapes import Shapes, read_with_shapes

_ORDER = "irexec.order"


Given = Sequence[tuple[str, Any]]
"""Options with their values, in the order given."""
Steps = Sequence[Callable[[Editor], None]]
"""Steps of a command line, in the order given."""


@dataclass(frozen=True)
class StepOption:
    """An option of the command line that is a step.

    Attributes:
        heading: its group in --help.
        option: its flags and settings.
        make: makes the step, or several, of the options given.
        group: options with the same group are one step, at the place of the first; "" for a step of its own.
    """

    heading: str
    option: Option
    make: Callable[[Editor, Given], None]
    group: str = ""


def _each(make: Callable[..., None]) -> Callable[[Editor, Given], None]:
    """Make a step of each value, of which a tuple is several arguments."""

    def steps(editor: Editor, given: Given) -> None:
        for _, value in given:
            make(editor, *(value if isinstance(value, tuple) else (value,)))

    return steps


def _together(make: Callable[..., None]) -> Callable[[Editor, Given], None]:
    return lambda editor, given: make(editor, *(value for _, value in given))


def _flag(make: Callable[[Editor], None]) -> Callable[[Editor, Given], None]:
    return lambda editor, given: make(editor)


def _reshape(editor: Editor, given: Given) -> None:
    shapes = shapes_by_input([value for _, value in given], "--shape")
    named: dict[str | int, ShapeLike] = {name: shape for name, shape in shapes.items() if name is not None}
    if None in shapes:
        editor.reshape(shapes[None])
    if named:
        editor.reshape(named)


def _unfreeze(editor: Editor, given: Given) -> None:
    editor.unfreeze([value for _, value in given])


def _constant(editor: Editor, layer: str, path: str) -> None:
    from irexec.tools.arrays.files import open_arrays

    with open_arrays(path, ".npy") as file:
        if file.named:
            raise ModelError(f"{path}: has arrays with names, expected a .npy")
        editor.set_constant(layer, file.read(""))


def _replace(editor: Editor, layer: str, path: str) -> None:
    editor.replace(layer, read_model(path))


def _preprocess(editor: Editor, given: Given) -> None:
    """All preprocessing of an input is one step; what names no input is for the one that is named, or the only one."""
    named = {value[0] for name, value in given if name != "reverse_channels" and value[0] is not None}
    wanted: dict[str | None, dict[str, Any]] = {}
    for name, value in given:
        key, content = (None, True) if name == "reverse_channels" else value
        key = next(iter(named)) if key is None and len(named) == 1 else key
        entry = wanted.setdefault(key, {})
        entry |= content if isinstance(content, dict) else {name: content}
    for key, options in wanted.items():
        if key is None and len(editor.model.inputs) != 1:
            names = ", ".join(repr(port.name) for port in editor.model.inputs)
            raise InputError(f"preprocessing names no input, and the model has {names}: NAME=VALUE is for one of them")
        outputs = {name for port in editor.model.outputs for name in port.names}
        if set(options) == {"element"} and key in outputs:
            editor.set_element(str(key), options["element"])
        else:
            editor.embed_preprocessing(0 if key is None else key, **options)


def _append(editor: Editor, output: str | None, kind: str, options: dict[str, Any]) -> None:
    editor.append(kind, output, **options)


def _compress(editor: Editor, given: Given) -> None:
    keep = [value for name, value in given if name == "keep"]
    modes = [value for name, value in given if name == "compress"]
    if keep and not modes:
        raise InputError("--keep is for --compress, which is not given")
    for mode, options in modes:
        unknown = next((name for name in options if name != "group"), None)
        if unknown is not None or not isinstance(options.get("group", 1), int):
            raise InputError(f"--compress {mode}: {unknown or 'group'} is not an option with a whole number; group is")
        editor.compress(mode, **options, keep=keep)


def _step(
    heading: str, flag: str, metavar: str, make: Callable[[Editor, Given], None], help: str, *,
    group: str = "", parse: Callable[[str], Any] = str,
) -> StepOption:  # fmt: skip
    """A step of an option that may be repeated; ``parse`` makes its value from a text of the form ``metavar``."""
    kind = Parsed(metavar, parse, of_form=True)
    return StepOption(heading, option(flag, help, multiple=True, type=kind, metavar=metavar), make, group)


def _switch(heading: str, flags: str, make: Callable[[Editor, Given], None], help: str, group: str = "") -> StepOption:
    """A step of an option without a value."""
    return StepOption(heading, flag(flags, help), make, group)


_INPUT, _BITS = "Preprocessing", "Weights in fewer bits"

STEPS: Mapping[str, StepOption] = {
    "cut_from": _step(
        "Cut", "--cut-from", "TENSOR", _together(Editor.cut_from),
        "Make this tensor an input, and leave out what only it depended on. All tensors given are one step.",
        group="cut_from",
    ),
    "cut_to": _step(
        "Cut", "--cut-to", "TENSOR", _together(Editor.cut_to),
        "Make this tensor an output, and leave out what no such tensor depends on. All tensors given are one step.",
        group="cut_to",
    ),
    "add_output": _step(
        "Cut", "--add-output", "TENSOR", _each(Editor.add_output), "Make this tensor a further output."
    ),
    "rename": _step(
        "Names", "--rename", "OLD=NEW", _each(Editor.rename),
        "Rename layers and tensors. OLD may have asterisks, whose texts "
        r"those of NEW stand for, or be re: and a regular expression: 're:^model/(.*)=\1'.",
        parse=pair,
    ),
    "shapes": StepOption(
        "Inputs",
        option("--shape", "Set the shape of an input; all shapes given are one step.", **SHAPES_GIVEN),
        _reshape, "shapes",
    ),
    "batch": _step(
        "Inputs", "--batch", "8|?", _each(Editor.set_batch), "Set the batch size of all inputs; ? is any size."
    ),
    "set": _step(
        "Layers", "--set", "LAYER.ATTRIBUTE=VALUE", _each(Editor.set_attribute), "Set an attribute of a layer.",
        parse=attribute_value,
    ),
    "const": _step(
        "Layers", "--const", "LAYER=FILE.npy", _each(_constant),
        "Replace the values of a Constant by those of a file.", parse=pair,
    ),
    "remove": _step(
        "Layers", "--remove", "LAYER", _each(Editor.remove),
        "Take a layer out: its readers read the input that has the type and shape of its output.",
    ),
    "replace": _step(
        "Layers", "--replace", "LAYER=MODEL.xml", _each(_replace),
        "Put the layers of a model in the place of a layer.", parse=pair,
    ),
    "element": _step(
        _INPUT, "--element", "NAME=u8", _preprocess, "Take an input, or give an output, in another element type.",
        group=_INPUT, parse=named(element_type),
    ),
    "layout": _step(
        _INPUT, "--layout", "[NAME=]NHWC", _preprocess, "Take an input in another layout, by a Transpose.",
        group=_INPUT, parse=named(),
    ),
    "model_layout": _step(
        _INPUT, "--model-layout", "[NAME=]NCHW", _preprocess,
        "The layout that the model has; default: what the model declares, or else by the axis of 1, 3 or 4 channels.",
        group=_INPUT, parse=named(),
    ),
    "resize": _step(
        _INPUT, "--resize", "[NAME=]linear[:HxW]", _preprocess,
        "Take images of any size, or of this size, and resize them: linear, cubic or nearest.",
        group=_INPUT, parse=named(resizing),
    ),
    "reverse_channels": _switch(
        _INPUT, "--reverse-channels", _preprocess, "Reverse the order of the channels, such as BGR to RGB.", _INPUT
    ),
    "mean": _step(
        _INPUT, "--mean", "[NAME=]1,2,3", _preprocess,
        "Subtract a number, or one for each channel in the order of the model.", group=_INPUT, parse=named(numbers),
    ),
    "scale": _step(
        _INPUT, "--scale", "[NAME=]1,2,3", _preprocess,
        "Divide by a number, or by one for each channel, after the mean.", group=_INPUT, parse=named(numbers),
    ),
    "append": _step(
        "Postprocessing", "--append", "[OUTPUT=]softmax|...", _each(_append),
        "Append softmax, sigmoid, argmax, topk or nms to an output, with options such as topk:k=5 or softmax:axis=1.",
        parse=kind_for_output,
    ),
    "compress": _step(
        _BITS, "--compress", "MODE[:group=128]", _compress,
        f"Store weights in fewer bits, as OpenVINO and NNCF do: {', '.join(MODES)}.",
        parse=kind_with_options, group="compress",
    ),
    "keep": _step(
        _BITS, "--keep", "LAYER", _compress, "Leave the weights of this layer as they are; with --compress.",
        group="compress",
    ),
    "precise": _step(
        _BITS, "--precise", "LAYER", _each(Editor.precise),
        "Compute this layer in f32 on devices that compute in f16: OpenVINO's attribute precise.",
    ),
    "decompress": _switch(
        _BITS, "--decompress", _flag(Editor.decompress),
        "Store compressed weights in the element type in which they are used.",
    ),
    "fake_quantize": _switch(
        _BITS, "--fake-quantize", _flag(Editor.fake_quantize),
        "Make FakeQuantize of QuantizeLinear and DequantizeLinear of an ONNX model: OpenVINO then computes in 8 bits.",
    ),
    "fold": _switch(
        "Rewriting", "--fold", _flag(Editor.fold),
        "Replace what depends on constants alone, or on known shapes, by constants.",
    ),
    "optimize": _switch(
        "Rewriting", "--optimize", _flag(Editor.optimize),
        "Leave out and merge layers where the results stay the same bit by bit.",
    ),
    "unfreeze": _step(
        "Rewriting", "--unfreeze", "INPUT", _unfreeze,
        "Let the batch of an input have any size, where constants keep it. All inputs given are one step.",
        group="unfreeze",
    ),
    "rt_info": _step(
        "Metadata", "--rt-info", "KEY=VALUE", _each(Editor.set_rt_info),
        "Set an entry of the model's rt_info; KEY may be a path such as model_info/model_type.", parse=pair,
    ),
}  # fmt: skip
"""The steps by the names of their parameters, in the order of --help."""


class EditCommand(GroupedCommand):
    """A command that knows the order in which its options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep the name of the parameter of each."""
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def step_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: add the options of all steps to a command.

    Its parameter ``steps`` receives the given steps, ``shapes`` the shapes among them, which reading a model may need.
    """
    headings = dict.fromkeys(step.heading for step in STEPS.values())

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        groups = [values.pop(heading) for heading in headings]
        given = {name: group[name] for group in groups for name in group}
        shapes = shapes_by_input(given["shapes"], "--shape")
        return command(**values, steps=list(given_steps(given)), shapes=shapes)

    for heading in reversed(headings):
        options = {name: step.option for name, step in STEPS.items() if step.heading == heading}
        run = OptionGroup(heading, dict, options)(heading)(run)
    return run


def given_steps(groups: Mapping[str, Any]) -> Iterator[Callable[[Editor], None]]:
    """The steps of the running command line, in the order given.

    Args:
        groups: the values of each option, in the order given.
    """
    waiting = {name: list(values) if isinstance(values, tuple) else [values] for name, values in groups.items()}
    order = [name for name in click.get_current_context().meta[_ORDER] if name in STEPS]
    given = [(name, waiting[name].pop(0)) for name in order if waiting[name]]
    done: set[str] = set()
    for name, value in given:
        step = STEPS[name]
        if step.group in done:
            continue
        done |= {step.group} - {""}
        together = [(n, v) for n, v in given if STEPS[n].group == step.group] if step.group else [(name, value)]
        yield functools.partial(_make_step, step, together)


def _make_step(step: StepOption, given: Given, editor: Editor) -> None:
    step.make(editor, given)


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
    if output is None and not dry_run:
        raise click.UsageError("-o names the .xml to write, and --dry-run writes nothing: neither is given")
    if not steps:
        raise click.UsageError("no step is given, such as --rename OLD=NEW")
    read = files_read(model, files.weights)
    if output is not None:
        check_model_files(output, read, overwrite=overwrite)
    with render.progress(f"reading {model}"):
        edited = read_with_shapes(model, files.weights, shapes, mmap=files.mmap)
    before = edited.clone()
    with render.progress(f"editing {model}"):
        with Editor(edited) as editor:
            for step in steps:
                step(editor)
        found = diff(before, edited)
    if output is not None and not dry_run:
        check_model_files(output, read | external_files(edited), overwrite=overwrite)
        with render.progress(f"writing {output}"):
            save_model(edited, output, overwrite=overwrite)
        found = replace(found, b=output)
    _show(editor, None if dry_run else output, found, as_json)
    return 0


def _show(editor: Editor, output: str | None, found: Diff, as_json: bool) -> None:
    count, steps, notes = len(editor.model.nodes), editor.steps, editor.notes
    if as_json:
        changes = found.as_dict()
        render.as_json({"model": output, "layers": count, "steps": steps, "notes": notes, "changes": changes})
        return
    written = "nothing is written" if output is None else f"{output}: {counted(count, 'layer')}"
    # These change the same few layers at hundreds of tensors: their notes count them.
    is_counted = all(step.startswith(("compress ", "fake-quantize")) for step in steps)
    patch = [found.summary()] if is_counted else diff_sections(found)
    render.show([*patch, *_notes(notes), f"{counted(len(steps), 'step')}; {written}"])


def _notes(notes: list[str]) -> list[str]:
    shown = [f"note: {note}" for note in notes[:_SHOWN]]
    return shown if len(notes) <= _SHOWN else [*shown, f"note: ... and {len(notes) - _SHOWN} more"]
