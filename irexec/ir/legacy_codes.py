"""The codes of findings in an IR of version 2 to 7, one row per code: IR6xx.

The format is that of irexec.ir.codes.
"""

from __future__ import annotations

from irexec.ir.codes import add as _code

# Each row as a block: code, severity and name; meaning; example; repair.
# fmt: off
UNKNOWN_LAYER = _code(
    "IR601", "error", "unknown layer type", "an IR of version 2 to 7 has a layer of a type that these versions lack",
    '<layer id="3" name="y" precision="FP32" type="Swoosh"/>',
    "Correct the type. A layer of your own has no description that could be converted: replace it by known layers in "
    "the original model.",
)
NO_EQUIVALENT = _code(
    "IR602", "error", "no equivalent",
    "a layer of an IR of version 2 to 7 computes what no operation of version 11 computes",
    '<layer id="3" name="y" precision="FP32" type="Unique"/>',
    "Convert the original model again, if it exists, or replace the layer; Inference Engine 2020.4 still runs it.",
)
WRONG_ATTRIBUTE = _code(
    "IR603", "error", "wrong layer attribute",
    "an attribute of a layer of an IR of version 2 to 7 is missing, or has a value that it cannot have",
    '<layer id="3" name="y" precision="FP32" type="Clamp">\n  <data min="0"/>\n</layer>',
    "Write the attribute as the message says; the old engine refuses the file as well.",
)
DOES_NOT_FIT = _code(
    "IR604", "error", "layer does not fit",
    "the inputs, attributes, weights and declared sizes of a layer of an IR of version 2 to 7 do not fit together",
    '<layer id="3" name="y" precision="FP32" type="FullyConnected">\n  <data out-size="3"/>\n'
    '  <weights offset="0" size="20"/>\n</layer>',
    "Compare what the message says with the ports and blobs of the layer.",
)
IGNORED_STATISTICS = _code(
    "IR605", "info", "statistics ignored",
    "the file has statistics of activations, by which the engines of 2018 to 2020 compute in int8; here the model "
    "is computed in f32",
    "<statistics>\n  <layer>\n    <name>conv</name>\n    <min>-1.5</min>\n  </layer>\n</statistics>",
    "Nothing is to be done: results are those of the model before calibration. For int8, quantize the converted model.",
)
IGNORED_SCALE = _code(
    "IR606", "warning", "scale ignored",
    "the pre-processing of the input has scale values, which the engines of 2020 ignore, and so does this reader",
    '<pre-process reference-layer-name="data">\n  <channel id="0">\n    <scale value="0.017"/>\n  </channel>\n'
    '</pre-process>',
    "Compare the results with those that you expect; if the scale is to count, scale the input.",
)
ENGINES_DIFFER = _code(
    "IR607", "warning", "engines differ",
    "the engines of 2020 give different results for a layer of an IR of version 2 to 7, so that there is no single "
    "result that the file means",
    '<layer id="3" name="y" precision="FP32" type="Resample">\n  <data type="caffe.ResampleParameter.NEAREST"/>\n'
    '</layer>',
    "Compare the results with those that you expect; the message says which of them is computed.",
)
AGAINST_DESCRIPTION = _code(
    "IR608", "info", "engines against description",
    "the engines of 2020 compute a layer otherwise than its description and its name say; the message says which of "
    "both is computed",
    '<layer id="3" name="y" precision="FP32" type="ReduceMax">\n  <data keep_dims="True"/>\n</layer>',
    "Nothing is to be done, unless the other result is wanted: change the layer in the converted model.",
)
# fmt: on
