"""irexec upgrade"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from irexec.api import save_model
from irexec.cli import render
from irexec.cli.option_groups import OVERWRITE, command, json_option, option
from irexec.cli.options import VERIFY, Verify
from irexec.cli.values import FilePath
from irexec.errors import EngineError
from irexec.io.writer import check_model_files
from irexec.messages import counted
from irexec.tools.arrays.agreement import Tolerance
from irexec.tools.run.input_sources import files_read
from irexec.tools.upgrading import Upgraded, verify_upgrade
from irexec.tools.upgrading import upgrade as read_and_upgrade


@command()
@click.argument("model", type=FilePath())
@option("-o", "--output", "The .xml to write; the .bin is beside it.", required=True, type=FilePath())
@option("--bin", "weights", "The weights; default: the .bin beside the model.", type=FilePath())
@OVERWRITE
@json_option
@VERIFY(
    "verification",
    only=("verify", "seed", "rtol", "atol"),
    verify="Run both files on the same random inputs, and compare the results: the old one in Inference Engine of "
    "2020 if IREXEC_INFERENCE_ENGINE names it, the new one in OpenVINO if it is installed, each else in "
    "irexec. A line says what was compared.",
    seed="For the random inputs of --verify.",
)
def upgrade(model: str, output: str, weights: str | None, overwrite: bool, as_json: bool, verification: Verify) -> int:
    """Write an IR of version 2 to 7 as one of version 11, which OpenVINO loads.

    \b
    irexec upgrade old.xml -o new.xml
    irexec upgrade old.xml -o new.xml --verify

    The results have the names that Inference Engine gave them. Warnings say what the engines of 2020 computed
    otherwise than the file says. With --verify the exit code is 1 if results differ; the IR is written in either case.
    """
    check_model_files(output, files_read(model, weights), overwrite=overwrite)
    with render.progress(f"reading {model}") as advance:
        upgraded = read_and_upgrade(model, weights, progress=advance)
    for finding in upgraded.findings:
        if finding.severity == "warning":
            render.warning_line(finding.placed_message)
    with render.progress(f"writing {output}"):
        save_model(upgraded.model, output, overwrite=overwrite)
    document: dict[str, Any] = {
        "model": output, "layers": len(upgraded.model.nodes), "old": upgraded.writer,
        "warnings": [str(one) for one in upgraded.findings if one.severity == "warning"],
    }  # fmt: skip
    if not as_json:
        render.show([upgraded.writer, f"{output}: {counted(len(upgraded.model.nodes), 'layer')}, IR version 11"])
    code = 0
    if verification.wanted:
        code, document["verify"] = _verify(model, weights, output, upgraded, verification, as_json)
    if as_json:
        render.as_json(document)
    return code


def _verify(
    model: str, weights: str | None, output: str, upgraded: Upgraded, options: Verify, as_json: bool
) -> tuple[int, dict[str, Any]]:
    """The exit code, and the comparison as JSON; the table is printed."""
    binary = Path(weights) if weights else Path(model).with_suffix(".bin")
    try:
        with render.progress(f"verifying {output}"):
            check = verify_upgrade(
                Path(model), binary, Path(output), upgraded, seed=options.seed,
                tolerance=Tolerance(rtol=options.rtol, atol=options.atol),
            )  # fmt: skip
    except EngineError as error:
        render.warning_line(f"not verified: {error}")
        return 0, {"old": None, "new": None, "error": str(error), "inputs": {}, "outputs": []}
    if not as_json:
        render.show(check.sections())
    document = {"old": check.old, "new": check.new, "inputs": check.shapes, "outputs": check.agreements}
    return 0 if check.agrees else 1, document
