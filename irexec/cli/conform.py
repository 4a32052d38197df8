"""irexec conform"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag, json_option, option, refuse_without
from irexec.cli.render import progress_bar
from irexec.cli.runtime_options import ARITHMETIC_NAMES, ENVIRONMENTS, PROPERTIES, RUNTIME, RUNTIME_NAMES
from irexec.cli.values import FilePath
from irexec.io.files import new_file
from irexec.io.writer import check_file


@command()
@option("--runtime", f"{RUNTIME_NAMES}; onnxruntime runs what the exporter writes.", type=RUNTIME)
@option("--ops", "Operations: patterns separated by commas, such as Softmax-8,Conv*; default: all.", metavar="PATTERNS")
@option("--cases", "Number of cases of each operation; default: 10.", type=click.IntRange(1))
@flag("--quick", "Two cases of each operation, in place of --cases.")
@option("--seed", "Of the first case of each operation; the others follow.", type=click.IntRange(0), default=0)
@PROPERTIES
@ENVIRONMENTS
@option(
    "--arithmetic", "Arithmetic that it is held to; default: what the runtime says, or f32.", choices=ARITHMETIC_NAMES
)
@option("--timeout", "Seconds that one case may take.", type=click.FloatRange(0, min_open=True), default=60.0)
@option("--junit", "Write a JUnit XML file.", type=FilePath())
@option("--html", "Write a page by operation, with the reasons.", type=FilePath())
@option("--badge", "Write a badge, an .svg.", type=FilePath())
@option(
    "--build",
    "Write the cases as files into a new folder, for an engine that is not Python; runs nothing.",
    type=FilePath(),
    metavar="DIR",
)
@json_option
def conform(
    runtime: str | None,
    ops: str | None,
    cases: int | None,
    quick: bool,
    seed: int,
    property: Mapping[str, str] | None,
    environments: str | None,
    arithmetic: str | None,
    timeout: float,
    junit: str | None,
    html: str | None,
    badge: str | None,
    build: str | None,
    as_json: bool,
) -> int:
    """Hold a runtime to a corpus of random cases of every version of every operation.

    \b
    irexec conform --runtime openvino --quick
    irexec conform --runtime onnxruntime --ops Softmax,Conv* --junit onnx.xml
    irexec conform --runtime command:./runner --ops Relu --html relu.html
    irexec conform --build corpus --ops Softmax

    An output of a case is inside of its bound, or outside: then no correct implementation of the arithmetic gives it.
    Without a bound it is close to the reference kernels or differs, by a tolerance. Exit code 1 if an output
    is outside, the runtime crashes, or it runs no case at all.
    """
    from irexec.conformance import ConformOptions, build_corpus
    from irexec.conformance import conform as held

    if quick and cases is not None:
        raise click.UsageError("--quick and --cases cannot be used together")
    if (runtime is None) == (build is None):
        raise click.UsageError("one of --runtime and --build is needed")
    if runtime is None:
        refuse_without("runtime", "junit", "html", "badge")
    _check_outputs({"--junit": junit, "--html": html, "--badge": badge})
    options = ConformOptions(
        ops=_patterns(ops),
        cases=2 if quick else cases or 10,
        seed=seed,
        properties=property,
        arithmetic=arithmetic,
        timeout=timeout,
        environments=environments,
    )
    if runtime is None:
        assert build is not None
        folder = Path(build)
        with progress_bar(f"build {folder}", 1) as advance:
            built = build_corpus(folder, options, advance)
        render.result(as_json, built.as_dict, built.sections())
        return 0
    with progress_bar(f"conform {runtime}", 1) as advance:
        found = held(runtime, options, advance)
    for path, write in ((junit, found.junit), (html, found.html), (badge, found.badge)):
        if path is not None:
            with new_file(Path(path)) as file:
                file.write(write().encode())
    render.result(as_json, found.as_dict, found.sections())
    return int(found.has_failed)


def _patterns(ops: str | None) -> tuple[str, ...]:
    """The patterns of --ops; none if it is not given."""
    patterns = tuple(part.strip() for part in (ops or "").split(",") if part.strip())
    if ops is not None and not patterns:
        raise click.BadParameter(f"{ops!r} names no operation", param_hint="'--ops'")
    return patterns


def _check_outputs(given: Mapping[str, str | None]) -> None:
    """Raise InputError unless the files of these options, by option, can be written: each is a file of its own."""
    written: dict[str, str] = {}
    for shown, path in given.items():
        if path is not None:
            check_file(shown, Path(path), written)
            written[path] = f"the file of {shown}"
