"""Obstacles to the conversion of nodes, collected instead of raised: later nodes are translated all the same."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from converters.onnx.locations import location
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.ir import onnx_codes as codes
from irexec.ir.findings import Finding


class NotKnownError(OpError):
    """A shape or value that is not known when the model is converted."""


class UnknownTypeError(UnsupportedError):
    """A type of ONNX that does not exist in IR."""


class WrongAttributeError(OpError):
    """An unknown, missing or mistyped attribute of a node."""


class WithoutValueError(ConversionError):
    """A value that has no producer, two producers, or a producer with an objection of its own."""


class Objections:
    """The findings of a conversion that continues after each of them.

    A body is built several times until its shapes settle: the findings of the last time remain.

    Attributes:
        has_failed: whether a node could not be translated.
    """

    def __init__(self) -> None:
        self.has_failed = False
        # Keyed by the identity of the graph; the graph is stored too, so that no other graph gets the same identity.
        self._found: dict[int, tuple[onnx.GraphProto, list[Finding]]] = {}

    def begin(self, graph: onnx.GraphProto) -> None:
        """Begin the translation of a graph, perhaps again."""
        self._found[id(graph)] = graph, []

    def has_begun(self, graph: onnx.GraphProto) -> bool:
        """Whether the graph has been translated, at least in part."""
        return id(graph) in self._found

    def add(self, graph: onnx.GraphProto, finding: Finding) -> None:
        """Add a finding in a graph that has begun."""
        self._found[id(graph)][1].append(finding)

    def object(self, graph: onnx.GraphProto, node: onnx.NodeProto, error: IrexecError) -> None:
        """Report that a node of the graph cannot be translated."""
        self.has_failed = True
        reasons = list(_causes(error))
        if not any(isinstance(reason, WithoutValueError) for reason in reasons):
            self.add(graph, location(node).finding(_code(reasons), str(reasons[-1])))

    def warn(self, graph: onnx.GraphProto, node: onnx.NodeProto, text: str) -> None:
        """Report an operation that OpenVINO does not have: the only warning of translators."""
        self.add(graph, location(node).finding(codes.OWN_OPERATION, text))

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order of the graphs."""
        return [finding for _, findings in self._found.values() for finding in findings]


def _causes(error: BaseException | None) -> Iterator[IrexecError]:
    """An error and the errors that it was raised from. The last one has the message without locations."""
    while isinstance(error, IrexecError):
        yield error
        error = error.__cause__


def _code(reasons: list[IrexecError]) -> str:
    last = reasons[-1]
    if isinstance(last, UnknownTypeError):
        return codes.UNSUPPORTED_TYPE
    if isinstance(last, WrongAttributeError):
        return codes.WRONG_ATTRIBUTE
    is_unsupported = isinstance(last, NotKnownError | UnsupportedError) or (
        isinstance(last, ConversionError) and last.unsupported
    )
    return codes.UNSUPPORTED_USE if is_unsupported else codes.INPUTS_DO_NOT_FIT
