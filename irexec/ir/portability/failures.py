"""Differences by which a model is not read, compiled or run: IR95x to IR97x. Codes are stable, as those of all
findings."""

from __future__ import annotations

from irexec.ir.portability.difference import Difference as D

# Each row: code, name, operations, who, effect; what it does; an example; what to do about it.
# fmt: off
FAILURES: tuple[D, ...] = (
    D("IR951", "one group refused", ("GroupConvolutionBackpropData",), "CPU plugin", "fails",
      "the CPU plugin does not compile one group of several channels",
      '<layer type="GroupConvolutionBackpropData" version="opset1">\n  <input>\n    <port id="0"/>\n'
      '    <port id="1"><dim>1</dim><dim>8</dim><dim>4</dim><dim>3</dim><dim>3</dim></port>\n  </input>\n</layer>',
      "Write a ConvolutionBackpropData, whose weights have no axis of groups.", since="2024.2"),
    D("IR952", "axes of normalisation refused", ("LRN",), "CPU plugin", "fails",
      "the CPU plugin runs LRN over axis 1 or over all spatial axes, counted from the front, and no others",
      '<layer type="LRN" version="opset1">\n  <data alpha="1e-4" beta="0.75" bias="1" size="5"/>\n</layer>',
      "Transpose so that the axis is 1."),
    D("IR953", "axes counted from the end", ("Interpolate",), "reader", "fails",
      "the reader refuses negative axes, which the specification allows",
      '<layer type="Interpolate" version="opset11">\n  <data mode="nearest"/>\n</layer>',
      "Count the axes from the front."),
    D("IR954", "operands of pdpd refused",
      ("Subtract", "Divide", "Mod", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"), "CPU plugin", "fails",
      'the CPU plugin does not compile auto_broadcast="pdpd" where the shapes do not fit with their last axes aligned',
      '<layer type="Subtract" version="opset1">\n  <data auto_broadcast="pdpd"/>\n  <input>\n'
      '    <port id="0"><dim>3</dim><dim>4</dim></port>\n    <port id="1"><dim>3</dim></port>\n  </input>\n</layer>',
      'Reshape the second input to the rank of the first, and write auto_broadcast="numpy".'),
    D("IR955", "group without default", ("DeformableConvolution",), "reader", "fails",
      "the reader takes an absent group or deformable_group for 0 and refuses it, where the specification has 1",
      '<layer type="DeformableConvolution" version="opset8">\n'
      '  <data strides="1, 1" pads_begin="0, 0" pads_end="0, 0" dilations="1, 1"/>\n</layer>',
      "Write group and deformable_group."),
    D("IR956", "activations without default", ("LSTMSequence", "GRUSequence", "RNNSequence"), "CPU plugin", "fails",
      "the reader takes absent activations for none, and the CPU plugin does not compile the layer; the "
      "specification has defaults",
      '<layer type="LSTMSequence" version="opset5">\n  <data hidden_size="4" direction="forward"/>\n</layer>',
      'Write them: "sigmoid, tanh, tanh" for LSTM, "sigmoid, tanh" for GRU, "tanh" for RNN.'),
    D("IR957", "background and decreased labels", ("DetectionOutput",), "CPU plugin", "fails",
      "the CPU plugin refuses decrease_label_id with a background_label_id other than 0",
      '<layer type="DetectionOutput" version="opset8">\n  <data decrease_label_id="true" background_label_id="1"/>\n'
      "</layer>",
      "Make the background class 0."),
    D("IR958", "adaptive threshold refused", ("GenerateProposals",), "reader", "fails",
      "the reader refuses an nms_eta other than 1",
      '<layer type="GenerateProposals" version="opset9">\n  <data nms_eta="0.9"/>\n</layer>',
      'Write nms_eta="1".'),
    D("IR959", "operation without kernel", ("GroupedMatMul", "RGBtoNV12", "BGRtoNV12"), "CPU plugin", "fails",
      "OpenVINO infers the shapes of the operation and has no kernel for it",
      '<layer type="GroupedMatMul" version="opset17"/>',
      "Write it in other operations."),
    D("IR960", "input of unknown rank", ("Parameter",), "CPU plugin", "fails",
      "the CPU plugin does not compile a model with an input of unknown rank",
      '<layer type="Parameter" version="opset1">\n  <data shape="..." element_type="f32"/>\n</layer>',
      'Give it a rank, such as shape="?,?,?"; sizes may stay dynamic.'),
    D("IR961", "logical reduction of any axes", ("ReduceLogicalAnd", "ReduceLogicalOr"), "CPU plugin", "fails",
      "the CPU plugin does not compile logical reductions whose axes are not constant",
      '<layer type="ReduceLogicalAnd" version="opset1"/>',
      "Make the axes a constant, or convert to i32 and use ReduceMin or ReduceMax."),
    D("IR962", "pooling of an empty batch", ("MaxPool", "AvgPool"), "reader", "fails",
      "the reader refuses pooling of a batch of 0",
      '<layer type="AvgPool" version="opset1">\n  <input>\n'
      '    <port id="0"><dim>0</dim><dim>3</dim><dim>8</dim><dim>8</dim></port>\n  </input>\n</layer>',
      "Make sure that the batch has an image."),
    D("IR963", "signal_size of -1", ("RDFT", "IRDFT"), "CPU plugin", "fails",
      "the CPU plugin fails on -1 in signal_size, which means the size of the axis",
      '<layer type="RDFT" version="opset9"/>',
      "Write the size, or leave out signal_size."),
    D("IR964", "output_shape of unknown length", ("ConvolutionBackpropData", "GroupConvolutionBackpropData"), "shape inference", "shape",
      "where the length of output_shape is not known, shape inference leaves out the spatial axes",
      '<layer type="ConvolutionBackpropData" version="opset1">\n  <input>\n'
      '    <port id="2" precision="I64"><dim>-1</dim></port>\n  </input>\n</layer>',
      "Give the input output_shape a static length: the number of spatial axes."),
    D("IR965", "empty last bag", ("EmbeddingBagOffsetsSum", "EmbeddingBagOffsets"), "CPU plugin", "fails",
      "the CPU plugin fails where the last bag is empty; the specification has the default value there",
      '<layer type="EmbeddingBagOffsetsSum" version="opset3"/>',
      "Make sure that the last bag has an index."),
    D("IR966", "padding of a whole window", ("AvgPool",), "reader", "fails",
      "the reader refuses padding of the size of the kernel or more with exclude-pad",
      '<layer type="AvgPool" version="opset1">\n  <data kernel="2, 2" pads_begin="0, 0" pads_end="2, 2" exclude-pad="true"/>\n</layer>',
      "Use less padding, or pad with a Pad."),
    D("IR967", "operation of irexec", (), "reader", "fails",
      "OpenVINO has no such operation: irexec runs it, OpenVINO does not read the model",
      '<layer type="ConvTranspose" version="onednn"/>',
      "Convert the model without it, or write the layer in OpenVINO's operations, if OpenVINO is to run it."),
    D("IR968", "boxes counted statically", ("NonMaxSuppression",), "shape inference", "shape",
      "before version 5 shape inference has a static number of boxes, and the model runs with as many as are selected",
      '<layer type="NonMaxSuppression" version="opset1"/>',
      "Use version 5 or 9, which say how many boxes are selected."),
    D("IR969", "empty range", ("Range",), "CPU plugin", "shape",
      "the CPU plugin takes the distance from start to stop without its sign: where step leads away from stop, the result has "
      "elements, and none in the specification",
      '<layer type="Range" version="opset4">\n  <data output_type="i64"/>\n</layer>',
      "Bound stop by start with a Maximum, or a Minimum where step is negative."),
)
