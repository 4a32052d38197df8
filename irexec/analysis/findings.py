"""What validation reports, and the code of each kind of finding.

Codes are stable: IR0xx is what the reader sees (irexec.ir.codes), IR1xx the layers themselves,
IR2xx ports, IR3xx the graph, IR4xx weights, IR5xx bodies and state. A code is never given another meaning.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from irexec.ir.graph import Node, Problem

Severity = Literal["error", "warning", "info"]

UNKNOWN_TYPE = "IR101"
UNKNOWN_VERSION = "IR102"
MISSING_ATTRIBUTE = "IR103"
ILL_TYPED_ATTRIBUTE = "IR104"
ATTRIBUTE_OUT_OF_RANGE = "IR105"
UNKNOWN_ATTRIBUTE = "IR106"
WRONG_INPUTS = "IR107"
OUTPUT_SHAPE = "IR201"
OUTPUT_ELEMENT = "IR202"
INPUT_SHAPE = "IR203"
INPUT_ELEMENT = "IR204"
EDGE_SHAPE = "IR205"
EDGE_ELEMENT = "IR206"
NO_DIMS = "IR207"
CYCLE = "IR301"
UNREACHABLE = "IR302"
NO_RESULT = "IR303"
DUPLICATE_TENSOR_NAME = "IR304"
CONSTANT_SIZE = "IR401"
WEIGHTS_OVERLAP = "IR402"
WEIGHTS_UNUSED = "IR403"
WEIGHTS_NOT_FINITE = "IR404"
WEIGHTS_UNREADABLE = "IR405"
BODY_PORT_MAP = "IR501"
BODY_UNFED = "IR502"
BODY_BACK_EDGE = "IR503"
VARIABLE_UNPAIRED = "IR504"
VARIABLE_DUPLICATE = "IR505"

MEANINGS = {
    UNKNOWN_TYPE: "the operation type is not known",
    UNKNOWN_VERSION: "the operation is not known in this version",
    MISSING_ATTRIBUTE: "a required attribute is missing",
    ILL_TYPED_ATTRIBUTE: "an attribute is not of its type",
    ATTRIBUTE_OUT_OF_RANGE: "an attribute is out of its range",
    UNKNOWN_ATTRIBUTE: "an attribute is not known to the operation",
    WRONG_INPUTS: "the inputs and attributes do not fit together, so that nothing can be inferred",
    OUTPUT_SHAPE: "an output port declares another shape than inference gives",
    OUTPUT_ELEMENT: "an output port declares another element type than inference gives",
    INPUT_SHAPE: "an input port declares another shape than arrives",
    INPUT_ELEMENT: "an input port declares another element type than arrives",
    EDGE_SHAPE: "the ports at the two ends of an edge declare different shapes",
    EDGE_ELEMENT: "the ports at the two ends of an edge declare different element types",
    NO_DIMS: "a port declares no dims, that is a scalar or an unknown rank, where inference gives dims",
    CYCLE: "layers feed each other in a circle",
    UNREACHABLE: "no Result and no Assign depends on a layer",
    NO_RESULT: "the model has no Result",
    DUPLICATE_TENSOR_NAME: "two ports bear the same tensor name",
    CONSTANT_SIZE: "a constant has another number of bytes than its shape and type take",
    WEIGHTS_OVERLAP: "two constants share some of their bytes",
    WEIGHTS_UNUSED: "bytes of the .bin belong to no constant",
    WEIGHTS_NOT_FINITE: "a constant holds NaN or infinities",
    WEIGHTS_UNREADABLE: "a constant cannot be read",
    BODY_PORT_MAP: "a port map names what is not there",
    BODY_UNFED: "a Parameter of a body is fed by no port map",
    BODY_BACK_EDGE: "a back edge names what is not there",
    VARIABLE_UNPAIRED: "a variable is read and never assigned, or assigned and never read",
    VARIABLE_DUPLICATE: "a variable is read or assigned by more than one layer",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or odd, with a model.

    Attributes:
        code: stable, see MEANINGS and irexec.ir.codes.
        severity: error (it cannot be trusted or run), warning (odd, yet it can be run), info.
        layer_id, layer_name, layer_type: the layer; None where the finding is the model's.
        port: the number of the port, as written.
        line: the XML line.
        message: one sentence with the values.
    """

    code: str
    severity: Severity
    layer_id: int | None
    layer_name: str | None
    layer_type: str | None
    port: int | None
    line: int | None
    message: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as the json format has it."""
        return asdict(self)


def at(node: Node, code: str, message: str, *, severity: Severity = "error", port: int | None = None, line: int | None = None) -> Finding:
    """A finding at a layer, or at a port of it."""
    return Finding(code, severity, node.id, node.name, node.type, port, line or node.line, message)


def of_problem(problem: Problem) -> Finding:
    """What the reader saw, as a finding."""
    severity: Severity = "warning" if problem.severity == "warning" else "error"
    return Finding(
        problem.code, severity, problem.layer_id, problem.layer_name, problem.layer_type, problem.port, problem.line, problem.message
    )
