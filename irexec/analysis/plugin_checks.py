"""Finding checks of plug-ins: ``finding_code`` declares a code, ``finding_check`` registers a check.

    ONE_VALUE = irexec.finding_code("my.ops:101", "warning", "one value kept", meaning=..., example=..., repair=...)

    @irexec.finding_check
    def one_value(model: irexec.Graph, inference: irexec.Inference) -> Iterator[irexec.Finding]:
        for node in model.walk():
            if node.type == "SoftTopK" and node.attributes.get("k", "1") == "1":
                yield node.finding(ONE_VALUE, "k is 1, so that each result is 0 or 1")

A check has the form of irexec's own checks, and ``validate`` calls it after them.
"""

from __future__ import annotations

import functools
import re

from irexec.analysis.shape_inference import Inference
from irexec.analysis.validate import PLUGIN_CHECKS, FindingCheck
from irexec.errors import PluginError
from irexec.ir import codes
from irexec.ir.codes import Severity
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph
from irexec.schema.extension import guarded, origin_of
from irexec.schema.plugins import IN_MAIN, plugins

_FORM = re.compile(r"[A-Za-z][\w.-]*:\w+")
_SEVERITIES = ("error", "warning", "info")


def finding_code(
    code: str, severity: Severity, name: str, *, meaning: str, example: str, repair: str
) -> str:  # fmt: skip
    """Declare a finding code of a plug-in, and return it. ``irexec explain`` shows the texts.

    Args:
        code: a namespace and an identifier, such as "my.ops:101"; the codes of irexec have no namespace.
        severity: "error" (the model cannot be run, or its results cannot be trusted), "warning" (unusual, but it can be
            run) or "info".
        name: two to four words, unique.
        meaning: one sentence without a full stop.
        example: XML in which it is found, reduced to what matters.
        repair: the cure.

    Raises:
        PluginError: the code has another form, the severity does not exist, or the code or the name is used already.
    """
    if not _FORM.fullmatch(code):
        raise PluginError(f"finding code {code!r}: expected a namespace and an identifier, such as 'my.ops:101'")
    if severity not in _SEVERITIES:
        raise PluginError(f"finding code {code}: the severity is {severity!r}, expected error, warning or info")
    known = codes.CODES.get(code)
    if known is not None and known.name == name and plugins.current is None:
        # A cell of a notebook that is run again.
        codes.discard(code)
    try:
        codes.add(code, severity, name, meaning, example, repair)
    except ValueError as error:
        raise PluginError(str(error)) from None
    if plugins.current is not None:
        plugins.current.undo.append(functools.partial(codes.discard, code))
    return code


def finding_check(check: FindingCheck) -> FindingCheck:
    """Decorator of a check of a plug-in: a function of a model and what shape inference knows of its values.

    The check yields findings, which ``node.finding(code, message)`` makes, and changes nothing. ``inference.facts`` has
    the fact of each value that was inferred; the model may be damaged in any way.

    Raises:
        PluginError: a check of this name is registered already.
    """
    origin = origin_of(check)
    key = origin, check.__qualname__
    if key in PLUGIN_CHECKS and origin != IN_MAIN:
        raise PluginError(f"the check {check.__qualname__} is registered twice by {origin}")
    PLUGIN_CHECKS[key] = functools.partial(_checked, check, f"the check {check.__qualname__} of {origin}")
    if plugins.current is not None:
        plugins.current.undo.append(functools.partial(PLUGIN_CHECKS.pop, key))
    return check


def _checked(check: FindingCheck, what: str, model: ModelGraph, inference: Inference) -> list[Finding]:
    """The findings of a check; PluginError where it raises, or yields something else."""
    found = guarded(lambda: list(check(model, inference)), what, PluginError)()
    for finding in found:
        if not isinstance(finding, Finding):
            raise PluginError(f"{what} yields {type(finding).__name__}, expected a Finding of node.finding(...)")
    return list(found)
