"""The codes of findings in an ONNX model, one row per code; the text of an example is ONNX's own (onnx.parser).

ON0xx is the graph as the file has it, ON1xx nodes that cannot be converted, ON2xx declared types and shapes.
"""

from __future__ import annotations

from irexec.ir.codes import add

# Each row as a block: code, severity and name; meaning; example; repair.
# fmt: off
CHECKER = add(
    "ON001", "warning", "refused by onnx.checker",
    "onnx.checker objects to the model or to a part of it; irexec may be able to run it",
    "[resize] y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (x)",
    "Correct what the message names. Other runtimes check models in the same way before they load them.",
)
SHAPE_INFERENCE = add(
    "ON002", "info", "refused by onnx.shape_inference",
    "the shape inference of the package onnx objects to a node, irexec's does not",
    "[join] y = Concat <axis = 1> (a, b)",
    "Compare the message with the shapes that irexec inspect --layers shows; one of the two has an error if the model "
    "is right.",
)
MISSING_VALUE = add(
    "ON003", "error", "value without producer",
    "a node, or an output of the graph, reads a value that nothing produces",
    "agraph (float[2] x) => (float[2] y) { y = Add (x, bias) }",
    "Correct the name, or add the node, input or initializer that gives the value.",
)
CYCLE = add(
    "ON004", "error", "cycle of nodes", "the graph has a cycle: a node depends on its own output",
    "a = Relu (b)\nb = Neg (a)",
    "Correct the wrong name. Repetition is written as a Loop or Scan.",
)
DUPLICATE_NAME = add(
    "ON005", "error", "value defined twice", "two nodes, inputs or initializers of a graph give a value the same name",
    "t = Relu (x)\nt = Neg (x)",
    "Rename one of them, and correct the nodes that read it.",
)
ORDER = add(
    "ON006", "warning", "nodes not in order",
    "a node reads the output of one that comes after it, which only irexec allows",
    "y = Neg (t)\nt = Relu (x)",
    "Sort the nodes so that each comes after those whose outputs it reads.",
)
DAMAGED_TENSOR = add(
    "ON007", "error", "damaged tensor",
    "the bytes of an initializer do not fit its type and shape, or its external data cannot be read",
    'float[8, 3] w = ["location": "weights.bin", "offset": "86400", "length": "96"]',
    "Put the file with the external data beside the .onnx (was the download cut off?), or export the model again.",
)
UNUSED_NODE = add(
    "ON008", "warning", "unused node", "no output of the graph depends on a node",
    "agraph (float[2] x) => (float[2] y) {\n  y = Relu (x)\n  t = Neg (x)\n}",
    "Remove the node, or add the output that is missing.",
)
NO_OUTPUT = add(
    "ON009", "error", "graph without output", "the graph has no output, so that it computes nothing",
    "agraph (float[2] x) => () { y = Relu (x) }",
    "Add an output of the graph for each result.",
)
NEW_OPSET = add(
    "ON010", "warning", "unsupported opset",
    "the model imports an opset that is newer than the newest whose rules are known",
    '<ir_version: 13, opset_import: ["" : 99]>',
    "Export the model with an older opset, or update irexec; the nodes are converted by the rules of the newest known "
    "opset.",
)
UNKNOWN_BLOCKS = add(
    "ON011", "warning", "blocks of channels of unknown size",
    "weights of com.microsoft.nchwc are in blocks of 8 or of 16 channels, and all channels of the model fit both",
    'opset_import: ["com.microsoft.nchwc" : 1]\ny = com.microsoft.nchwc.Conv (x, w)',
    "Convert the file on the kind of processor that ONNX Runtime wrote it on, or save the optimized model with "
    "ORT_ENABLE_EXTENDED, which is the same on all processors.",
)

OVERRIDDEN_OPERATOR = add(
    "ON012", "warning", "function instead of an operator",
    "a function of the model has the name of an operator, which is computed, as by ONNX Runtime and OpenVINO",
    '<domain: "", opset_import: ["" : 18]> Softplus (x) => (y) { y = Add (x, x) }',
    "Give the function a domain of its own, or delete it if the operator is what is meant.",
)
UNKNOWN_OPERATOR = add(
    "ON101", "error", "unknown operator", "there is no such operator: its domain or its name is not known",
    "[act] y = com.example.Swish (x)",
    "Correct the name. A custom operator can be converted if the model has it as a function, or is exported with "
    "standard operators.",
)
UNSUPPORTED_OPERATOR = add(
    "ON102", "error", "unsupported operator", "the operator exists, but cannot be converted to IR",
    "[hash] y = com.microsoft.MurmurHash3 (x)",
    "Export the model with other operators, or add a translator (docs: Add a translator).",
)
OPERATOR_VERSION = add(
    "ON103", "error", "operator not in opset",
    "the operator is newer than the opset that the model imports, and has changed since it first appeared",
    '<ir_version: 8, opset_import: ["" : 9]>\n[align] y = RoiAlign (x, boxes, images)',
    "Import the opset in which the operator first appeared, or a newer one; onnx.version_converter adapts the other "
    "nodes.",
)
WRONG_ATTRIBUTE = add(
    "ON104", "error", "wrong attribute", "an attribute of a node is unknown or missing, or has a wrong type or value",
    "[join] y = Concat (a, b)",
    "Compare the attributes with those of the operator in the opset that the model imports.",
)
INPUTS_DO_NOT_FIT = add(
    "ON105", "error", "node does not fit",
    "the inputs and attributes of a node do not fit together, so that it cannot be converted",
    "agraph (float[2, 3] a, float[2, 3] b) => (float[2, 2] y) { y = MatMul (a, b) }",
    "Compare what the message says with the nodes before: a wrong shape, type, axis or number of inputs.",
)
UNSUPPORTED_USE = add(
    "ON106", "error", "unsupported use", "the operator is supported, but not with these inputs or attributes",
    "[build] s = SequenceConstruct (a, b)\ny = SequenceAt (s, index)",
    "Make what the message names a constant, give the inputs static shapes, or export the model with other operators.",
)
UNSUPPORTED_TYPE = add(
    "ON107", "error", "type not in IR",
    "an input, initializer or value has a type that IR lacks, such as complex64 or a sequence",
    "agraph (complex64[2] x) => (complex64[2] y) { y = Identity (x) }",
    "Export the model so that it takes and gives tensors of real numbers.",
)
OWN_OPERATION = add(
    "ON108", "warning", "not for OpenVINO",
    "a node becomes an operation of irexec's own: irexec runs the IR, OpenVINO does not load it",
    "[deform] y = DeformConv (x, w, offset)",
    "Nothing is to be done to run the model with irexec. For OpenVINO, export the model with other operators.",
)

EARLY_OPERATOR = add(
    "ON109", "warning", "operator newer than the opset",
    "an operator is newer than the opset that the model imports, and is taken for that of its first opset",
    '<ir_version: 3, opset_import: ["" : 1]>\nagraph (float[1] x, int64[1] n) => (float[N] y) { y = Expand (x, n) }',
    "Import the opset in which the operator first appeared, or a newer one: ONNX Runtime refuses the file as it is.",
)

OUTPUT_SHAPE = add(
    "ON201", "error", "contradicted output shape",
    "an output of the graph declares another shape than its node produces",
    "agraph (float[2, 4] x) => (float[2, 7] y) { y = Relu (x) }",
    "Correct the declared shape, or find the wrong attribute before it. Runtimes that allocate by it fail or warn.",
)
OUTPUT_TYPE = add(
    "ON202", "error", "contradicted output type",
    "an output of the graph declares another element type than its node produces",
    "agraph (float[2] x) => (double[2] y) { y = Relu (x) }",
    "Correct the declared type, or add the Cast that is missing.",
)
VALUE_SHAPE = add(
    "ON203", "error", "contradicted value shape",
    "the graph declares another shape of a value (value_info) than its node produces",
    "agraph (float[2, 4] x) => (float[2, 4] y) <float[2, 7] t> {\n  t = Relu (x)\n  y = Neg (t)\n}",
    "Delete the value_info and infer it again (onnx.shape_inference), or find the wrong attribute before it.",
)
VALUE_TYPE = add(
    "ON204", "error", "contradicted value type",
    "the graph declares another type of a value (value_info) than its node produces",
    "agraph (float[2] x) => (float[2] y) <double[2] t> {\n  t = Relu (x)\n  y = Neg (t)\n}",
    "Delete the value_info and infer it again (onnx.shape_inference), or add the Cast that is missing.",
)
INITIALIZER = add(
    "ON205", "error", "contradicted initializer",
    "an input declares another type or shape than the initializer of its name has",
    "agraph (float[2] x, float[3] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }",
    "Correct what the input declares, or delete the input: since ONNX IR version 4 an initializer needs none.",
)
STALE_VALUE = add(
    "ON206", "info", "declared but absent", "the graph declares a value (value_info) that it does not have",
    "agraph (float[2] x) => (float[2] y) <float[2] removed> { y = Relu (x) }",
    "Nothing is wrong with the model. Tools that remove nodes often leave this behind; infer the value_info again to "
    "be rid of it.",
)
# fmt: on
