"""irexec conform"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag, json_option, option
from irexec.cli.progress import progress_bar
from irexec.cli.runtime_options import PROPERTIES, RUNTIME, RUNTIME_NAMES
from irexec.cli.values import FilePath
from irexec.io.files import new_file


@command()
@option("--runtime", f"{RUNTIME_NAMES}; onnxruntime runs what the exporter writes.", type=RUNTIME, required=True)
@option("--ops", "Operations: patterns separated by commas, such as Softmax-8,Conv*; default: all.", metavar="PATTERNS")
@option("--cases", "Number of cases of each operation; default: 10.", type=click.IntRange(1))
@flag("--quick", "Two cases of each operation, in place of --cases.")
@option("--seed", "Of the first case of each operation; the others follow.", type=click.IntRange(0), default=0)
@PROPERTIES
@option("--timeout", "Seconds that one case may take.", type=click.FloatRange(0, min_open=True), default=60.0)
@option("--junit", "Write a JUnit XML file.", type=FilePath())
@json_option
def conform(
    runtime: str,
    ops: str | None,
    cases: int | None,
    quick: bool,
    seed: int,
    property: Mapping[str, str] | None,
    timeout: float,
    junit: str | None,
    as_json: bool,
) -> int:
    """Hold a runtime to a corpus of random cases of every version of every operation.

    \b
    irexec conform --runtime openvino --quick
    irexec conform --runtime onnxruntime --ops Softmax,Conv* --junit onnx.xml
    irexec conform --runtime command:./runner --ops Relu --cases 50

    A case is close to the reference kernels or differs from them, by a tolerance; or the runtime refuses it or
    crashes. Exit code 1 if it crashes, or runs no case at all: a difference is not a fault by itself.
    """
    from irexec.conformance import ConformOptions
    from irexec.conformance import conform as held

    if quick and cases is not None:
        raise click.UsageError("--quick and --cases cannot be used together")
    count = 2 if quick else cases or 10
    patterns = tuple(part.strip() for part in ops.split(",") if part.strip()) if ops else ()
    options = ConformOptions(ops=patterns, cases=count, seed=seed, properties=property, timeout=timeout)
    with progress_bar(f"conform {runtime}", 1) as advance:
        found = held(runtime, options, advance)
    if junit is not None:
        with new_file(Path(junit)) as file:
            file.write(found.junit().encode())
    render.result(as_json, found.as_dict, found.sections())
    return 1 if found.counts["crashed"] or not found.has_run else 0
