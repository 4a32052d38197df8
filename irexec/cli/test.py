"""irexec test"""

from __future__ import annotations

from pathlib import Path

import click

from irexec.cli import render
from irexec.cli.option_groups import command, json_option, option
from irexec.cli.options import ToleranceOptions, tolerance
from irexec.cli.values import FilePath
from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.records import Records
from irexec.tools.arrays.agreement import Tolerance
from irexec.tools.model_tests import ModelTests, run_model_tests


@command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=FilePath())
@tolerance("each output", rtol=1e-4, atol=1e-5)("tolerances")
@option("--threads", "Number of threads; default: all cores.", type=click.IntRange(1))
@option("--timeout", "Seconds that one run may take.", type=click.FloatRange(0, min_open=True))
@option("--junit", "Write a JUnit XML file.", type=FilePath())
@option("--allow-none", "End with 0 if no model has a test; for hooks, which name the changed files.", is_flag=True)
@json_option
def test(
    models: tuple[str, ...],
    tolerances: ToleranceOptions,
    threads: int | None,
    timeout: float | None,
    junit: str | None,
    allow_none: bool,
    as_json: bool,
) -> int:
    """Hold each MODEL (.xml, .onnx or a folder of them) to the inputs and outputs that lie beside it.

    \b
    irexec test models/
    irexec test model.xml --junit report.xml

    Beside model.xml lie model.inputs.npz and model.outputs.npz, or model.NAME.inputs.npz and model.NAME.outputs.npz for
    several tests; folders test_data_set_0 with input_0.pb and output_0.pb are tests too. infer --save-inputs and -o
    write such files.

    Exit codes: 0 all tests passed, 1 an output differs, 3 a model or a file cannot be read or run.
    """
    if junit is not None:
        check_file("--junit", Path(junit), {})
    limits = Tolerance(**{name: value for name, value in vars(tolerances).items() if value is not None})
    tests = run_model_tests(models, tolerance=limits, threads=threads, timeout=timeout)
    found = ModelTests(Records(tests))
    if found.count("no test") == len(found.tests) and not allow_none:
        raise InputError(f"no model has a test: {found.tests[0].message}; --allow-none takes that as success")
    if junit is not None:
        with new_file(Path(junit)) as file:
            file.write(found.junit().encode())
    render.result(as_json, found.as_dict, list(found.sections()))
    return 3 if found.count("error") else int(found.count("failed") > 0)
