"""irexec convert --for: IR for an older release of OpenVINO, or for a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from irexec.analysis.model import Model
from irexec.analysis.portability.targets import parse_target
from irexec.api import save_model
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, option
from irexec.cli.verify_options import Verify
from irexec.display import Content
from irexec.io.writer import check_model_files
from irexec.ir.dims import PartialShape
from irexec.messages import counted
from irexec.reading import read_model

_UNSUPPORTED = 4


def _target(release: str | None) -> str | None:
    return None if release is None else str(parse_target(release))


FOR = OptionGroup(
    "Another release or device",
    _target,
    {
        "release": option(
            "--for",
            "Write the IR for this release of OpenVINO, such as 2021.4, in the version of IR and in operations that it "
            "has, or for this device: CPU, GPU or NPU. MODEL may be an .xml.",
            metavar="TARGET",
        )
    },
)


def is_ir(path: str) -> bool:
    """Whether MODEL is an IR by its name."""
    return Path(path).suffix.lower() == ".xml"


def read_ir(
    path: str,
    output: str | None,
    shapes: Mapping[str | None, PartialShape],
    option: str = "-o",
    *,
    overwrite: bool | None = None,
) -> tuple[Model, Path]:
    """The IR, whose inputs get the shapes, and the .xml to write, which ``option`` must name.

    Raises:
        click.UsageError: no file to write is named.
        InputError: the file to write is one that is read, or there is no such input.
        NodeError: the model cannot take the shapes.
        ModelError, UnsupportedError: the IR cannot be read.
    """
    # These modules load the compiler, which a conversion does not need.
    from irexec.tools.run.input_sources import external_files, files_read
    from irexec.tools.run.shapes import reshape

    if output is None:
        raise click.UsageError(f"{option} names the .xml to write: MODEL is an IR itself")
    read = files_read(path, None)
    check_model_files(output, read, option, overwrite=overwrite)
    with render.progress(f"reading {path}"):
        model = read_model(path)
    check_model_files(output, read | external_files(model), option, overwrite=overwrite)
    reshape(model, shapes)
    return model, Path(output)


def write_for(model: Model, target: Path, release: str, verification: Verify, as_json: bool, overwrite: bool) -> int:
    """Write a model for a release or device, and compare it with the original if that is wanted; the exit code."""
    code, document, contents = rewritten(model, target, release, verification, overwrite)
    render.result(as_json, lambda: document, contents)
    return code


def rewritten(
    model: Model, target: Path, release: str, verification: Verify, overwrite: bool = False
) -> tuple[int, dict[str, Any], list[Content]]:
    """Write a model for a release or device; the exit code, the JSON document and the contents to show."""
    from irexec.tools.downgrading import verify_rewriting, written_for

    name = parse_target(release).name
    with render.progress(f"rewriting for {name}"):
        written = written_for(model, release)
    found = written.found
    document: dict[str, Any] = {
        "model": None if found.findings else str(target), "layers": len(found.model.nodes),
        "warnings": [f"{remark.at()}: {remark.message}" for remark in found.remarks],
        "release": release, "version": found.model.version, "changes": found.changes, "findings": found.findings,
    }  # fmt: skip
    contents: list[Content] = [*written.sections()]
    if found.findings:
        contents.append(f"{counted(len(found.findings), 'finding')}: nothing is written for {name}")
        return _UNSUPPORTED, document, contents
    with render.progress(f"writing {target}"):
        save_model(found.model, target, overwrite=overwrite)
    layers = counted(len(found.model.nodes), "layer")
    contents.append(f"{target}: {layers}, IR version {found.model.version} for {name}")
    for text in document["warnings"]:
        render.note_line(text)
    if not verification.wanted:
        return 0, document, contents
    given = verification
    with render.progress("verifying"):
        result = verify_rewriting(model, found.model, given.shapes, seed=given.seed, rtol=given.rtol, atol=given.atol)
    contents.insert(-1, result.sections())
    document["verify"] = {"against": None, "inputs": result.shapes, "outputs": result.agreements}
    return 0 if result.agrees else 1, document, contents
