"""The options of irexec edit, each of which is one method of an Editor; they are made in the order given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from irexec.api import read_model
from irexec.authoring.editor import Editor
from irexec.cli.edit_values import AttributeValue, Compression, KindWithOptions, NamedValue, Pair, numbers, resizing
from irexec.cli.option_groups import GroupedCommand, Option, OptionGroup, option
from irexec.cli.shape_option import METAVAR, ShapeType, shapes_by_input
from irexec.errors import InputError, ModelError
from irexec.ir.shape_text import ShapeLike

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


def _flag(make: Callable[[Editor], None]) -> Callable[[Editor, Given], None]:
    return lambda editor, given: make(editor)


def _reshape(editor: Editor, given: Given) -> None:
    shapes = shapes_by_input([value for _, value in given], "--shape")
    named: dict[str | int, ShapeLike] = {name: shape for name, shape in shapes.items() if name is not None}
    if None in shapes:
        editor.reshape(shapes[None])
    if named:
        editor.reshape(named)


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
    for _, (mode, options) in given:
        unknown = next((name for name in options if name != "group"), None)
        if unknown is not None or not isinstance(options.get("group", 1), int):
            raise InputError(f"--compress {mode}: {unknown or 'group'} is not an option with a whole number; group is")
        editor.compress(mode, **options)


def _step(
    heading: str, flag: str, make: Callable[..., None], help: str, *, group: str = "", **settings: Any
) -> StepOption:
    if not settings.get("is_flag"):
        settings["multiple"] = True
    return StepOption(heading, option(flag, help=help, **settings), make, group)


_PREPROCESSING = "preprocessing"
STEPS: Mapping[str, StepOption] = {
    "cut_from": _step(
        "Cut",
        "--cut-from",
        lambda g, given: g.cut_from(*(value for _, value in given)),
        "Make this tensor an input, and leave out what only it depended on. All tensors given are one step.",
        group="cut_from",
        metavar="TENSOR",
    ),
    "cut_to": _step(
        "Cut",
        "--cut-to",
        lambda g, given: g.cut_to(*(value for _, value in given)),
        "Make this tensor an output, and leave out what no such tensor depends on. All tensors given are one step.",
        group="cut_to",
        metavar="TENSOR",
    ),
    "add_output": _step(
        "Cut", "--add-output", _each(Editor.add_output), "Make this tensor a further output.", metavar="TENSOR"
    ),
    "rename": _step(
        "Names",
        "--rename",
        _each(Editor.rename),
        "Rename layers and tensors. OLD may have asterisks, whose texts "
        r"those of NEW stand for, or be re: and a regular expression: 're:^model/(.*)=\1'.",
        type=Pair("OLD=NEW"),
        metavar="OLD=NEW",
    ),
    "shapes": _step(
        "Inputs",
        "--shape",
        _reshape,
        "Set the shape of an input; all shapes given are one step.",
        group="shapes",
        type=ShapeType(),
        metavar=METAVAR,
    ),
    "batch": _step(
        "Inputs", "--batch", _each(Editor.set_batch), "Set the batch size of all inputs; ? is any size.", metavar="8|?"
    ),
    "set": _step(
        "Layers",
        "--set",
        _each(Editor.set_attribute),
        "Set an attribute of a layer.",
        type=AttributeValue("LAYER.ATTRIBUTE=VALUE"),
        metavar="LAYER.ATTRIBUTE=VALUE",
    ),
    "const": _step(
        "Layers",
        "--const",
        _each(_constant),
        "Replace the values of a Constant by those of a file.",
        type=Pair("LAYER=FILE.npy"),
        metavar="LAYER=FILE.npy",
    ),
    "remove": _step(
        "Layers",
        "--remove",
        _each(Editor.remove),
        "Take a layer out: its readers read the input that has the type and shape of its output.",
        metavar="LAYER",
    ),
    "replace": _step(
        "Layers",
        "--replace",
        _each(_replace),
        "Put the layers of a model in the place of a layer.",
        type=Pair("LAYER=MODEL.xml"),
        metavar="LAYER=MODEL.xml",
    ),
    "element": _step(
        "Preprocessing",
        "--element",
        _preprocess,
        "Take an input, or give an output, in another element type.",
        group=_PREPROCESSING,
        type=NamedValue("NAME=TYPE", str),
        metavar="NAME=u8",
    ),
    "layout": _step(
        "Preprocessing",
        "--layout",
        _preprocess,
        "Take an input in another layout, by a Transpose.",
        group=_PREPROCESSING,
        type=NamedValue("[NAME=]LAYOUT", str),
        metavar="[NAME=]NHWC",
    ),
    "model_layout": _step(
        "Preprocessing",
        "--model-layout",
        _preprocess,
        "The layout that the model has; default: what the model declares, or else by the axis of 1, 3 or 4 channels.",
        group=_PREPROCESSING,
        type=NamedValue("[NAME=]LAYOUT", str),
        metavar="[NAME=]NCHW",
    ),
    "resize": _step(
        "Preprocessing",
        "--resize",
        _preprocess,
        "Take images of any size, or of this size, and resize them: linear, cubic or nearest.",
        group=_PREPROCESSING,
        type=NamedValue("[NAME=]MODE[:HxW]", resizing),
        metavar="[NAME=]linear[:HxW]",
    ),
    "reverse_channels": _step(
        "Preprocessing",
        "--reverse-channels",
        _preprocess,
        "Reverse the order of the channels, such as BGR to RGB.",
        group=_PREPROCESSING,
        is_flag=True,
    ),
    "mean": _step(
        "Preprocessing",
        "--mean",
        _preprocess,
        "Subtract a number, or one for each channel in the order of the model.",
        group=_PREPROCESSING,
        type=NamedValue("[NAME=]1,2,3", numbers),
        metavar="[NAME=]1,2,3",
    ),
    "scale": _step(
        "Preprocessing",
        "--scale",
        _preprocess,
        "Divide by a number, or by one for each channel, after the mean.",
        group=_PREPROCESSING,
        type=NamedValue("[NAME=]1,2,3", numbers),
        metavar="[NAME=]1,2,3",
    ),
    "append": _step(
        "Postprocessing",
        "--append",
        _each(_append),
        "Append softmax, sigmoid, argmax, topk or nms to an output, with options such as topk:k=5 or softmax:axis=1.",
        type=KindWithOptions(),
        metavar="[OUTPUT=]softmax|...",
    ),
    "compress": _step(
        "Weights in fewer bits",
        "--compress",
        _compress,
        "Store weights as f16, as integers of 8 bits, or of 4 bits in groups, as OpenVINO and NNCF do.",
        type=Compression(),
        metavar="f16|int8|int4[:group=128]",
    ),
    "decompress": _step(
        "Weights in fewer bits",
        "--decompress",
        _flag(Editor.decompress),
        "Store compressed weights in the element type in which they are used.",
        is_flag=True,
    ),
    "fold": _step(
        "Rewriting",
        "--fold",
        _flag(Editor.fold),
        "Replace what depends on constants alone, or on known shapes, by constants.",
        is_flag=True,
    ),
    "optimize": _step(
        "Rewriting",
        "--optimize",
        _flag(Editor.optimize),
        "Leave out and merge layers where the results stay the same bit by bit.",
        is_flag=True,
    ),
    "unfreeze": _step(
        "Rewriting",
        "--unfreeze",
        _each(Editor.unfreeze),
        "Let the batch of an input have any size: patterns of Reshape that keep it get 0 or -1.",
        metavar="INPUT",
    ),
    "rt_info": _step(
        "Metadata",
        "--rt-info",
        _each(Editor.set_rt_info),
        "Set an entry of the model's rt_info; KEY may be a path such as model_info/model_type.",
        type=Pair("KEY=VALUE"),
        metavar="KEY=VALUE",
    ),
}
"""The steps by the names of their parameters, in the order of --help."""


class EditCommand(GroupedCommand):
    """A command that knows the order in which its options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep the name of the parameter of each."""
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [parameter.name for parameter in order]
        return super().parse_args(ctx, args)


def step_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: add the options of all steps to a command; its parameter ``steps`` receives the given steps."""
    headings = dict.fromkeys(step.heading for step in STEPS.values())

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        groups = [values.pop(heading) for heading in headings]
        return command(**values, steps=list(given_steps({name: group[name] for group in groups for name in group})))

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
        yield functools.partial(_make, step, together)


def _make(step: StepOption, given: Given, editor: Editor) -> None:
    step.make(editor, given)
