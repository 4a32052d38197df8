"""Findings that follow from another finding at the same layer, and say nothing that it does not."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.ir import codes
from irexec.ir.findings import Finding

# What follows, and from which findings.
_FOLLOWS = {
    codes.WRONG_INPUTS: (
        codes.CONSTANT_ATTRIBUTE, codes.CONSTANT_SIZE, codes.BAD_PORT_MAP, codes.BODY_PORT_MAP, codes.BODY_UNFED, codes.BODY_BACK_EDGE,
    ),
    codes.ILL_TYPED_ATTRIBUTE: (codes.CONSTANT_ATTRIBUTE,),
    codes.UNKNOWN_TYPE: (codes.LAYER_ATTRIBUTE,),
    codes.UNKNOWN_VERSION: (codes.LAYER_ATTRIBUTE,),
    codes.BODY_UNFED: (codes.BAD_PORT_MAP,),
}  # fmt: skip


def without_consequences(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that do not follow from others."""
    found = {(finding.code, *_layer(finding)) for finding in findings}
    return [f for f in findings if not any((cause, *_layer(f)) in found for cause in _FOLLOWS.get(f.code, ()))]


def _layer(finding: Finding) -> tuple[int | None, str | None, str | None]:
    return finding.layer_id, finding.layer_name, finding.layer_type
