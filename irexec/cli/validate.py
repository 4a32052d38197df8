"""irexec validate"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import click

import irexec
from irexec.cli import render
from irexec.cli.explain import explanation
from irexec.cli.paths import FilePath
from irexec.cli.progress import progress_bar
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.usage import is_given
from irexec.cli.weights_option import no_mmap
from irexec.ir.codes import CODES
from irexec.ir.findings import Finding
from irexec.ir.portability.releases import parse_release
from irexec.messages import counted
from irexec.tools.finding_formats import github_lines, junit_xml, sarif_log
from irexec.tools.validate import STDIN, Report, find_files, parse_codes, report, report_always, reports

FORMATS = ("table", "json", "sarif", "github", "junit")
_CLEAN, _FINDINGS, _UNREADABLE = 0, 1, 3


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FilePath(allow_dash=True))
@click.option(
    "--bin", "bin_path", type=FilePath(), help="The weights; default: the .bin of the same name beside the model."
)
@no_mmap
@click.option("--weights", is_flag=True, help="Also read every constant and report NaN and infinities.")
@click.option(
    "--portability",
    is_flag=True,
    help="Also report, as info, layers on which OpenVINO's own implementations differ from each other.",
)
@click.option(
    "--for",
    "release",
    metavar="RELEASE",
    help="Also report what this release of OpenVINO does not read, such as 2023.3.",
)
@click.option(
    "--shape", "shapes", multiple=True, type=ShapeType(), metavar=METAVAR,
    help="Also report what is wrong if an input has this shape; may be repeated.",
)  # fmt: skip
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="CODE",
    help="Leave out findings of this code, such as IR302; may be repeated.",
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
    help="A table; or what programs read: versioned JSON, SARIF 2.1.0, workflow commands of GitHub, JUnit XML.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option("--explain", "explains", is_flag=True, help="Below the table, explain each code that was found.")
def validate(
    models: tuple[str, ...], bin_path: str | None, mmap: bool, weights: bool, portability: bool, release: str | None,
    shapes: tuple[ShapeOptions, ...], ignored: tuple[str, ...], form: str, as_json: bool, explains: bool,
) -> int:  # fmt: skip
    """Check each MODEL: every port, attribute, edge and weight range.

    A MODEL is an .xml or .onnx, a folder (every .xml and .onnx in it and in its folders), or - for one on stdin.
    All findings are listed at once, each with a stable code (see irexec explain), the layer and the XML line.

    \b
    irexec validate model.xml --weights --explain
    irexec validate model.xml --portability --for 2023.3
    irexec validate models/ --ignore IR302 --format sarif > irexec.sarif

    Exit code 1 if any error or warning is found that is not ignored, 3 if a file cannot be read at all, else 0.
    """
    form = _form(form, as_json, explains)
    files = find_files(models)
    options: dict[str, Any] = {
        "mmap": mmap,
        "weights": weights,
        "portability": portability,
        "release": release,
        "shapes": shapes_by_input(shapes, "--shape"),
        "ignore": parse_codes(ignored),
    }
    if release is not None:
        parse_release(release)
    if len(files) == 1:
        with progress_bar(f"validating {files[0]}", 2) as advance:
            # What reads the other formats expects a document whatever becomes of the file.
            check = report if form in ("table", "json") else report_always
            found = [check(files[0], bin_path=bin_path, progress=advance, **options)]
    elif bin_path is not None or shapes:
        raise click.UsageError(
            f"--{'shape' if bin_path is None else 'bin'} is for a single model, here are {len(files)}"
        )
    else:
        found = _many(files, options)
    for one in found:
        if one.error is not None:
            render.error_line(one.error)
    _WRITERS[form](found)
    if explains:
        _explain(found)
    return _UNREADABLE if any(r.error for r in found) else _CLEAN if all(r.is_clean for r in found) else _FINDINGS


def _form(form: str, as_json: bool, explains: bool) -> str:
    """The format that two options say."""
    if as_json and form != "json" and is_given("form"):
        raise click.UsageError(f"--format {form} and --json both say what is printed")
    form = "json" if as_json else form
    if explains and form != "table":
        raise click.UsageError(f"--explain is for the table, not for --format {form}")
    return form


def _many(files: Sequence[str], options: dict[str, Any]) -> list[Report]:
    found = []
    with progress_bar("validating", len(files)) as advance:
        for one in reports(files, **options):
            found.append(one)
            advance(1)
    return found


def _show(found: Sequence[Report]) -> None:
    for one in found:
        if one.findings:
            _table(one.findings)
        if one.error is None:
            render.line(f"{_name(one)}: {_counted(Counter(one.counts), one.ignored) or 'no findings'}")
    if len(found) > 1:
        total: Counter[str] = Counter()
        for one in found:
            total.update(one.counts)
        unreadable = sum(one.error is not None for one in found)
        text = _counted(total, sum(one.ignored for one in found)) or "no findings"
        render.line(f"{counted(len(found), 'file')}: {text}{f', {unreadable} not readable' if unreadable else ''}")


def _explain(found: Sequence[Report]) -> None:
    for code in sorted({finding.code for one in found for finding in one.findings}):
        render.line()
        render.lines(explanation(CODES[code]).split("\n"))


def _name(one: Report) -> str:
    return "stdin" if one.path == STDIN else one.path


def _counted(counts: Counter[str], ignored: int) -> str:
    texts = [f"{count} {name}{'' if count == 1 or name == 'info' else 's'}" for name, count in counts.items() if count]
    return ", ".join(texts + ([f"{ignored} ignored"] if ignored else []))


def _table(findings: Sequence[Finding]) -> None:
    if all(f.line is None and f.port is None for f in findings):
        # Such as those of an ONNX model, which has no lines.
        plain = [(f.severity, f.code, _layer(f), f.message) for f in findings]
        render.table(("severity", "code", "layer", "finding"), plain, sentences=(3,), what="findings")
        return
    rows = [(f.line, f.severity, f.code, _layer(f), f.port, f.message) for f in findings]
    headers = ("line", "severity", "code", "layer", "port", "finding")
    render.table(headers, rows, right=(0, 4), sentences=(5,), what="findings")


def _layer(finding: Finding) -> str:
    if finding.layer_id is None and finding.layer_name is None:
        return ""
    kind = f" ({finding.layer_type})" if finding.layer_type else ""
    number = "" if finding.layer_id is None else f"{finding.layer_id} "
    return f"{number}{finding.layer_name or ''}{kind}"


def _document(found: Sequence[Report]) -> dict[str, Any]:
    models = [{"model": one.path, "counts": one.counts, "ignored": one.ignored, "error": one.error} for one in found]
    return {
        "models": models,
        "findings": [{"model": one.path, **finding.as_dict()} for one in found for finding in one.findings],
    }


_WRITERS: dict[str, Callable[[Sequence[Report]], None]] = {
    "table": _show,
    "json": lambda found: render.as_json(_document(found)),
    "sarif": lambda found: render.json_document(sarif_log(found, irexec.__version__)),
    "github": lambda found: render.lines(github_lines(found)),
    "junit": lambda found: render.verbatim(junit_xml(found)),
}
