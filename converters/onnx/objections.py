"""What keeps nodes from being converted, collected instead of raised: the nodes after them are translated all the
same."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from converters.onnx.locations import location
from irexec.errors import ConversionError, IrexecError, OpError, UnsupportedError
from irexec.ir import onnx_codes as codes
from irexec.ir.findings import Finding


class NotKnownError(OpError):
    """A shape or value is not known when the model is converted."""


class UnknownTypeError(UnsupportedError):
    """IR does not have a type of ONNX."""


class WrongAttributeError(OpError):
    """A node has an attribute that its operator does not have, or lacks one."""


class WithoutValueError(ConversionError):
    """There is no such value, it is defined twice or by a cycle, or it cannot be converted, which is reported where it
    is."""


class Objections:
    """The findings of a conversion that goes on after each.

    Bodies are built several times, until their shapes settle: the last time counts.

    Attributes:
        has_failed: whether a node could not be translated.
    """

    def __init__(self) -> None:
        self.has_failed = False
        # By the identity of the graph, which is kept, so that no other one gets the same.
        self._found: dict[int, tuple[onnx.GraphProto, list[Finding]]] = {}

    def begin(self, graph: onnx.GraphProto) -> None:
        """The graph is translated, perhaps again."""
        self._found[id(graph)] = graph, []

    def has_begun(self, graph: onnx.GraphProto) -> bool:
        """Whether the graph has been translated, if only in part."""
        return id(graph) in self._found

    def add(self, graph: onnx.GraphProto, finding: Finding) -> None:
        """There is a finding in a graph that has begun."""
        self._found[id(graph)][1].append(finding)

    def object(self, graph: onnx.GraphProto, node: onnx.NodeProto, error: IrexecError) -> None:
        """A node of the graph cannot be translated."""
        self.has_failed = True
        reasons = list(_causes(error))
        if not any(isinstance(reason, WithoutValueError) for reason in reasons):
            self.add(graph, location(node).finding(_code(reasons), str(reasons[-1])))

    def warn(self, graph: onnx.GraphProto, node: onnx.NodeProto, text: str) -> None:
        """A node is translated to what OpenVINO does not have, the only thing of which translators warn."""
        self.add(graph, location(node).finding(codes.OWN_OPERATION, text))

    @property
    def findings(self) -> list[Finding]:
        """What has been found, in the order of the graphs."""
        return [finding for _, findings in self._found.values() for finding in findings]


def _causes(error: BaseException | None) -> Iterator[IrexecError]:
    """An error and those that it was raised from. The last of them says what is wrong without the locations that lead
    there."""
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
