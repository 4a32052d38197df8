"""irexec validate"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

import irexec
from irexec.analysis.codes import CODES
from irexec.analysis.portability.findings import parse_target
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, option
from irexec.cli.options import SHAPES, WEIGHTS, InputOptions, Verify, WeightsOptions
from irexec.cli.render import progress_bar
from irexec.cli.values import FilePath
from irexec.ir.codes import by_number
from irexec.tools.sections import code_sections
from irexec.tools.validation import (
    FileReport,
    find_files,
    gone_text,
    parse_codes,
    read_baseline,
    report,
    report_always,
    reports_sections,
)

_FILES_A_JOB = 8
"""Files whose validation takes as long as the start of a process."""
FORMATS = ("table", "json", "sarif", "github", "junit", "model-explorer")
_CLEAN, _FINDINGS, _UNREADABLE = 0, 1, 3


def _checks(reads_weights: bool, release: str | None, ignore: tuple[str, ...], **others: bool) -> dict[str, Any]:
    """The arguments of ``report`` about checks and the codes that are left out."""
    if release is not None:
        parse_target(release)
    return {"weights": reads_weights, "release": release, "ignore": frozenset(parse_codes(ignore)), **others}


_CHECKS = OptionGroup(
    "Checks",
    _checks,
    {
        "reads_weights": flag("--weights", "Also read every constant and report NaN and infinities."),
        "portability": flag(
            "Also report, as info, layers on which OpenVINO's own implementations differ from each other."
        ),
        "release": option(
            "--for",
            "Also report what this release of OpenVINO does not read, such as 2023.3, or what this device refuses: "
            "CPU, GPU or NPU.",
            metavar="TARGET",
        ),
        "ignore": option(
            "Leave out findings of this code, such as IR302; may be repeated.", multiple=True, metavar="CODE"
        ),
    },
)


def _form(form: str, as_json: bool, explains: bool) -> str:
    """The format of the output, from the two options that set it."""
    if as_json and form != "json" and is_given("form"):
        raise click.UsageError(f"--format {form} and --json both say what is printed")
    form = "json" if as_json else form
    if explains and form != "table":
        raise click.UsageError(f"--explain is for the table, not for --format {form}")
    return form


@command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FilePath(allow_dash=True))
@_CHECKS("checks")
@SHAPES("inputs", shapes="Also report what is wrong if an input has this shape; may be repeated.")
@WEIGHTS("files")
@option(
    "--baseline",
    "Leave out the findings of this document of validate --json: only new ones count.",
    type=FilePath(),
    metavar="FINDINGS.json",
)
@option(
    "--jobs", "Number of processes for several files; default: one for each eight files.", type=click.IntRange(1, 256)
)
@flag("--quiet", "Print nothing about files without findings.")
@option(
    "--format",
    "form",
    "A table; or for programs: versioned JSON, SARIF 2.1.0, workflow commands of GitHub, JUnit XML, node data of "
    "Google's Model Explorer.",
    choices=FORMATS,
    default="table",
)
@flag("--json", "as_json", "Same as --format json.")
@option(
    "--fix",
    "Write MODEL in operations that the release or device of --for has, and run both on the same random inputs.",
    type=FilePath(),
    metavar="FIXED.xml",
)
@flag("--explain", "explains", "Below the table, explain each code that was found.")
def validate(
    models: tuple[str, ...],
    checks: dict[str, Any],
    inputs: InputOptions,
    files: WeightsOptions,
    baseline: str | None,
    jobs: int | None,
    quiet: bool,
    form: str,
    as_json: bool,
    fix: str | None,
    explains: bool,
) -> int:
    """Check each MODEL: every port, attribute, edge and weight range.

    A MODEL is an .xml or .onnx, a folder (every .xml and .onnx in it and in its folders), or - for one on stdin.
    All findings are listed at once, each with a stable code (see irexec explain), the layer and the XML line.

    \b
    irexec validate model.xml --weights --explain
    irexec validate model.xml --portability --for 2023.3
    irexec validate model.xml --for NPU --fix npu.xml
    irexec validate models/ --ignore IR302 --format sarif > irexec.sarif
    irexec validate models/ --jobs 4 --baseline findings.json

    Exit code 1 if any error or warning is found that is not ignored, 3 if a file cannot be read at all, else 0. With
    --fix 0 if the IR is written and equal, 1 if it is not equal, 4 if some layer cannot be rewritten.
    """
    form = _form(form, as_json, explains)
    paths = find_files(models)
    options = {"mmap": files.mmap, "shapes": inputs.shapes, **checks}
    if fix is not None:
        return _fixed(paths, fix, files, form, options)
    known = None if baseline is None else read_baseline(baseline)
    found = _one(paths[0], files, form, options) if len(paths) == 1 else _many(paths, files, jobs, options)
    if known is not None:
        # The reports without known findings; a note says how many known findings no longer occur.
        new, gone = known.apply(found, checks["ignore"])
        if gone:
            render.note_line(gone_text(known, gone))
        found = new
    shown = [one for one in found if one.findings or one.error is not None or not quiet]
    for one in shown:
        # The table of several files has these as rows.
        if one.error is not None and (form != "table" or len(shown) == 1):
            render.error_line(one.error)
    if not shown and form == "table":
        return _CLEAN
    _write(shown, form)
    if explains:
        for code in sorted({finding.code for one in found for finding in one.findings}, key=by_number):
            render.show(["", code_sections(CODES[code])])
    return _UNREADABLE if any(r.error for r in found) else _CLEAN if all(r.is_clean for r in found) else _FINDINGS


def _fixed(paths: Sequence[str], fix: str, files: WeightsOptions, form: str, options: dict[str, Any]) -> int:
    """Show the findings, write the model for the target, and show what was changed; the exit code."""
    # These modules load the compiler, which validation does not need.
    from irexec.cli.convert import is_ir, read_ir, rewritten

    if options["release"] is None or form not in ("table", "json"):
        raise click.UsageError("--fix needs --for, and a table or JSON")
    if len(paths) != 1 or not is_ir(paths[0]):
        raise click.UsageError("--fix takes a single .xml; irexec convert --for writes an .onnx")
    found = _one(paths[0], files, form, options)
    model, target = read_ir(paths[0], fix, options["shapes"], "--fix")
    verification = Verify(wanted=True, shapes={}, seed=0, rtol=1e-3, atol=1e-4)
    code, document, contents = rewritten(model, target, options["release"], verification)
    render.result(
        form == "json", lambda: {**_document(found), "fix": document}, [reports_sections(found), "", *contents]
    )
    return code


def _one(path: str, files: WeightsOptions, form: str, options: dict[str, Any]) -> list[FileReport]:
    # The readers of the other formats expect a document even if the file cannot be read.
    check = report if form in ("table", "json") else report_always
    with progress_bar(f"validating {path}", 2) as advance:
        return [check(path, bin_path=files.weights, progress=advance, **options)]


def _many(paths: Sequence[str], files: WeightsOptions, jobs: int | None, options: dict[str, Any]) -> list[FileReport]:
    if files.weights is not None or options["shapes"]:
        name = "shape" if files.weights is None else "bin"
        raise click.UsageError(f"--{name} is for a single model, here are {len(paths)}")
    # A single file needs no processes, whose modules take as long to import as validation itself.
    from irexec.tools.validation import reports

    found = []
    with progress_bar("validating", len(paths), "files") as advance:
        for one in reports(paths, jobs or max(1, min(len(paths) // _FILES_A_JOB, os.cpu_count() or 1)), **options):
            found.append(one)
            advance(1)
    return found


def _document(found: Sequence[FileReport]) -> dict[str, Any]:
    findings = [{"model": one.path, **finding.as_dict()} for one in found for finding in one.findings]
    return {"models": [one.as_dict() for one in found], "findings": findings}


def _write(found: Sequence[FileReport], form: str) -> None:
    if form == "table":
        render.show(reports_sections(found))
    elif form == "json":
        render.as_json(_document(found))
    elif form == "model-explorer":
        from irexec.tools.node_data import of_findings

        if len(found) != 1:
            raise click.UsageError(f"--format model-explorer is for a single model, here are {len(found)}")
        render.json_document(of_findings(found[0].findings))
    else:
        from irexec.tools.finding_formats import github_lines, junit_xml, sarif_log

        if form == "sarif":
            render.json_document(sarif_log(found, irexec.__version__))
        elif form == "github":
            render.lines(github_lines(found))
        else:
            render.verbatim(junit_xml(found))
