"""irexec diff"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, option
from irexec.cli.options import SHAPES, WEIGHTS, InputOptions, WeightsOptions
from irexec.cli.render import as_given, progress_bar, show_next_command
from irexec.cli.values import FilePath, Parsed
from irexec.ir.writable import damage
from irexec.messages import counted
from irexec.tools.diff import KINDS, Diff
from irexec.tools.diff import diff as find_differences
from irexec.tools.diff.models import Ignored
from irexec.tools.diff.patch import diff_sections
from irexec.tools.run.shapes import read_with_shapes, reshape_both

FORMATS = ("text", "json", "markdown", "github")
_EQUAL, _DIFFERENT = 0, 1


def _entries(text: str) -> tuple[str, ...]:
    """Entries of --ignore, separated by commas; a name of a layer, which may have commas, is an option of its own."""
    text = text.strip()
    entries = (text,) if text.startswith("layer=") else tuple(part.strip() for part in text.split(","))
    Ignored.parsed(entries)
    return entries


def _shown(form: str, as_json: bool, weights: bool, verbose: bool) -> tuple[str, bool, bool]:
    """How a diff is shown: the format, whether with a table of values, whether with every layer of a group."""
    if as_json and form != "json" and is_given("form"):
        raise click.UsageError(f"--format {form} and --json both say what is printed")
    form = "json" if as_json else form
    for name, value in (("weights", weights), ("verbose", verbose)):
        if value and form not in ("text", "json"):
            raise click.UsageError(f"--{name} is for the text, not for --format {form}")
    return form, weights, verbose


_OUTPUT = OptionGroup(
    "Output",
    _shown,
    {
        "form": option(
            "--format",
            "Text like a patch; or versioned JSON, a table for a pull request, annotations of GitHub Actions.",
            choices=FORMATS,
            default="text",
        ),
        "as_json": flag("--json", "Same as --format json."),
        "weights": flag("Also a table of the constants whose values changed, with statistics."),
        "verbose": flag("-v", "--verbose", "Every layer, also where the same happened to many."),
    },
)


@command()
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath())
@option("--a-bin", "The weights of A; default: the .bin beside it.", type=FilePath())
@option("--b-bin", "The weights of B; default: the .bin beside it.", type=FilePath())
@WEIGHTS("files", only=("mmap",))
@SHAPES("inputs", shapes="Set the shape of an input of both; may be repeated.")
@option(
    "--ignore",
    f"Leave out changes of these kinds, separated by commas ({', '.join(KINDS)}), values with at most this "
    "relative norm of their differences, or a layer by name or id (an asterisk matches any text); may be repeated.",
    multiple=True,
    type=Parsed("kinds", _entries),
    metavar="KINDS|values=1e-6|layer=NAME",
)
@option("-o", "--output", "Draw the changes too: .html, a page with both graphs, or .svg.", type=FilePath())
@_OUTPUT("shown")
def diff(
    a: str,
    b: str,
    a_bin: str | None,
    b_bin: str | None,
    files: WeightsOptions,
    inputs: InputOptions,
    ignore: tuple[tuple[str, ...], ...],
    output: str | None,
    shown: tuple[str, bool, bool],
) -> int:
    """Show what changed from model A to model B, each an .xml or .onnx.

    Layers are matched by name and by structure: other ids, another order of layers and edges, and new names hide
    nothing.

    Exit code 1 if anything differs that is not ignored, else 0.

    \b
    Examples:
      irexec diff model.xml compressed.xml
      irexec diff a.onnx a.xml --ignore names,tensor-names,metadata,values=1e-6
      irexec diff before.xml after.xml --format markdown >> $GITHUB_STEP_SUMMARY
      irexec diff before.xml after.xml --weights
      irexec diff before.xml after.xml -o page.html
    """
    given, mmap = inputs.shapes, files.mmap
    form, has_weights, is_verbose = shown
    if output is not None:
        from irexec.tools.graph.beside import check_picture
        from irexec.tools.run.input_sources import files_read

        check_picture(output, files_read(a, a_bin) | files_read(b, b_bin))
    with progress_bar(f"reading {a}", 1) as advance:
        one = read_with_shapes(a, a_bin, given, mmap=mmap, progress=advance)
    with progress_bar(f"reading {b}", 1) as advance:
        other = read_with_shapes(b, b_bin, given, of=one.inputs, mmap=mmap, progress=advance)
    reshape_both(one, other, given)
    with progress_bar("comparing", 1) as advance:
        found = find_differences(
            one, other, ignore=[entry for entries in ignore for entry in entries], progress=advance, output=output
        )
    if found.unread:
        render.warning_line(
            f"the values of {counted(found.unread, 'constant')} cannot be read: "
            "only their types and shapes are compared"
        )
    if form == "text":
        render.show(diff_sections(found, is_verbose, has_weights))
        if not (found.is_empty or a_bin or b_bin or any(damage(one)) or any(damage(other))):
            show_next_command("compare", a, b, *as_given((), given))
    else:
        _write(found, form)
    return _EQUAL if found.is_empty else _DIFFERENT


def _write(found: Diff, form: str) -> None:
    """Print a diff for programs."""
    if form == "json":
        render.as_json(found.as_dict())
        return
    from irexec.tools.diff.patch import github_notices, markdown

    if form == "markdown":
        render.verbatim(markdown(found))
    else:
        render.lines(github_notices(found))
