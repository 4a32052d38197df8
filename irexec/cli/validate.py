"""irexec validate"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from irexec.analysis.validate import validate as find
from irexec.api import read_model
from irexec.cli import render
from irexec.ir.findings import Finding


@click.command(short_help="Check every port, attribute, edge and weight range of an .xml.")
@click.argument("model", type=click.Path())
@click.option("--bin", "weights_path", type=click.Path(), help="The weights, if not beside the model under the same name.")
@click.option("--weights", is_flag=True, help="Also read every constant and look for NaN and infinities.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--json", "form", flag_value="json", help="Same as --format json.")
def validate(model: str, weights_path: str | None, weights: bool, form: str) -> int:
    """Check MODEL (an .xml): every port, attribute, edge and weight range.

    All findings are listed at once, each with a stable code, the layer and the XML line.
    Exit code 1 if there is any error or warning.
    """
    findings = find(read_model(model, weights_path), weights=weights)
    if form == "json":
        render.as_json({"findings": [finding.as_dict() for finding in findings]})
    else:
        _table(model, findings)
    return 1 if any(finding.severity != "info" for finding in findings) else 0


def _table(path: str, findings: Sequence[Finding]) -> None:
    if findings:
        rows = [(f.line, f.severity, f.code, _layer(f), f.port, f.message) for f in findings]
        render.table(("line", "severity", "code", "layer", "port", "finding"), rows, right=(0, 4))
    counts = Counter(finding.severity for finding in findings)
    said = ", ".join(f"{count} {name}{'' if count == 1 or name == 'info' else 's'}" for name, count in counts.items())
    render.line(f"{path}: {said or 'no findings'}")


def _layer(finding: Finding) -> str:
    if finding.layer_id is None and finding.layer_name is None:
        return ""
    kind = f" ({finding.layer_type})" if finding.layer_type else ""
    number = "" if finding.layer_id is None else f"{finding.layer_id} "
    return f"{number}{finding.layer_name or ''}{kind}"
