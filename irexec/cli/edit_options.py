"""The options of irexec edit, each of which is one method of an Editor; they are made in the order given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from irexec.authoring.editor import Editor
from irexec.cli.option_groups import GroupedCommand, Option, OptionGroup, option
from irexec.cli.shape_option import METAVAR, ShapeType, shapes_by_input
from irexec.errors import ModelError
from irexec.ir.shape_text import ShapeLike

_ORDER = "irexec.order"


@dataclass(frozen=True)
class Step:
    """An option of the command line that is a step.

    Attributes:
        heading: its group in --help.
        option: its flags and settings.
        make: makes the step, or the steps, of the values given.
        joined: whether all values of the command line are one step, at the place of the first.
    """

    heading: str
    option: Option
    make: Callable[[Editor, list[Any]], None]
    joined: bool = False


class Pair(click.ParamType):
    """A text of the form LEFT=RIGHT: the last equals sign separates the two."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Returns the two parts, neither of which is empty."""
        if isinstance(value, tuple):
            return value
        left, _, right = str(value).rpartition("=")
        if not left or not right:
            self.fail(f"{str(value)!r} is not of the form {self.name}", param, ctx)
        return left, right


class AttributeValue(Pair):
    """LAYER.ATTRIBUTE=VALUE, where the layer's name may have dots, and the value may be empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the layer, the attribute and the text of the value."""
        if isinstance(value, tuple):
            return value
        left, equals, text = str(value).rpartition("=")
        layer, _, name = left.rpartition(".")
        if not (equals and layer and name):
            self.fail(f"{str(value)!r} is not of the form {self.name}", param, ctx)
        return layer, name, text


def _each(make: Callable[..., None]) -> Callable[[Editor, list[Any]], None]:
    """Make a step of each value, of which a tuple is several arguments."""

    def steps(editor: Editor, values: list[Any]) -> None:
        for value in values:
            make(editor, *(value if isinstance(value, tuple) else (value,)))

    return steps


def _reshape(editor: Editor, values: list[Any]) -> None:
    shapes = shapes_by_input(values, "--shape")
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


def _step(
    heading: str, flag: str, make: Callable[..., None], help: str, *, joined: bool = False, **settings: Any
) -> Step:
    return Step(heading, option(flag, multiple=True, help=help, **settings), make, joined)


STEPS: Mapping[str, Step] = {
    "cut_from": _step(
        "Cut",
        "--cut-from",
        lambda g, v: g.cut_from(*v),
        "Make this tensor an input, and leave out what only it depended on. All tensors given are one step.",
        joined=True,
        metavar="TENSOR",
    ),
    "cut_to": _step(
        "Cut",
        "--cut-to",
        lambda g, v: g.cut_to(*v),
        "Make this tensor an output, and leave out what no such tensor depends on. All tensors given are one step.",
        joined=True,
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
        joined=True,
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
    """Decorator that adds the options of all steps to a command."""
    headings = dict.fromkeys(step.heading for step in STEPS.values())
    for heading in reversed(headings):
        options = {name: step.option for name, step in STEPS.items() if step.heading == heading}
        command = OptionGroup(heading, dict, options)(heading.lower())(command)
    return command


def given_steps(groups: Mapping[str, tuple[Any, ...]]) -> Iterator[Callable[[Editor], None]]:
    """The steps of the running command line, in the order given.

    Args:
        groups: the values of each option, in the order given.
    """
    waiting = {name: list(values) for name, values in groups.items()}
    for name in click.get_current_context().meta[_ORDER]:
        if name in STEPS and waiting[name]:
            step = STEPS[name]
            values = [waiting[name].pop(0) for _ in range(len(waiting[name]) if step.joined else 1)]
            yield lambda editor, step=step, values=values: step.make(editor, values)  # type: ignore[misc]
