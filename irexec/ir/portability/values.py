"""Differences that one sees in the values: IR91x to IR94x. Codes are stable, as those of all findings."""

from __future__ import annotations

from irexec.ir.portability.difference import Difference as D

# Each row: code, name, operations, who, effect; what it does; an example; what to do about it.
# fmt: off
VALUES: tuple[D, ...] = (
    D("IR911", "integer quotients cut", ("Divide",), "CPU plugin", "values",
      "the CPU plugin rounds quotients of integers towards zero, also where m_pythondiv asks for rounding down, "
      "as the specification and constant folding do",
      '<layer type="Divide" version="opset1">\n  <data m_pythondiv="true"/>\n  <input>\n'
      '    <port id="0" precision="I32"/>\n    <port id="1" precision="I32"/>\n  </input>\n</layer>',
      "If values may be negative, write a FloorMod and subtract its remainder first, or divide floats and round "
      "with Floor."),
    D("IR912", "axes aligned at the end",
      ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
      "BitwiseLeftShift", "BitwiseRightShift"), "CPU plugin", "values",
      "the CPU plugin aligns the axes of the second input with the last ones of the first, where "
      'auto_broadcast="pdpd" aligns them with the first ones',
      '<layer type="Less" version="opset1">\n  <data auto_broadcast="pdpd"/>\n  <input>\n'
      '    <port id="0"><dim>3</dim><dim>3</dim></port>\n    <port id="1"><dim>3</dim></port>\n  </input>\n</layer>',
      'Reshape the second input to the rank of the first, and write auto_broadcast="numpy".'),
    D("IR913", "saturated sums of bytes", ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2"), "CPU plugin", "values",
      "the CPU plugin saturates sums and products of i8 and u8, which wrap in the specification and in constant "
      "folding",
      '<layer type="ReduceSum" version="opset1">\n  <input>\n    <port id="0" precision="U8"/>\n'
      '    <port id="1" precision="I64"/>\n  </input>\n</layer>',
      "Convert to i32 before the sum."),
    D("IR914", "saturated mean of bytes", ("AdaptiveAvgPool",), "CPU plugin", "values",
      "the CPU plugin computes the mean of all bytes of a channel as a ReduceMean, whose sum saturates and whose "
      "quotient is cut",
      '<layer type="AdaptiveAvgPool" version="opset8">\n  <input>\n    <port id="0" precision="U8"/>\n'
      '    <port id="1" precision="I64"/>\n  </input>\n</layer>',
      "Convert to f32 before the pooling.", since="2023.1"),
    D("IR915", "interpolated bytes rounded", ("Interpolate",), "CPU plugin", "values",
      "the CPU plugin rounds interpolated bytes to the nearest, where constant folding cuts them",
      '<layer type="Interpolate" version="opset4">\n  <data mode="linear_onnx"/>\n  <input>\n'
      '    <port id="0" precision="U8"/>\n  </input>\n</layer>',
      "Convert to f32 before, and back after it with the rounding that is meant."),
    D("IR916", "sampled bytes rounded", ("GridSample",), "CPU plugin", "values",
      "the CPU plugin rounds interpolated bytes to the nearest, where constant folding cuts them",
      '<layer type="GridSample" version="opset9">\n  <data mode="bilinear"/>\n  <input>\n'
      '    <port id="0" precision="U8"/>\n  </input>\n</layer>',
      "Convert to f32 before, and back after it with the rounding that is meant."),
    D("IR917", "index of a zero maximum", ("MaxPool",), "CPU plugin", "values",
      "the CPU plugin gives the first index of a channel for each window of unsigned integers that are all 0, "
      "not an index within the window",
      '<layer type="MaxPool" version="opset8">\n  <output>\n    <port id="1" precision="U8"/>\n'
      '    <port id="2" precision="I64"/>\n  </output>\n</layer>',
      "Convert to i32 or f32 before the pooling."),
    D("IR918", "maximum of an empty window", ("MaxPool",), "CPU plugin", "values",
      "the CPU plugin gives the lowest value of f32 for a window that lies in the padding, not the lowest value "
      "of the data's type",
      '<layer type="MaxPool" version="opset1">\n'
      '  <data strides="3" pads_begin="0" pads_end="2" kernel="2" rounding_type="ceil"/>\n</layer>',
      "Use less padding, so that every window has an element of the data."),
    D("IR919", "cube_coeff ignored", ("Interpolate",), "CPU plugin", "values",
      "the CPU plugin computes bicubic_pillow with the coefficient -0.5, whatever cube_coeff is; constant "
      "folding uses cube_coeff",
      '<layer type="Interpolate" version="opset11">\n  <data mode="bicubic_pillow" cube_coeff="-0.75"/>\n</layer>',
      'Write cube_coeff="-0.5".'),
    D("IR920", "box without extent", ("ROIAlign",), "CPU plugin", "values",
      "with sampling_ratio=0 the CPU plugin gives NaN for a box without width or height, the reference 0",
      '<layer type="ROIAlign" version="opset9">\n  <data sampling_ratio="0"/>\n</layer>',
      "Write the sampling_ratio that is meant, such as 2, or make sure that boxes have an extent."),
    D("IR921", "value of an empty segment", ("SegmentMax",), "CPU plugin", "values",
      'with fill_mode="lowest" the CPU plugin fills with the lowest value of f32 or i32, which is not that of '
      "this element type",
      '<layer type="SegmentMax" version="opset16">\n  <data fill_mode="lowest"/>\n  <input>\n'
      '    <port id="0" precision="I64"/>\n  </input>\n</layer>',
      "Convert to f32 or i32 before it."),
    D("IR922", "integer mean cut", ("ScatterElementsUpdate",), "CPU plugin", "values",
      "the CPU plugin rounds a mean of integers towards zero, the reference rounds it down",
      '<layer type="ScatterElementsUpdate" version="opset12">\n  <data reduction="mean"/>\n  <input>\n'
      '    <port id="0" precision="I32"/>\n  </input>\n</layer>',
      "If values may be negative, compute in floats and round with Floor.", since="2024.1"),
    D("IR923", "squared difference of bytes", ("SquaredDifference",), "CPU plugin", "values",
      "the CPU plugin computes something else for i8 and u8",
      '<layer type="SquaredDifference" version="opset1">\n  <input>\n    <port id="0" precision="U8"/>\n'
      '    <port id="1" precision="U8"/>\n  </input>\n</layer>',
      "Convert to i32 or f32 before it."),
    D("IR924", "padding of a binary convolution", ("BinaryConvolution",), "CPU plugin", "values",
      "the CPU plugin leaves out padding of pad_value 0, which the specification counts as -1",
      '<layer type="BinaryConvolution" version="opset1">\n'
      '  <data mode="xnor-popcount" pad_value="0" pads_begin="1, 1" pads_end="1, 1"/>\n</layer>',
      "Pad the data with a Pad before the convolution."),
    D("IR925", "peepholes or input_forget ignored", ("LSTMCell",), "CPU plugin", "values",
      "the CPU plugin computes neither the peephole weights nor input_forget of version 1",
      '<layer type="LSTMCell" version="opset1">\n  <data hidden_size="4" input_forget="true"/>\n</layer>',
      "Write the cell in basic operations."),
    D("IR926", "sequence lengths ignored", ("LSTMSequence", "GRUSequence", "RNNSequence"), "CPU plugin", "values",
      "the CPU plugin ignores sequence_lengths where a size of the data is dynamic, and runs every sequence to "
      "its end",
      '<layer type="LSTMSequence" version="opset5">\n  <input>\n'
      '    <port id="0"><dim>2</dim><dim>-1</dim><dim>3</dim></port>\n  </input>\n</layer>',
      "Give the model a static batch and length, or use sequences of the full length only."),
    D("IR927", "normalisation over three axes", ("LRN",), "CPU plugin", "values",
      "the CPU plugin leaves the channels out of an LRN over three or more axes, and normalises over the spatial ones",
      '<layer type="LRN" version="opset1">\n  <data alpha="1e-4" beta="0.75" bias="1" size="5"/>\n</layer>',
      "Write it in basic operations, or normalise over axis 1 or over the spatial axes."),
    D("IR928", "transform longer than the data", ("RDFT", "IRDFT"), "CPU plugin", "undefined values",
      "the CPU plugin fails, or reads beside the data, where signal_size is more than the size of the axis; the "
      "specification pads with zeros",
      '<layer type="RDFT" version="opset9">\n  <input>\n    <port id="0"><dim>2</dim><dim>6</dim></port>\n'
      "  </input>\n</layer>",
      "Pad the data with a Pad, and leave out signal_size."),
    D("IR929", "f64 computed in f32", (), "CPU plugin", "values",
      "the CPU plugin computes f64 in f32: results have 7 digits, and what f32 cannot hold becomes its largest value",
      '<layer type="Multiply" version="opset1">\n  <input>\n    <port id="0" precision="FP64"/>\n'
      '    <port id="1" precision="FP64"/>\n  </input>\n</layer>',
      "Use f32, so that every implementation computes the same."),
    D("IR930", "maximum of nothing", ("ReduceMax", "ReduceMin"), "CPU plugin", "values",
      "the maximum and minimum of no elements are the lowest and largest finite value for the CPU plugin, and "
      "infinities in ONNX and irexec",
      '<layer type="ReduceMax" version="opset1">\n  <input>\n    <port id="0"><dim>2</dim><dim>0</dim></port>\n'
      "  </input>\n</layer>",
      "Make sure that the axes that are reduced have elements."),
    D("IR931", "bits read from an input", ("Convert",), "CPU plugin", "undefined values",
      "the CPU plugin converts u1 that is not constant as if each element were a byte",
      '<layer type="Convert" version="opset1">\n  <data destination_type="f32"/>\n  <input>\n'
      '    <port id="0" precision="BIN"/>\n  </input>\n</layer>',
      "Use boolean or u8."),
    D("IR932", "softmax of regions by default", ("RegionYolo",), "reader", "shape",
      "the reader takes do_softmax for false where it is absent, the specification for true",
      '<layer type="RegionYolo" version="opset1">\n  <data axis="1" coords="4" classes="80" end_axis="3" num="5"/>\n'
      "</layer>",
      "Write do_softmax."),
    D("IR933", "images of a batch mixed up", ("RegionYolo",), "CPU plugin", "values",
      "without do_softmax the CPU plugin mixes up the images of a batch where the input has more channels than "
      "the regions take",
      '<layer type="RegionYolo" version="opset1">\n  <data do_softmax="false" mask="0, 1, 2"/>\n  <input>\n'
      '    <port id="0"><dim>2</dim><dim>255</dim><dim>13</dim><dim>13</dim></port>\n  </input>\n</layer>',
      "Slice the channels that the regions take."),
    D("IR934", "sizes of prior boxes by default", ("PriorBoxClustered",), "reader", "shape",
      "the reader takes an absent width and height for no boxes at all, the specification for one box of size 1",
      '<layer type="PriorBoxClustered" version="opset1">\n  <data step="16" offset="0.5"/>\n</layer>',
      "Write width and height."),
    D("IR935", "random numbers of small floats", ("RandomUniform",), "CPU plugin", "values",
      "the CPU plugin generates f16, bf16 and f64 as f32: other numbers than the specification's algorithm gives "
      "for the same seeds",
      '<layer type="RandomUniform" version="opset8">\n  <data output_type="f16" global_seed="1" op_seed="2"/>\n'
      "</layer>",
      "Generate f32 and convert."),
    D("IR936", "random numbers continued", ("RandomUniform",), "CPU plugin", "values",
      "the CPU plugin continues the sequence of random numbers from one inference to the next, also with seeds; "
      "irexec and constant folding give the same ones each time",
      '<layer type="RandomUniform" version="opset8">\n  <data output_type="f32" global_seed="1" op_seed="2"/>\n'
      "</layer>",
      "If results must be the same in each inference, make the numbers an input or a constant."),
    D("IR937", "samples of another generator", ("Multinomial",), "CPU plugin", "values",
      "the CPU plugin draws other samples than the reference implementation, with the same seeds",
      '<layer type="Multinomial" version="opset13">\n  <data global_seed="1" op_seed="2"/>\n</layer>',
      "Expect the distribution, not the samples."),
    D("IR938", "integer functions cut by folding", ("Exp", "Log", "Sin", "Asin"), "constant folding", "values",
      "constant folding cuts the results for integers, the CPU plugin rounds them to the nearest: they depend on "
      "whether the input is constant",
      '<layer type="Exp" version="opset1">\n  <input>\n    <port id="0" precision="I32"/>\n  </input>\n</layer>',
      "Convert to f32 before, and round after it."),
    D("IR939", "level of zero", ("FakeQuantize",), "CPU plugin", "values",
      "the CPU plugin rounds the step between two levels to f32, so that levels are up to two ulps of the range off and the one "
      "that is meant to be 0 is not; irexec has exact levels, rounded once, and 0",
      '<layer type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>',
      "Where zeros matter, as in 0 / 0 or under padding, begin the range with 0 or choose a step that is a power of two."),
    D("IR940", "operand gathered from constants", ("Einsum",), "CPU plugin", "values",
      "the CPU plugin computes an Einsum of several matrices wrongly if one of its operands is computed from constants by "
      "GatherElements, which is not folded",
      '<layer type="GatherElements" version="opset6">\n  <data axis="0"/>\n</layer>\n'
      '<layer type="Einsum" version="opset7">\n  <data equation="inh,tnh->int"/>\n</layer>',
      "Replace the GatherElements by a constant."),
    D("IR941", "slices that are not read", ("TensorIterator",), "CPU plugin", "values",
      "the CPU plugin runs the body once where none of its layers reads a sliced input, whatever the number of slices, and gives outputs "
      "of other shapes than it infers itself",
      '<port_map>\n  <input axis="0" external_port_id="0" internal_layer_id="0" part_size="1"/>\n</port_map>',
      "Let a layer of the body read the sliced input."),
    D("IR942", "scales of other channels", ("FakeQuantize",), "CPU plugin", "values",
      "in a graph of f16, with LP_TRANSFORMS_MODE off, the CPU plugin fuses a Multiply or Add of a value per channel, behind a pooled "
      "convolution, into a FakeQuantize of one range, and uses the value of the first channel for all",
      '<layer name="pool" type="MaxPool" version="opset1"/>\n<layer name="scale" type="Multiply" version="opset1"/>\n'
      '<layer name="quantised" type="FakeQuantize" version="opset1">\n  <data levels="256"/>\n</layer>',
      "Fold the scale and shift into the convolution, or give the FakeQuantize a range for each channel."),
)
