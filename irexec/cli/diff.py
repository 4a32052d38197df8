"""irexec diff"""

from __future__ import annotations

from collections.abc import Sequence

import click

from irexec.cli import render
from irexec.cli.diff_text import diff_lines
from irexec.cli.next_steps import as_given, go_on
from irexec.cli.option_groups import command
from irexec.cli.options import SHAPES, WEIGHTS, InputOptions, WeightsOptions
from irexec.cli.paths import FilePath
from irexec.cli.progress import progress_bar
from irexec.messages import counted
from irexec.tools.diff import KINDS, Diff
from irexec.tools.diff import diff as find_differences
from irexec.tools.run.shapes import read_with_shapes, reshape_both

_EQUAL, _DIFFERENT = 0, 1


class Kinds(click.ParamType):
    """Kinds of changes, separated by commas."""

    name = "kinds"

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The kinds."""
        if isinstance(value, list):
            return value
        kinds = [kind.strip() for kind in value.split(",")]
        for kind in kinds:
            if kind not in KINDS:
                self.fail(f"{kind!r} is not a kind of change; there are {', '.join(KINDS)}", param, ctx)
        return kinds


@command()
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath())
@click.option("--a-bin", type=FilePath(), help="The weights of A; default: the .bin beside it.")
@click.option("--b-bin", type=FilePath(), help="The weights of B; default: the .bin beside it.")
@WEIGHTS("files", only=("mmap",))
@SHAPES("inputs", shapes={"help": "Set the shape of an input of both; may be repeated."})
@click.option("--weights", is_flag=True, help="Also a table of the constants whose values changed, with statistics.")
@click.option(
    "--ignore",
    multiple=True,
    type=Kinds(),
    metavar="KINDS",
    help=f"Leave out changes of these kinds, separated by commas: {', '.join(KINDS)}.",
)
@click.option("-v", "--verbose", is_flag=True, help="Every layer, also where the same happened to many.")
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON instead of text.")
def diff(
    a: str,
    b: str,
    a_bin: str | None,
    b_bin: str | None,
    files: WeightsOptions,
    inputs: InputOptions,
    weights: bool,
    ignore: tuple[list[str], ...],
    verbose: bool,
    as_json: bool,
) -> int:
    """Show what changed from model A to model B, each an .xml or .onnx.

    Layers are matched by name and by structure: other ids, another order of layers and edges, and new names of layers hide nothing.

    Exit code 1 if anything differs that is not ignored, else 0.

    \b
    Examples:
      irexec diff model.xml compressed.xml
      irexec diff model.onnx model.xml --ignore names,tensor-names,metadata
      irexec diff before.xml after.xml --weights
    """
    given, mmap = inputs.shapes, files.mmap
    with progress_bar(f"reading {a}", 1) as advance:
        one = read_with_shapes(a, a_bin, given, mmap=mmap, progress=advance)
    with progress_bar(f"reading {b}", 1) as advance:
        other = read_with_shapes(b, b_bin, given, of=one.inputs, mmap=mmap, progress=advance)
    reshape_both(one, other, given)
    with progress_bar("comparing", 1) as advance:
        found = find_differences(one, other, ignore=[kind for kinds in ignore for kind in kinds], progress=advance)
    if found.unread:
        render.warning_line(
            f"the values of {counted(found.unread, 'constant')} cannot be read: only their types and shapes are compared"
        )
    if as_json:
        render.as_json(found.as_dict())
    else:
        _show(found, weights, verbose)
        if not (found.is_empty or a_bin or b_bin):
            go_on("compare", a, b, *as_given((), given))
    return _EQUAL if found.is_empty else _DIFFERENT


def _show(found: Diff, weights: bool, verbose: bool) -> None:
    render.styled_lines(diff_lines(found, verbose))
    if weights:
        _table(found)
    render.line(found.summary())


def _table(found: Diff) -> None:
    rows: list[Sequence[object]] = [
        (
            str(layer.layer),
            v.elements,
            v.changed,
            f"{v.changed / max(1, v.elements):.1%}",
            v.largest,
            v.relative,
            v.not_finite or None,
        )
        for layer in found.layers
        for change in layer.changes
        if (v := change.values) is not None
    ]
    if rows:
        headers = ("constant", "elements", "changed", "part", "largest", "relative norm", "NaN/Inf")
        render.table(headers, rows, right=(1, 2, 3, 4, 5, 6), hide_empty=True, what="constants")
