"""Reasons why a layer cannot be translated, and the findings that they become."""

from __future__ import annotations

from irexec.errors import IrexecError, OpError
from irexec.ir import legacy_codes as codes
from irexec.ir.findings import Finding
from irexec.ir.graph import Node


class WrongAttributeError(OpError):
    """An attribute of a layer that is missing or has a wrong value."""


class UnknownLayerError(OpError):
    """A layer type that versions 2 to 7 lack."""


class NoEquivalentError(OpError):
    """A layer that computes what no operation of version 11 computes."""


class ReportedError(OpError):
    """A reason that is a finding already."""


def finding_of(node: Node, error: IrexecError) -> Finding:
    """The finding that a layer cannot be translated, with the reason that the error was raised for."""
    reason: IrexecError = error
    while isinstance(reason.__cause__, IrexecError):
        reason = reason.__cause__
    return node.finding(_CODES.get(type(reason), codes.DOES_NOT_FIT), str(reason))


_CODES: dict[type[IrexecError], str] = {
    WrongAttributeError: codes.WRONG_ATTRIBUTE,
    UnknownLayerError: codes.UNKNOWN_LAYER,
    NoEquivalentError: codes.NO_EQUIVALENT,
}
