"""The finding codes: a row for each, with severity, name, meaning, example and advice.

The rows are in irexec.ir.codes, irexec.ir.onnx_codes and irexec.analysis.portability; irexec.analysis.codes imports all
of them. Plug-ins add rows of their own.

irexec.ir.onnx_codes has the codes of ONNX files, irexec.analysis.portability those of other implementations, and
irexec.analysis.codes the table of all codes.

Codes are stable: a code is never given another meaning. IR0xx is what the reader finds, IR1xx the layers themselves,
IR2xx ports, IR3xx the graph, IR4xx weights, IR5xx bodies and variables, IR6xx files of version 2 to 7
(irexec.ir.legacy_codes), IR9xx and IR1xxx what other implementations do. To add a code, add a row here, report it with
``irexec.ir.findings.at`` and give the tests a row that fires it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irexec.records import Record

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Code(Record):
    """One code.

    Attributes:
        code: "IR103".
        name: two to four words, unique.
        severity: error (the model cannot be run, or its results cannot be trusted), warning (unusual, but it can be
            run) or info.
        meaning: one sentence without a full stop.
        example: XML in which it is found, or ONNX's text of a model, reduced to what matters.
        repair: the cure.
    """

    code: str
    name: str
    severity: Severity
    meaning: str
    example: str
    repair: str


CODES: dict[str, Code] = {}
_names: set[str] = set()


def add(code: str, severity: Severity, name: str, meaning: str, example: str, repair: str) -> str:
    """Add a row and give its code; raises ValueError for a code or a name that is used already."""
    if code in CODES or name in _names:
        raise ValueError(f"the code {code} or the name {name!r} is used twice")
    _names.add(name)
    CODES[code] = Code(code, name, severity, meaning, example, repair)
    return code


def by_number(code: str) -> tuple[str, int]:
    """Sort key of a code: its letters, and its number: IR1000 comes after IR999."""
    letters = code.rstrip("0123456789")
    return letters, int(code[len(letters) :] or 0)


def discard(code: str) -> None:
    """Remove a row that was added."""
    _names.discard(CODES.pop(code).name)


# Each row as a block: code, severity and name; meaning; example; repair.
# fmt: off
LAYER_ATTRIBUTE = add(
    "IR001", "error", "incomplete layer", "a layer has no id, name, type or version",
    '<layer id="3" name="relu" type="ReLU"/>',
    "Write the missing attribute; version is the opset in which the operation first appeared, such as opset1.",
)
DUPLICATE_LAYER = add(
    "IR002", "error", "duplicate layer id", "two layers have the same id",
    '<layer id="3" name="relu" type="ReLU" version="opset1"/>\n<layer id="3" name="add" type="Add" version="opset1"/>',
    "Give each layer an id of its own, and correct the edges that use the id.",
)
DUPLICATE_PORT = add(
    "IR003", "error", "duplicate port id", "two input ports or two output ports of a layer have the same id",
    '<input>\n  <port id="0"/>\n  <port id="0"/>\n</input>',
    "Number the ports of a layer from 0, the inputs first and the outputs after them.",
)
BAD_DIM = add(
    "IR004", "error", "invalid dimension",
    "a <dim> is not a size: a whole number of at least 0, or -1 for a dynamic dimension",
    '<port id="2" precision="FP32">\n  <dim>1</dim>\n  <dim>wide</dim>\n</port>',
    "Write the size, or -1 if it is dynamic.",
)
BAD_PRECISION = add(
    "IR005", "error", "unknown precision", "the precision of a port is not the name of an element type",
    '<port id="2" precision="FP31"/>',
    "Use a name of OpenVINO: FP32, FP16, BF16, I64, I32, U8, BOOL, ...",
)
BAD_NUMBER = add(
    "IR006", "error", "invalid number",
    "the id of a layer or port, or the end of an edge, is not a whole number of at most 64 bits",
    '<edge from-layer="2.5" from-port="2" to-layer="4" to-port="0"/>',
    "Write the number of the layer or port that is meant.",
)
EXECUTION_GRAPH = add(
    "IR007", "info", "execution graph",
    "the file is an execution graph: what a device ran, without weights; it is not a model",
    '<layer id="7" name="conv" type="Convolution">\n'
    '  <data execTimeMcs="71" originalLayersNames="conv,relu" primitiveType="jit_avx512_f32"/>\n</layer>',
    "To run or check the model, use the file that was compiled; irexec inspect --layers shows the times and layers of "
    "this one.",
)
EDGE_FROM_NOTHING = add(
    "IR010", "error", "edge without source", "an edge comes from a layer or port that does not exist",
    '<edge from-layer="77" from-port="2" to-layer="4" to-port="0"/>',
    "Correct from-layer and from-port; from-port is the id of an output port.",
)
EDGE_TO_NOTHING = add(
    "IR011", "error", "edge without target", "an edge goes to a layer or port that does not exist",
    '<edge from-layer="2" from-port="2" to-layer="77" to-port="0"/>',
    "Correct to-layer and to-port; to-port is the id of an input port.",
)
DUPLICATE_EDGE = add(
    "IR012", "error", "duplicate edge", "two edges arrive at one input port",
    '<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>\n'
    '<edge from-layer="3" from-port="0" to-layer="4" to-port="0"/>',
    "Remove one of the edges, or correct its to-port.",
)
MISSING_EDGE = add(
    "IR013", "error", "missing edge", "no edge arrives at an input port",
    '<layer id="4" name="add" type="Add" version="opset1">\n  <input>\n    <port id="0"/>\n    <port id="1"/>\n'
    '  </input>\n</layer>\n'
    '<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>',
    "Add the edge to the port, or remove the port if the input is optional.",
)
CONSTANT_ATTRIBUTE = add(
    "IR020", "error", "incomplete constant",
    "the element type, shape, offset or size of a constant is missing or invalid",
    '<layer id="1" name="w" type="Const" version="opset1">\n'
    '  <data element_type="f32" shape="8, 3" offset="-4" size="96"/>\n</layer>',
    "Write all four attributes; offset and size count bytes of the .bin.",
)
CONSTANT_OUT_OF_FILE = add(
    "IR021", "error", "constant outside the .bin", "the bytes of one or more constants are not all in the .bin",
    '<data element_type="f32" shape="8, 3" offset="86400" size="96"/>',
    "Use the .bin that was written with this .xml (was the download cut off?), or correct offset and size.",
)
NO_WEIGHTS_FILE = add(
    "IR022", "error", "no readable .bin", "the model has constants, and their .bin does not exist or cannot be read",
    '<data element_type="f32" shape="8, 3" offset="0" size="96"/>',
    "Put the .bin beside the .xml under the same name, or give it with --bin. git lfs pull replaces a Git LFS pointer "
    "by the file.",
)
CHANGED_BIN = add(
    "IR023", "error", "changed .bin",
    "the .bin is not the one that was written with the .xml: one of the two files has been replaced or changed since",
    '<net name="m" version="11" bin_size="24376" bin_sample="5f1c88a0" bin_crc32="5f1c88a0"/>',
    "Restore the pair, or convert the model again. If the change is intended, delete bin_size, bin_sample and "
    "bin_crc32 of <net>.",
)
BAD_PORT_MAP = add(
    "IR030", "error", "incomplete port map",
    "a number of a port map entry is missing or invalid, or the entry is not an <input> or <output>",
    '<port_map>\n  <input internal_layer_id="2"/>\n</port_map>',
    "Write external_port_id (a port of the layer) and internal_layer_id (a Parameter or Result of the body).",
)
BAD_BACK_EDGE = add(
    "IR031", "error", "incomplete back edge", "a number of a back edge is missing or invalid",
    '<back_edges>\n  <edge from-layer="11" to-layer="two"/>\n</back_edges>',
    "Write from-layer (a Result of the body) and to-layer (a Parameter of the body).",
)
MISSING_BODY = add(
    "IR032", "error", "missing body",
    "a port map belongs to a body that does not exist, or a layer has two bodies of the same name",
    '<layer id="5" name="if" type="If" version="opset8">\n  <then_port_map/>\n</layer>',
    "Each port map belongs to the body of its name: then_port_map to then_body.",
)

UNKNOWN_TYPE = add(
    "IR101", "error", "unknown operation", "the operation type is not known",
    '<layer id="2" name="conv" type="Convolutoin" version="opset1"/>',
    "Correct the type (irexec ops lists all of them). A layer of an extension needs that extension to be run.",
)
UNKNOWN_VERSION = add(
    "IR102", "error", "unknown version", "the operation is known, but not in this version",
    '<layer id="6" name="pool" type="MaxPool" version="opset0"/>',
    "Write the opset in which this version of the operation first appeared (irexec ops MaxPool).",
)
MISSING_ATTRIBUTE = add(
    "IR103", "error", "missing attribute", "a required attribute is missing",
    '<layer id="2" name="conv" type="Convolution" version="opset1">\n'
    '  <data dilations="1, 1" pads_begin="0, 0" pads_end="0, 0"/>\n</layer>',
    "Write the attribute, here strides. OpenVINO assumes a value for some; it may not be the one that was meant.",
)
ILL_TYPED_ATTRIBUTE = add(
    "IR104", "error", "attribute of wrong type", "the text of an attribute is not a value of its type",
    '<layer id="11" name="mean" type="ReduceMean" version="opset1">\n  <data keep_dims="maybe"/>\n</layer>',
    "Write a value of the type: whole numbers separated by commas, true or false, the name of an element type.",
)
ATTRIBUTE_OUT_OF_RANGE = add(
    "IR105", "error", "attribute out of range",
    "an attribute is below its minimum, or not one of the names that are allowed",
    '<layer id="2" name="conv" type="Convolution" version="opset1">\n'
    '  <data strides="0, 1" dilations="1, 1" pads_begin="0, 0" pads_end="0, 0"/>\n</layer>',
    "Use a value that the message allows.",
)
UNKNOWN_ATTRIBUTE = add(
    "IR106", "warning", "unknown attribute", "the operation has no such attribute; it is ignored, as by OpenVINO",
    '<layer id="4" name="add" type="Add" version="opset1">\n  <data colour="red"/>\n</layer>',
    "Remove the attribute, or correct its name: an optional attribute with a misspelt name has its default value.",
)
UNSUPPORTED_ATTRIBUTE = add(
    "IR108", "error", "unsupported part of an attribute",
    "the attribute belongs to another one, which it changes, and irexec does not have it",
    '<layer id="4" name="add" type="Add" version="opset1">\n'
    '  <data auto_broadcast="pdpd" auto_broadcast.offset="1"/>\n</layer>',
    "Correct the name, or remove the attribute; of auto_broadcast only auto_broadcast.auto_broadcast_axis exists.",
)
OWN_OPERATION = add(
    "IR109", "warning", "operation of irexec alone", "OpenVINO does not have the operation and refuses the model",
    '<layer id="3" name="text" type="StringSplit" version="irexec"/>',
    "Run the model with irexec, or replace the layer.",
)
UNREAD_OPERATION = add(
    "IR110", "warning", "operation without a reader",
    "OpenVINO's transformations write the layer, and its reader refuses the model",
    '<layer id="9" name="attention" type="PagedAttentionExtension" version="extension"/>',
    "Run the model with irexec. In OpenVINO, transform the original model again in the program that compiles it.",
)
WRONG_INPUTS = add(
    "IR107", "error", "inputs do not fit",
    "the inputs and attributes of a layer do not fit together, so its outputs cannot be inferred",
    '<layer id="16" name="softmax" type="SoftMax" version="opset8">\n  <data axis="7"/>\n</layer>',
    "Compare what the message says with the layers before: a wrong shape, axis or number of inputs.",
)

OUTPUT_SHAPE = add(
    "IR201", "error", "wrong output shape", "an output port declares another shape than shape inference gives",
    '<output>\n  <port id="2" precision="FP32">\n    <dim>2</dim>\n  </port>\n</output>',
    "Correct the <dim> elements, or find the wrong attribute before it. OpenVINO ignores declared shapes; other "
    "readers trust them.",
)
OUTPUT_ELEMENT = add(
    "IR202", "error", "wrong output type",
    "an output port, or a Parameter of a body, declares another element type than shape inference gives",
    '<output>\n  <port id="2" precision="FP16"/>\n</output>',
    "Correct the precision of the port, or the element_type of the Parameter.",
)
INPUT_SHAPE = add(
    "IR203", "error", "wrong input shape", "an input port declares another shape than its producer gives",
    '<input>\n  <port id="0" precision="FP32">\n    <dim>4</dim>\n  </port>\n</input>',
    "Correct the <dim> elements, or the edge that leads to the port.",
)
INPUT_ELEMENT = add(
    "IR204", "error", "wrong input type", "an input port declares another element type than its producer gives",
    '<input>\n  <port id="0" precision="I32"/>\n</input>',
    "Correct the precision of the port, or the edge that leads to it.",
)
EDGE_SHAPE = add(
    "IR205", "error", "shapes differ along an edge",
    "the two ports that an edge joins declare different shapes, and neither can be inferred",
    '<port id="2">\n  <dim>1</dim>\n</port>\n<port id="0">\n  <dim>2</dim>\n</port>',
    "Correct the port that is wrong, or the edge.",
)
EDGE_ELEMENT = add(
    "IR206", "error", "types differ along an edge",
    "the two ports that an edge joins declare different element types, and neither can be inferred",
    '<port id="2" precision="FP32"/>\n<port id="0" precision="I32"/>',
    "Correct the port that is wrong, or the edge.",
)
NO_DIMS = add(
    "IR207", "warning", "port without dimensions",
    "a port declares no dimensions (a scalar, or an unknown rank) where inference gives some",
    '<port id="2" precision="FP32"/>',
    "Write one <dim> for each axis, -1 for a dynamic one.",
)

CYCLE = add(
    "IR301", "error", "cycle", "the graph has a cycle: a layer depends on its own output",
    '<edge from-layer="4" from-port="2" to-layer="5" to-port="0"/>\n'
    '<edge from-layer="5" from-port="1" to-layer="4" to-port="0"/>',
    "Correct the wrong edge. Repetition is written as a Loop or TensorIterator, state as ReadValue and Assign.",
)
UNREACHABLE = add(
    "IR302", "warning", "unused layer", "no Result and no Assign depends on a layer",
    '<layer id="9" name="unused" type="ReLU" version="opset1">\n  <output>\n    <port id="1"/>\n  </output>\n</layer>',
    "Remove the layer, or add the edge or Result that is missing.",
)
NO_RESULT = add(
    "IR303", "error", "no output", "the model has neither a Result nor an Assign",
    '<layers>\n  <layer id="0" name="x" type="Parameter" version="opset1"/>\n</layers>',
    "Add a Result for each output.",
)
DUPLICATE_TENSOR_NAME = add(
    "IR304", "warning", "duplicate tensor name", "two output ports have the same tensor name",
    '<port id="1" names="x"/>\n<port id="2" names="x"/>',
    "Rename one of them; a name finds only the first.",
)
NOT_TEXT = add(
    "IR305", "error", "not text",
    "a name, type or attribute of a graph that was edited in Python is a number or something else than text",
    '<!-- in Python: node.attributes["axis"] = 1, in place of "1" -->\n<data axis="1"/>',
    'Assign text: the attributes of a layer are those of the XML, such as "1", "true" or "2,3".',
)
UNWRITABLE_TEXT = add(
    "IR306", "error", "unwritable text",
    "a name, type or attribute of a graph that was edited in Python has characters that XML cannot contain",
    '<!-- in Python: node.name = "a\\0" -->\n<layer id="3" name="a" type="ReLU" version="opset1"/>',
    "Leave out control characters, halves of surrogate pairs, and in names of attributes all but letters, digits, -, . "
    "and _.",
)

FROZEN_AXIS = add(
    "IR308", "info", "frozen axis",
    "an input leaves an axis open, and a layer takes one size of it only, or a few beside each other",
    '<layer id="0" name="x" type="Parameter" version="opset1">\n  <data shape="?,8" element_type="f32"/>\n</layer>\n'
    "<!-- and behind it a Reshape whose pattern is the constant [1, 2, 4] -->",
    "irexec edit --unfreeze replaces constants that an exporter wrote for one size; or declare the size with --shape.",
)

CONSTANT_SIZE = add(
    "IR401", "error", "wrong constant size",
    "the size of a constant is not the number of bytes that its shape and element type take",
    '<data element_type="f32" shape="8, 3" offset="0" size="100"/>',
    "Correct shape, element_type or size: 8 x 3 values of f32 take 96 bytes.",
)
WEIGHTS_OVERLAP = add(
    "IR402", "warning", "overlapping constants", "two constants share some of their bytes, but not all",
    '<data element_type="f32" shape="8" offset="0" size="32"/>\n'
    '<data element_type="f32" shape="8" offset="28" size="32"/>',
    "Correct the offset. Constants that share exactly the same bytes are fine.",
)
WEIGHTS_UNUSED = add(
    "IR403", "warning", "unused bytes", "bytes of the .bin belong to no constant",
    '<data element_type="f32" shape="8" offset="64" size="32"/>',
    "Check that the .bin is that of this .xml; writing the model again (irexec.save_model) removes unused bytes.",
)
WEIGHTS_NOT_FINITE = add(
    "IR404", "warning", "weights not finite", "a constant contains NaN or infinities (found with --weights)",
    '<layer id="1" name="w" type="Const" version="opset1"/>',
    "Infinities may be a mask. NaN usually come from training or from a conversion to f16: export the model again.",
)
WEIGHTS_UNREADABLE = add(
    "IR405", "error", "unreadable constant", "a constant cannot be read (found with --weights)",
    '<data element_type="string" shape="2" offset="0" size="3"/>',
    "Use the .bin that was written with this .xml, or correct offset, size and element_type.",
)
WEIGHTS_BEYOND_F16 = add(
    "IR406", "info", "weights beyond f16", "a constant has values that f16 cannot hold (found with --weights)",
    '<layer id="1" name="w" type="Const" version="opset1"/>',
    "They become infinite where the model is compressed to f16 or a device computes in it: keep the constant in f32, "
    "or scale it.",
)
SCALE_OVERFLOW = add(
    "IR407", "warning", "scale overflows",
    "stored weights times their f16 scale are beyond f16, and become infinite (found with --weights)",
    '<layer id="3" name="w/fq_weights" type="Multiply" version="opset1"/>',
    "Store the weights again with smaller groups, or leave this layer in floating point; irexec judge --against says "
    "what it costs.",
)
DEAD_CHANNELS = add(
    "IR408", "info", "channels of zeros", "channels of stored weights are 0 throughout (found with --weights)",
    '<layer id="3" name="w/fq_weights" type="Multiply" version="opset1"/>',
    "The original may have no such channels: compare with it (irexec judge --against). Otherwise they can be pruned.",
)
CLIPPED_WEIGHTS = add(
    "IR409", "warning", "range clips weights",
    "a FakeQuantize of weights has a range that is narrower than the weights (found with --weights)",
    '<layer id="5" name="w/fq" type="FakeQuantize" version="opset1"><data levels="255"/></layer>',
    "The range of another layer, or of other weights, may stand here: quantize the model again.",
)

BODY_PORT_MAP = add(
    "IR501", "error", "wrong port map",
    "a port map refers to a port or layer that does not exist, or has an invalid attribute",
    '<port_map>\n  <input external_port_id="8" internal_layer_id="2" axis="zero"/>\n</port_map>',
    "external_port_id is a port of the layer, internal_layer_id a Parameter (of an input) or a Result (of an output) "
    "of the body.",
)
BODY_UNFED = add(
    "IR502", "error", "parameter without value", "a Parameter of a body has no entry in the port map",
    '<port_map/>\n<body>\n  <layer id="2" name="state" type="Parameter" version="opset1"/>\n</body>',
    "Add an <input> for the Parameter; a Parameter with a back edge needs one too, for the first iteration.",
)
BODY_BACK_EDGE = add(
    "IR503", "error", "wrong back edge",
    "a back edge does not lead from a Result to a Parameter of the body, or leads to one that has another",
    '<back_edges>\n  <edge from-layer="5" to-layer="2"/>\n</back_edges>',
    "from-layer is the id of a Result of the body, to-layer that of a Parameter.",
)
VARIABLE_NOT_READ = add(
    "IR504", "error", "variable never read", "a variable is assigned and never read",
    '<layer id="7" name="assign" type="Assign" version="opset6">\n  <data variable_id="counter"/>\n</layer>',
    "Add the ReadValue with the same variable_id, or correct the variable_id.",
)
VARIABLE_DUPLICATE = add(
    "IR505", "error", "duplicate variable", "a variable is read or assigned by more than one layer",
    '<layer id="7" name="a" type="Assign" version="opset6">\n  <data variable_id="counter"/>\n</layer>\n'
    '<layer id="8" name="b" type="Assign" version="opset6">\n  <data variable_id="counter"/>\n</layer>',
    "Give each variable one ReadValue and one Assign.",
)
VARIABLE_NOT_ASSIGNED = add(
    "IR506", "warning", "variable never assigned",
    "a variable is read and never assigned, so that it keeps its first value",
    '<layer id="3" name="read" type="ReadValue" version="opset6">\n  <data variable_id="counter"/>\n</layer>',
    "Add the Assign with the same variable_id, or correct the variable_id.",
)
VARIABLE_MISFIT = add(
    "IR507", "error", "value does not fit variable",
    "the type or shape of what a variable is set to is not one that the variable has",
    '<layer id="3" name="read" type="ReadValue" version="opset6">\n'
    '  <data variable_id="counter" variable_type="f32" variable_shape="1,2"/>\n</layer>',
    "Correct variable_type and variable_shape, or what is assigned.",
)

NOT_IN_RELEASE = add(
    "IR901", "error", "operation newer than the release",
    "the release of OpenVINO does not have the operation, or not in this version (found with --for)",
    '<layer id="2" name="norm" type="GroupNormalization" version="opset12"/>',
    "Convert the model again for the release, write the layer in older operations, or use a newer release.",
)
OPSET_NOT_IN_RELEASE = add(
    "IR902", "error", "opset newer than the release",
    "the release of OpenVINO does not have the opset of a layer (found with --for)",
    '<layer id="2" name="relu" type="ReLU" version="opset15"/>',
    "Write the opset in which this version of the operation first appeared (irexec ops ReLU); it means the same.",
)
ELEMENT_NOT_IN_RELEASE = add(
    "IR903", "error", "type newer than the release",
    "the release of OpenVINO does not have an element type of the model (found with --for)",
    '<data element_type="f8e4m3" shape="8, 3" offset="0" size="24"/>',
    "Use another type, or a newer release.",
)
VERSION_NOT_IN_RELEASE = add(
    "IR904", "error", "file version not in the release",
    "the release of OpenVINO does not read this version of IR (found with --for)",
    '<net name="m" version="11"/>',
    "Convert the model again with a converter of the release.",
)
NOT_RUN_BY_RELEASE = add(
    "IR906", "error", "not run by the release",
    "the CPU plugin of the release of OpenVINO does not run the layer or its type (found with --for)",
    '<data element_type="f32" shape="1,3,?,?"/>',
    "Set the shapes (irexec edit --shape) or another type, or use a newer release.",
)
OTHER_VALUES_IN_RELEASE = add(
    "IR907", "info", "other values in the release",
    "for some values of its inputs the CPU plugin of the release of OpenVINO gives other results, or fails (found with "
    "--for)",
    '<layer id="2" name="gather" type="GatherND" version="opset8"/>',
    "Make sure that the layer does not get such values, or use a newer release.",
)
NOT_RUN_BY_DEVICE = add(
    "IR908", "error", "not run by the device",
    "the device does not have the operation, or does not take the type or the sizes (found with --for CPU, GPU or NPU)",
    '<layer id="2" name="u" type="Unique" version="opset10"/>',
    "Rewrite the layer (irexec validate --fix does where that is exact), or run it on another device, as HETERO does.",
)
NOT_WRITTEN_FOR_RELEASE = add(
    "IR905", "error", "layer without older operations",
    "the release or device does not have the operation, and irexec convert --for cannot write it in others",
    '<layer id="2" name="u" type="Unique" version="opset10"/>',
    "Replace the layer, or use a newer release; layers with IR901 alone are rewritten by irexec convert --for.",
)
# fmt: on
