"""Functions of the operations, for editors and type checkers: written by tests/support/opset_stub.py."""

# Versions of an operation differ in their inputs and attributes.
# mypy: disable-error-code="override"

from collections.abc import Sequence
from typing import Any, Literal, overload

from irexec.authoring.bodies import Iteration as Iteration
from irexec.authoring.bodies import Slices as Slices
from irexec.authoring.bodies import if_ as if_
from irexec.authoring.bodies import loop as loop
from irexec.authoring.bodies import tensor_iterator as tensor_iterator
from irexec.authoring.embedding import embed as embed
from irexec.authoring.ends import constant as constant
from irexec.authoring.ends import packed as packed
from irexec.authoring.ends import parameter as parameter
from irexec.authoring.ends import result as result
from irexec.authoring.raw_layers import body as body
from irexec.authoring.raw_layers import declared as declared
from irexec.authoring.raw_layers import layer as layer
from irexec.authoring.tensor import Operand, Tensor
from irexec.dtypes.elements import ElementLike
from irexec.ir.shape_text import ShapeLike

class Opset1:
    """The operations of opset 1."""

    @staticmethod
    def abs(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Abs of opset1. The absolute value. Source: Abs-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def acos(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Acos of opset1. The arc cosine, in radians. Source: Acos-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def add(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Add of opset1. a + b; integers wrap. Source: Add-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def asin(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Asin of opset1. The arc sine, in radians. Source: Asin-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def atan(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Atan of opset1. The arc tangent, in radians. Source: Atan-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def avg_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        exclude_pad: bool,
        rounding_type: Literal["floor", "ceil"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """AvgPool of opset1. The mean of each window; with exclude-pad the padding does not count.

        Else every point of the window counts, also beyond the padding where rounding up makes it reach so far; but
        without any padding, points beyond the data do not. Integers are rounded to the nearest, halves to even.
        Source: AvgPool-1 and the CPU plugin.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def batch_norm_inference(
        gamma: Operand,
        beta: Operand,
        data: Operand,
        mean: Operand,
        variance: Operand,
        *,
        epsilon: float,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BatchNormInference of opset1. gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel.

        In opset 1 gamma and beta come before the data, as OpenVINO's own operation has them.
        Source: BatchNormInference-1 and openvino ``batch_norm.cpp``.

        Args:
            gamma: a floating-point type, rank 1.
            beta: a floating-point type, rank 1.
            data: a floating-point type, rank 2 or more.
            mean: a floating-point type, rank 1.
            variance: a floating-point type, rank 1.
        """

    @staticmethod
    def binary_convolution(
        data: Operand,
        filter: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        mode: Literal["xnor-popcount"],
        pad_value: float,
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BinaryConvolution of opset1. Twice the bits in which window and filter agree, minus the bits of the filter;
        data [N, C_IN, Y, X].

        Data other than 0 and 1 agrees with neither; padding takes part with ``pad_value``. Source:
        BinaryConvolution-1 and OpenVINO's reference (its CPU plugin leaves out padding of 0, and the reference
        misreads a second output channel).

        Args:
            data: a numeric type, rank 4.
            filter: u1, rank 4.
        """

    @staticmethod
    def broadcast(
        data: Operand,
        target_shape: Operand,
        axes_mapping: Operand | None = None,
        *,
        mode: Literal["numpy", "explicit", "pdpd", "none"] = "numpy",
        mode_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Broadcast of opset1. ``data`` repeated to ``target_shape``; ``axes_mapping`` has the positions of its axes if
        mode is explicit.

        pdpd: its axes are aligned with those of the target from ``mode_axis`` on. Source: Broadcast-1, and OpenVINO,
        which writes explicit as "none", for pdpd, which is not in the specification. In the other modes OpenVINO
        writes a scalar for ``axes_mapping``.

        Args:
            data: any element type.
            target_shape: an integer type, rank 1.
            axes_mapping: an integer type.
        """

    @staticmethod
    def ctc_greedy_decoder(
        data: Operand,
        sequence_mask: Operand,
        *,
        ctc_merge_repeated: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """CTCGreedyDecoder of opset1. The most probable class of each step without blanks, (steps, batch, classes) to
        (batch, steps, 1, 1), padded with -1.

        The blank is the last class; a sequence ends at the first 0 of its mask (steps, batch). Source:
        CTCGreedyDecoder-1.

        Args:
            data: a floating-point type, rank 3.
            sequence_mask: a floating-point type, rank 2.
        """

    @staticmethod
    def ceiling(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Ceiling of opset1. Rounded up to an integer. Source: Ceiling-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def clamp(data: Operand, *, min: float, max: float, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Clamp of opset1. min(max(x, min), max); for integers min is rounded up and max down. Source: Clamp-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def concat(*inputs: Operand, axis: int, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Concat of opset1. The tensors concatenated along ``axis``. Source: Concat-1.

        Args:
            inputs: any element type, rank 1 or more.
        """

    @staticmethod
    def convert(
        data: Operand,
        *,
        destination_type: ElementLike,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Convert of opset1. ``data`` converted to the element type ``destination_type``. Source: Convert-1.

        Args:
            data: any element type.
        """

    @staticmethod
    def convert_like(data: Operand, like: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """ConvertLike of opset1. ``data`` converted to the element type of ``like``. Source: ConvertLike-1.

        Args:
            data: any element type.
            like: any element type.
        """

    @staticmethod
    def convolution(
        data: Operand,
        filter: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Convolution of opset1. Cross-correlation of data [N, C_IN, Z, Y, X] with filter [C_OUT, C_IN, Z, Y, X], in 1
        to 3 spatial axes.

        Integers wrap. Source: Convolution-1.

        Args:
            data: a numeric type, rank 3, 4 or 5.
            filter: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def convolution_backprop_data(
        data: Operand,
        filter: Operand,
        output_shape: Operand | None = None,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        output_padding: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ConvolutionBackpropData of opset1. Transposed convolution of data [N, C_IN, Z, Y, X] with filter [C_IN,
        C_OUT, Z, Y, X], in 1 to 3 spatial axes.

        Source: ConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin.

        Args:
            data: a numeric type, rank 3, 4 or 5.
            filter: a numeric type, rank 3, 4 or 5.
            output_shape: an integer type, rank 1.
        """

    @staticmethod
    def cos(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Cos of opset1. The cosine, in radians. Source: Cos-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def cosh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Cosh of opset1. The hyperbolic cosine. Source: Cosh-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def deformable_convolution(
        data: Operand,
        offsets: Operand,
        filter: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        group: int = 1,
        deformable_group: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DeformableConvolution of opset1. Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose
        points are moved by ``offsets``.

        It is DeformableConvolution-8 without mask and with ``bilinear_interpolation_pad`` false. Source:
        DeformableConvolution-1.

        Args:
            data: a numeric type, rank 4.
            offsets: a numeric type, rank 4.
            filter: a numeric type, rank 4.
        """

    @staticmethod
    def deformable_psroi_pooling(
        data: Operand,
        rois: Operand,
        offsets: Operand | None = None,
        *,
        output_dim: int,
        spatial_scale: float,
        group_size: int = 1,
        spatial_bins_x: int = 1,
        spatial_bins_y: int = 1,
        mode: Literal["bilinear_deformable"] = "bilinear_deformable",
        trans_std: float = 1,
        part_size: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DeformablePSROIPooling of opset1. Each bin of each box (image, x1, y1, x2, y2) from channels of its own: the
        mean of interpolated points.

        ``offsets`` [R, 2 * classes, part_size, part_size] move the bins, relative to the box and times
        ``trans_std``; the number of outputs is a multiple of the classes. Gives [R, output_dim, group_size,
        group_size]. As in the CPU plugin, image -1 ends the boxes: it and all that follow give 0. Source:
        DeformablePSROIPooling-1.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
            offsets: a floating-point type, rank 4.
        """

    @staticmethod
    def depth_to_space(
        data: Operand,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DepthToSpace of opset1. Blocks of channels moved to blocks of spatial positions, for any number of spatial
        axes.

        Source: DepthToSpace-1.

        Args:
            data: any element type, rank 3 or more.
        """

    @staticmethod
    def detection_output(
        box_logits: Operand,
        class_preds: Operand,
        proposals: Operand,
        aux_class_preds: Operand | None = None,
        aux_box_preds: Operand | None = None,
        *,
        keep_top_k: Sequence[int],
        nms_threshold: float,
        num_classes: int,
        background_label_id: int = 0,
        top_k: int = -1,
        variance_encoded_in_target: bool = False,
        code_type: Literal[
            "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE", "CORNER", "CENTER_SIZE"
        ] = "caffe.PriorBoxParameter.CORNER",
        share_location: bool = True,
        confidence_threshold: float = 0.0,
        clip_after_nms: bool = False,
        clip_before_nms: bool = False,
        decrease_label_id: bool = False,
        normalized: bool = False,
        input_height: int = 1,
        input_width: int = 1,
        objectness_score: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DetectionOutput of opset1. The detections: rows of image, class, score and corners [1, 1, rows, 7].

        As DetectionOutput-8, which counts the classes itself. Source: DetectionOutput-1.

        Args:
            box_logits: a floating-point type, rank 2.
            class_preds: a floating-point type, rank 2.
            proposals: a floating-point type, rank 3.
            aux_class_preds: a floating-point type, rank 2.
            aux_box_preds: a floating-point type, rank 2.
        """

    @staticmethod
    def divide(
        a: Operand,
        b: Operand,
        *,
        m_pythondiv: bool = True,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Divide of opset1. a / b. Integers are rounded down, or towards zero if ``m_pythondiv`` is false.

        Source: Divide-1. OpenVINO's reference rounds down where m_pythondiv is true, its CPU plugin truncates.
        The result of dividing an integer by 0 is not specified; here it is 0.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def elu(data: Operand, *, alpha: float, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Elu of opset1. x where it is positive, alpha * (exp(x) - 1) elsewhere; results of integers are rounded.
        Source: Elu-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def equal(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Equal of opset1. Whether a = b; false where either is NaN. Source: Equal-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def erf(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Erf of opset1. The error function. Source: Erf-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def exp(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Exp of opset1. The exponential function. Source: Exp-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def fake_quantize(
        data: Operand,
        input_low: Operand,
        input_high: Operand,
        output_low: Operand,
        output_high: Operand,
        *,
        levels: int,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """FakeQuantize of opset1. The nearest of ``levels`` levels from input_low to input_high, mapped to
        output_low..output_high.

        At or below the smaller input bound it is output_low, above the larger one output_high; halves are rounded to
        even. Levels are computed in f64 and rounded once; the one that is 0 but for the rounding of the bounds is 0
        (see ``zero_level``). Source: FakeQuantize-1 and openvino ``reference/fake_quantize.hpp``.

        Args:
            data: a floating-point type.
            input_low: a floating-point type.
            input_high: a floating-point type.
            output_low: a floating-point type.
            output_high: a floating-point type.
        """

    @staticmethod
    def floor(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Floor of opset1. Rounded down to an integer. Source: Floor-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def floor_mod(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """FloorMod of opset1. The remainder of a / b, with the sign of b. Source: FloorMod-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def grn(data: Operand, *, bias: float, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """GRN of opset1. x / sqrt(bias + sum of squares along the channels). Source: GRN-1.

        Args:
            data: a floating-point type, rank 2, 3 or 4.
        """

    @staticmethod
    def gather(
        data: Operand,
        indices: Operand,
        axis: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Gather of opset1. Slices of ``data`` along ``axis``; an index out of range gives zeros. Source: Gather-1.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type.
            axis: an integer type.
        """

    @staticmethod
    def gather_tree(
        step_ids: Operand,
        parent_idx: Operand,
        max_seq_len: Operand,
        end_token: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GatherTree of opset1. The beams [time, batch, beam] of a search, each traced back from its last step through
        its parents.

        After its first ``end_token``, and from max_seq_len [batch] on, a beam has end tokens. Source: GatherTree-1.

        Args:
            step_ids: a numeric type, rank 3.
            parent_idx: a numeric type, rank 3.
            max_seq_len: a numeric type, rank 1.
            end_token: a numeric type, rank 0.
        """

    @staticmethod
    def greater(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Greater of opset1. Whether a > b. Source: Greater-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def greater_equal(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GreaterEqual of opset1. Whether a >= b. Source: GreaterEqual-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def group_convolution(
        data: Operand,
        filter: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GroupConvolution of opset1. Convolution of each group: data [N, GROUPS * C_IN, ...], filter [GROUPS, C_OUT,
        C_IN, Z, Y, X]. Source: GroupConvolution-1.

        Args:
            data: a numeric type, rank 3, 4 or 5.
            filter: a numeric type, rank 4, 5 or 6.
        """

    @staticmethod
    def group_convolution_backprop_data(
        data: Operand,
        filter: Operand,
        output_shape: Operand | None = None,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        output_padding: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GroupConvolutionBackpropData of opset1. ConvolutionBackpropData of each group: data [N, GROUPS * C_IN, ...],
        filter [GROUPS, C_IN, C_OUT, Z, Y, X].

        The specification prints the kernel's axes reversed; they are in the order of the data's. Any number of
        spatial axes. Source: GroupConvolutionBackpropData-1, OpenVINO's shape inference and CPU plugin.

        Args:
            data: a numeric type, rank 3 or more.
            filter: a numeric type, rank 4 or more.
            output_shape: an integer type, rank 1.
        """

    @staticmethod
    def hard_sigmoid(
        data: Operand,
        alpha: Operand,
        beta: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """HardSigmoid of opset1. min(max(alpha * x + beta, 0), 1). Source: HardSigmoid-1.

        Args:
            data: a numeric type.
            alpha: a numeric type, rank 0.
            beta: a numeric type, rank 0.
        """

    @staticmethod
    def interpolate(
        data: Operand,
        target_spatial_shape: Operand,
        *,
        axes: Sequence[int],
        mode: Literal["nearest", "linear", "cubic", "area"],
        antialias: bool = False,
        pads_begin: Sequence[int] = (),
        pads_end: Sequence[int] = (),
        align_corners: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Interpolate of opset1. ``data`` resized along ``axes`` to the shape given. Source: Interpolate-1, computed as
        OpenVINO converts it to Interpolate-4.

        Of mode area only the shape can be inferred: no implementation computes it.

        Args:
            data: a numeric type.
            target_spatial_shape: an integer type.
        """

    @staticmethod
    def lrn(
        data: Operand,
        axes: Operand,
        *,
        alpha: float,
        beta: float,
        bias: float,
        size: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """LRN of opset1. x / (bias + alpha * mean square of the neighbours along ``axes``) ** beta.

        The window has (size - 1) // 2 elements on each side, so that an even size is reduced by one; elements
        outside are 0; the divisor of the mean is ``size`` nevertheless. Source: LRN-1, openvino
        ``reference/lrn.hpp``.

        Args:
            data: a floating-point type.
            axes: an integer type, rank 1.
        """

    @staticmethod
    def lstm_cell(
        x: Operand,
        initial_hidden_state: Operand,
        initial_cell_state: Operand,
        w: Operand,
        r: Operand,
        b: Operand | None = None,
        p: Operand | None = None,
        *,
        hidden_size: int,
        activations: Sequence[str] = ("sigmoid", "tanh", "tanh"),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        input_forget: bool = False,
        weights_format: Literal["fico", "ifco", "icof", "ifoc", "iofc"] = "fico",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """LSTMCell of opset1. One step of an LSTM with peepholes P [3 * S] (of the gates f, i and o): the hidden state
        and the cell state, [B, S] each.

        With ``input_forget`` the input gate is 1 - forget gate. The gates are in the order fico whatever
        ``weights_format`` says: OpenVINO writes "ifco" and ignores it when it reads. Source: LSTMCell-1, and
        OpenVINO's reference.

        Args:
            x: a floating-point type, rank 2.
            initial_hidden_state: a floating-point type, rank 2.
            initial_cell_state: a floating-point type, rank 2.
            w: a floating-point type, rank 2.
            r: a floating-point type, rank 2.
            b: a floating-point type, rank 1.
            p: a floating-point type, rank 1.
        """

    @staticmethod
    def less(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Less of opset1. Whether a < b. Source: Less-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def less_equal(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """LessEqual of opset1. Whether a <= b. Source: LessEqual-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def log(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Log of opset1. The natural logarithm. Source: Log-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def logical_and(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """LogicalAnd of opset1. a and b. Source: LogicalAnd-1.

        Args:
            a: boolean.
            b: boolean.
        """

    @staticmethod
    def logical_not(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """LogicalNot of opset1. Whether the element is false. Source: LogicalNot-1.

        Args:
            data: boolean.
        """

    @staticmethod
    def logical_or(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """LogicalOr of opset1. a or b. Source: LogicalOr-1.

        Args:
            a: boolean.
            b: boolean.
        """

    @staticmethod
    def logical_xor(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """LogicalXor of opset1. Whether exactly one of a and b is true. Source: LogicalXor-1.

        Args:
            a: boolean.
            b: boolean.
        """

    @staticmethod
    def matmul(
        a: Operand,
        b: Operand,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """MatMul of opset1. The products of matrices, their leading axes broadcast.

        A vector is a row on the left and a column on the right, whatever the flags are, and its axis
        is removed from the result. Source: MatMul-1.

        Args:
            a: a numeric type, rank 1 or more.
            b: a numeric type, rank 1 or more.
        """

    @staticmethod
    def max_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        rounding_type: Literal["floor", "ceil"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """MaxPool of opset1. The maximum of each window; of a window beside the data the lowest finite value of the
        type.

        The specification says that padding is -inf, and nothing of windows in which there is nothing else.
        OpenVINO's reference (openvino/reference/max_pool.hpp) begins at ``numeric_limits<T>::lowest()``; its CPU
        plugin gives that of f32 and bf16, too. In f16 and f64 the plugin has the lowest f32, and constant folding
        computes f16 and bf16 in f32: cast back, both are -inf (2026.4). Source: MaxPool-1.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def maximum(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Maximum of opset1. max(a, b). Source: Maximum-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def minimum(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Minimum of opset1. min(a, b). Source: Minimum-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def mod(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Mod of opset1. The remainder of a / b, with the sign of a. Source: Mod-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def multiply(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Multiply of opset1. a * b; integers wrap. Source: Multiply-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def negative(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Negative of opset1. The negated value. Source: Negative-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None,
        score_threshold: Operand | None = None,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NonMaxSuppression of opset1. The boxes that overlap no better box of their class by more than
        ``iou_threshold``: rows (batch, class, box) [n, 3].

        ``boxes`` are [batches, boxes, 4] and ``scores`` [batches, classes, boxes]. There are as many rows as boxes
        selected, as when OpenVINO runs it; its shape inference and the specification have a static shape, padded
        with -1 (and, before version 4, too small for more than one batch). A box is a candidate if its score is
        above the threshold (implementations; the specification's prose says: not below), and is dropped if an
        overlap is above ``iou_threshold`` (specification and reference; the CPU plugin: or equal, so that at 0 it
        keeps one box of each class). A negative maximum does not limit. Source: NonMaxSuppression-1.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0.
            iou_threshold: a floating-point type, rank 0.
            score_threshold: a floating-point type, rank 0.
        """

    @staticmethod
    def normalize_l2(
        data: Operand,
        axes: Operand,
        *,
        eps: float,
        eps_mode: Literal["add", "max"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NormalizeL2 of opset1. x / sqrt(sum of squares along ``axes`` + eps), or max(sum, eps) instead of sum + eps
        if eps_mode is max.

        For empty ``axes`` the result is 1 for every element but 0, whatever its sign.
        Source: NormalizeL2-1 and openvino ``reference/normalize_l2.hpp``.

        Args:
            data: a floating-point type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def not_equal(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NotEqual of opset1. Whether a differs from b. Source: NotEqual-1.

        Args:
            a: any element type.
            b: any element type.
        """

    @staticmethod
    def one_hot(
        indices: Operand,
        depth: Operand,
        on_value: Operand,
        off_value: Operand,
        *,
        axis: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """OneHot of opset1. on_value at the position of the index along the new axis, off_value elsewhere; negative
        indices are ignored.

        Source: OneHot-1.

        Args:
            indices: an integer type.
            depth: an integer type, rank 0.
            on_value: any element type, rank 0.
            off_value: any element type, rank 0.
        """

    @staticmethod
    def prelu(data: Operand, slope: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """PRelu of opset1. x where it is positive, slope * x elsewhere.

        A slope of rank 1 with one element per channel lies along axis 1; any other is broadcast to the data as NumPy
        does. The slope of floating-point data may have another floating-point type, as Model Optimizer wrote it.
        Source: PRelu-1 and openvino ``reference/prelu.hpp``.

        Args:
            data: a numeric type.
            slope: a numeric type.
        """

    @staticmethod
    def psroi_pooling(
        data: Operand,
        rois: Operand,
        *,
        output_dim: int,
        spatial_scale: float,
        group_size: int = 1,
        spatial_bins_x: int = 1,
        spatial_bins_y: int = 1,
        mode: Literal["average", "bilinear"] = "average",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """PSROIPooling of opset1. Each bin of each box (image, x1, y1, x2, y2) pooled from channels of its own: [R,
        output_dim, group_size, group_size].

        average: the mean of all pixels that a bin touches, from channel (output * group_size + row) * group_size +
        column. bilinear: the mean over the spatial bins, into which the box, relative to the size of the image, is
        divided, of an interpolated point, from channel bin * output_dim + output. As in the CPU plugin, points
        outside the image do not count (the reference moves them to the last pixel), a box is at least a tenth of a
        pixel wide and high, and image -1 ends the boxes: it and all that follow give 0. Source: PSROIPooling-1.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
        """

    @staticmethod
    def pad(
        data: Operand,
        pads_begin: Operand,
        pads_end: Operand,
        pad_value: Operand | None = None,
        *,
        pad_mode: Literal["constant", "edge", "reflect", "symmetric"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Pad of opset1. ``data`` padded by a constant, by its edge elements, or by its reflection. Source: Pad-1.

        Args:
            data: any element type.
            pads_begin: an integer type, rank 1.
            pads_end: an integer type, rank 1.
            pad_value: any element type, rank 0.
        """

    @staticmethod
    def power(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Power of opset1. a to the power of b. Source: Power-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def prior_box(
        output_size: Operand,
        image_size: Operand,
        *,
        offset: float,
        min_size: Sequence[float] = (),
        max_size: Sequence[float] = (),
        aspect_ratio: Sequence[float] = (),
        flip: bool = False,
        clip: bool = False,
        step: float = 0.0,
        variance: Sequence[float] = (),
        scale_all_sizes: bool = True,
        fixed_ratio: Sequence[float] = (),
        fixed_size: Sequence[float] = (),
        density: Sequence[float] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """PriorBox of opset1. Boxes in every cell of a grid, and their variances: f32 [2, 4 * height * width * boxes of
        a cell].

        As PriorBox-8 with ``min_max_aspect_ratios_order``. Source: PriorBox-1.

        Args:
            output_size: an integer type, rank 1.
            image_size: an integer type, rank 1.
        """

    @staticmethod
    def prior_box_clustered(
        output_size: Operand,
        image_size: Operand,
        *,
        offset: float,
        width: Sequence[float] = (1.0,),
        height: Sequence[float] = (1.0,),
        clip: bool = True,
        step: float = 0.0,
        step_w: float = 0.0,
        step_h: float = 0.0,
        variance: Sequence[float] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """PriorBoxClustered of opset1. Boxes of given widths and heights in every cell of a grid, and their variances:
        f32 [2, 4 * rows * columns * boxes].

        A step of 0 along an axis is ``step``; if then both are 0, the cells cover the image. All is in f32. Source:
        PriorBoxClustered-1; OpenVINO's reader takes absent sizes for none, the specification for 1, and it wants the
        image's size.

        Args:
            output_size: an integer type, rank 1.
            image_size: an integer type, rank 1.
        """

    @staticmethod
    def proposal(
        class_probs: Operand,
        bbox_deltas: Operand,
        image_shape: Operand,
        *,
        base_size: int,
        pre_nms_topn: int,
        post_nms_topn: int,
        nms_thresh: float,
        feat_stride: int,
        min_size: int,
        ratio: Sequence[float],
        scale: Sequence[float],
        clip_before_nms: bool = True,
        clip_after_nms: bool = False,
        normalize: bool = False,
        box_size_scale: float = 1.0,
        box_coordinate_scale: float = 1.0,
        framework: Literal["", "tensorflow"] = "",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Proposal of opset1. The boxes most likely to contain an object: anchors of each point, moved by deltas,
        without overlaps.

        ``class_probs`` are (N, 2 * K, H, W), of which the second half are those of the foreground, ``bbox_deltas``
        (N, 4 * K, H, W), ``image_shape`` is height, width and one or two scales. Gives rows of the image's index and
        the box (N * post_nms_topn, 5). A box smaller than ``min_size`` is not removed but has score 0; the first row
        after an image's boxes starts with -1, the others are zeros. With "tensorflow" anchors are centred at the
        points and clipped first, have no pixel added, and x is the vertical axis. Source: Proposal-1, and the CPU
        plugin where that is silent. for_deformable of old models has no effect there.

        Args:
            class_probs: a floating-point type, rank 4.
            bbox_deltas: a floating-point type, rank 4.
            image_shape: a floating-point type, rank 1.
        """

    @staticmethod
    def rnn_cell(
        x: Operand,
        initial_hidden_state: Operand,
        w: Operand,
        r: Operand,
        b: Operand | None = None,
        *,
        hidden_size: int,
        activations: Sequence[str] = ("tanh",),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RNNCell of opset1. One step of a recurrent network without gates: the hidden state [B, S]. Source: RNNCell-1.

        Args:
            x: a floating-point type, rank 2.
            initial_hidden_state: a floating-point type, rank 2.
            w: a floating-point type, rank 2.
            r: a floating-point type, rank 2.
            b: a floating-point type, rank 1.
        """

    @staticmethod
    def range(
        start: Operand,
        stop: Operand,
        step: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Range of opset1. start, start + step, ... before stop. Source: Range-1.

        Args:
            start: a numeric type, rank 0.
            stop: a numeric type, rank 0.
            step: a numeric type, rank 0.
        """

    @staticmethod
    def reduce_logical_and(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceLogicalAnd of opset1. Whether all are true. Source: ReduceLogicalAnd-1.

        Args:
            data: boolean.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_logical_or(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceLogicalOr of opset1. Whether any is true. Source: ReduceLogicalOr-1.

        Args:
            data: boolean.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_max(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceMax of opset1. The maximum, NaN only where all elements are NaN; for no elements the lowest value of
        the type. Source: ReduceMax-1.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_mean(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceMean of opset1. The mean; 0 for no elements, as in OpenVINO. Source: ReduceMean-1.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_min(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceMin of opset1. The minimum, NaN only where all elements are NaN; for no elements the highest value of
        the type. Source: ReduceMin-1.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_prod(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceProd of opset1. The product; integers wrap. Source: ReduceProd-1.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_sum(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceSum of opset1. The sum; integers wrap. Source: ReduceSum-1.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def region_yolo(
        data: Operand,
        *,
        axis: int,
        coords: int,
        classes: int,
        end_axis: int,
        num: int,
        anchors: Sequence[float] = (),
        do_softmax: bool = True,
        mask: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RegionYolo of opset1. Activations of data [N, C, H, W] in regions of coords + 1 + classes channels: sigmoid
        of the first two and of the score after coords.

        With ``do_softmax`` (YOLO v2) there are ``num`` regions, softmax is applied to the classes of a region, and
        axes ``axis`` to ``end_axis`` of the result are flattened. Without (YOLO v3) there is a region for each value
        of ``mask``, whatever the values are, and sigmoid is applied to the classes too. With fewer than two coords
        sigmoid is applied twice to a channel, as in the reference. Channels after the regions are unchanged with
        ``do_softmax``, and left out without; OpenVINO then mixes up the images of a batch. Source: RegionYolo-1;
        OpenVINO's reader takes an absent ``do_softmax`` for false, the specification for true.

        Args:
            data: a floating-point type, rank 4.
        """

    @staticmethod
    def relu(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Relu of opset1. max(x, 0). Source: Relu-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def reshape(
        data: Operand,
        shape: Operand,
        *,
        special_zero: bool,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Reshape of opset1. ``data`` in another shape: -1 is the size that the number of elements gives, with
        ``special_zero`` 0 keeps the size of ``data``.

        Beside a 0 that is not copied, -1 is known only for data with a size of 0: OpenVINO refuses it unless such a
        size is known. Source: Reshape-1 and openvino ``reshape_shape_inference.hpp``.

        Args:
            data: any element type.
            shape: an integer type, rank 1.
        """

    @staticmethod
    def reverse(
        data: Operand,
        axes: Operand,
        *,
        mode: Literal["index", "mask"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Reverse of opset1. ``data`` reversed along the given axes; in mode mask ``axes`` has one boolean for each
        axis. Source: Reverse-1.

        Args:
            data: any element type.
            axes: an integer type or boolean, rank 1.
        """

    @staticmethod
    def reverse_sequence(
        data: Operand,
        seq_lengths: Operand,
        *,
        batch_axis: int = 0,
        seq_axis: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReverseSequence of opset1. The first ``seq_lengths[index]`` elements along ``seq_axis`` reversed, at each
        index along ``batch_axis``.

        Source: ReverseSequence-1.

        Args:
            data: any element type, rank 2 or more.
            seq_lengths: a numeric type, rank 1.
        """

    @staticmethod
    def select(
        cond: Operand,
        then: Operand,
        else_: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Select of opset1. ``then`` where ``cond`` is true, ``else`` elsewhere.

        With pdpd ``cond`` and ``else`` are broadcast to ``then``, from ``auto_broadcast_axis`` on. Source: Select-1.

        Args:
            cond: boolean.
            then: any element type.
            else_: any element type.
        """

    @staticmethod
    def selu(
        data: Operand,
        alpha: Operand,
        lambda_: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Selu of opset1. lambda * (x where it is positive, alpha * (exp(x) - 1) elsewhere). Source: Selu-1.

        Args:
            data: a floating-point type.
            alpha: a floating-point type, rank 0, or 1 with a single element.
            lambda_: a floating-point type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def shape_of(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """ShapeOf of opset1. The sizes of ``data`` as i64. Source: ShapeOf-1.

        Args:
            data: any element type.
        """

    @staticmethod
    def shuffle_channels(
        data: Operand,
        *,
        axis: int = 1,
        group: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ShuffleChannels of opset1. The axis reshaped to (group, size / group) and transposed. Source:
        ShuffleChannels-1.

        Args:
            data: any element type, rank 1 or more.
        """

    @staticmethod
    def sigmoid(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Sigmoid of opset1. 1 / (1 + exp(-x)). Source: Sigmoid-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def sign(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Sign of opset1. -1, 0 or 1; NaN for NaN. Source: Sign-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def sin(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Sin of opset1. The sine, in radians. Source: Sin-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def sinh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Sinh of opset1. The hyperbolic sine. Source: Sinh-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def softmax(data: Operand, *, axis: int = 1, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Softmax of opset1. exp(x) / sum(exp(x)) along ``axis``. Source: Softmax-1.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def space_to_depth(
        data: Operand,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SpaceToDepth of opset1. Blocks of spatial positions moved to channels, for any number of spatial axes.
        Source: SpaceToDepth-1.

        Args:
            data: any element type, rank 3 or more.
        """

    @staticmethod
    def split(
        data: Operand,
        axis: Operand,
        *,
        num_splits: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """Split of opset1. ``num_splits`` equal parts along ``axis``. Source: Split-1.

        Args:
            data: any element type, rank 1 or more.
            axis: an integer type, rank 0.
        """

    @staticmethod
    def sqrt(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Sqrt of opset1. The square root. Source: Sqrt-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def squared_difference(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SquaredDifference of opset1. (a - b) squared; integers wrap. Source: SquaredDifference-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def squeeze(
        data: Operand,
        axes: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Squeeze of opset1. ``data`` without the given axes of size 1, or without all of them; given axes of another
        size are kept.

        A size that is not known is assumed to be 1 if it may be. Source: Squeeze-1, since OpenVINO 2024.3 (an error
        before).

        Args:
            data: any element type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def strided_slice(
        data: Operand,
        begin: Operand,
        end: Operand,
        strides: Operand | None = None,
        *,
        begin_mask: Sequence[int],
        end_mask: Sequence[int],
        new_axis_mask: Sequence[int] = (),
        shrink_axis_mask: Sequence[int] = (),
        ellipsis_mask: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StridedSlice of opset1. Slices, new axes, single indices and an ellipsis, axis by axis.

        A set bit of ``begin_mask`` or ``end_mask`` ignores that bound, but not of a single index. Where several bits
        of one entry are set, the ellipsis has precedence over the new axis, and that over the index. Source:
        StridedSlice-1, and OpenVINO for bounds beyond the axis (see ``_slice``).

        Args:
            data: any element type.
            begin: an integer type, rank 1.
            end: an integer type, rank 1.
            strides: an integer type, rank 1.
        """

    @staticmethod
    def subtract(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Subtract of opset1. a - b; integers wrap. Source: Subtract-1.

        Args:
            a: a numeric type.
            b: a numeric type.
        """

    @staticmethod
    def tan(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Tan of opset1. The tangent, in radians. Source: Tan-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def tanh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Tanh of opset1. The hyperbolic tangent. Source: Tanh-1.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def tile(data: Operand, repeats: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Tile of opset1. ``data`` repeated along its axes; ones are prepended to the shorter of shape and repeats.
        Source: Tile-1.

        Args:
            data: any element type.
            repeats: an integer type, rank 1.
        """

    @staticmethod
    def topk(
        data: Operand,
        k: Operand,
        *,
        axis: int,
        mode: Literal["max", "min"],
        sort: Literal["value", "index", "none"],
        index_element_type: Literal["i64", "i32"] = "i32",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """TopK of opset1. The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-1.

        Args:
            data: any element type but string, rank 1 or more.
            k: i8, i32 or i64, rank 0.
        """

    @staticmethod
    def transpose(data: Operand, order: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Transpose of opset1. ``data`` with its axes permuted; reversed if ``order`` is empty. Source: Transpose-1.

        Args:
            data: any element type.
            order: an integer type, rank 1.
        """

    @staticmethod
    def unsqueeze(data: Operand, axes: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Unsqueeze of opset1. ``data`` with new axes of size 1 at the given positions of the result. Source:
        Unsqueeze-1.

        Args:
            data: any element type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def variadic_split(
        data: Operand,
        axis: Operand,
        split_lengths: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """VariadicSplit of opset1. Parts of the given lengths along ``axis``; -1 stands for the rest. Source:
        VariadicSplit-1.

        Args:
            data: any element type, rank 1 or more.
            axis: an integer type, rank 0, or 1 with a single element.
            split_lengths: an integer type, rank 1.
        """

    @staticmethod
    def xor(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Xor of opset1. Whether exactly one of a and b is true. Source: Xor-1.

        Args:
            a: boolean.
            b: boolean.
        """

class Opset2(Opset1):
    """The operations of opset 2."""

    @staticmethod
    def batch_to_space(
        data: Operand,
        block_shape: Operand,
        crops_begin: Operand,
        crops_end: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BatchToSpace of opset2. Blocks of the batch laid out along every other axis, and cropped: SpaceToBatch
        undone. Source: BatchToSpace-2.

        Args:
            data: any element type but string, rank 2 or more.
            block_shape: an integer type, rank 1.
            crops_begin: an integer type, rank 1.
            crops_end: an integer type, rank 1.
        """

    @staticmethod
    def gelu(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Gelu of opset2. x * (1 + erf(x / sqrt(2))) / 2. Source: Gelu-2.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def mvn(
        data: Operand,
        *,
        eps: float,
        across_channels: bool = False,
        normalize_variance: bool = True,
        reduction_axes: Sequence[int] | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """MVN of opset2. (x - mean) / sqrt(variance + eps) over the spatial axes, and the channels if
        ``across_channels``.

        Source: MVN-1 of the specification, first in opset 2; ``mvn_2_axes`` for the reduction_axes that OpenVINO
        writes.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def roi_pooling(
        data: Operand,
        rois: Operand,
        *,
        pooled_h: int,
        pooled_w: int,
        spatial_scale: float,
        method: Literal["max", "bilinear"] = "max",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ROIPooling of opset2. The maximum pixel of each bin of each box (image, x1, y1, x2, y2), or with ``bilinear``
        one interpolated point of it.

        ``data`` is [N, C, H, W], ``rois`` [R, 5]; gives [R, C, pooled_h, pooled_w]. With max a box consists of whole
        pixels, its last ones included; with bilinear it is relative to the size of the image, from 0 to 1, and
        ``spatial_scale`` has no effect. The CPU plugin takes image -1 as the end of the boxes: it and all that
        follow give 0. Source: ROIPooling-1, in IR of opset2.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
        """

    @staticmethod
    def reorg_yolo(
        data: Operand,
        *,
        stride: Sequence[int],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReorgYolo of opset2. Data [N, C, H, W] rearranged to [N, C * stride * stride, H / stride, W / stride].

        Each image is read as if it were [C', H * stride, W * stride], C' = C // (stride * stride), and element (c',
        h * stride + i, w * stride + j) is written to ((i * stride + j) * C' + c', h, w) of an image [C, H, W].
        Therefore the result differs from that of SpaceToDepth. Where C is not a multiple of stride * stride, the
        same offsets are read from the whole batch, as in the reference. Source: ReorgYolo-1 of the specification,
        first in opset 2; of a list of strides the first counts, as in OpenVINO.

        Args:
            data: any element type but string, rank 4.
        """

    @staticmethod
    def space_to_batch(
        data: Operand,
        block_shape: Operand,
        pads_begin: Operand,
        pads_end: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SpaceToBatch of opset2. ``data``, padded by zeros, with blocks of every axis but the first moved into the
        batch.

        ``block_shape`` and the pads have one value for each axis; those of the batch are 1 and 0.
        Source: SpaceToBatch-2.

        Args:
            data: any element type but string, rank 2 or more.
            block_shape: an integer type, rank 1.
            pads_begin: an integer type, rank 1.
            pads_end: an integer type, rank 1.
        """

class Opset3(Opset2):
    """The operations of opset 3."""

    @staticmethod
    def assign(new_value: Operand, *, variable_id: str, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Assign of opset3. Sets the variable to ``new_value``, which is also the result. Source: Assign-3.

        Args:
            new_value: any element type.
        """

    @staticmethod
    def broadcast(
        data: Operand,
        target_shape: Operand,
        axes_mapping: Operand | None = None,
        *,
        mode: Literal["numpy", "explicit", "bidirectional"] = "numpy",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Broadcast of opset3. ``data`` repeated to ``target_shape``; bidirectional broadcasts each to the other.

        Source: Broadcast-3.

        Args:
            data: any element type.
            target_shape: an integer type, rank 1.
            axes_mapping: an integer type, rank 1.
        """

    @staticmethod
    def bucketize(
        data: Operand,
        buckets: Operand,
        *,
        output_type: Literal["i64", "i32"] = "i64",
        with_right_bound: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Bucketize of opset3. The number of boundaries below each value; with ``with_right_bound`` a bucket includes
        its upper boundary, else its lower one.

        NaN is in the first bucket with the right bound, and in the last without. Source: Bucketize-3.

        Args:
            data: any element type but string.
            buckets: any element type but string, rank 1.
        """

    @staticmethod
    def cum_sum(
        data: Operand,
        axis: Operand | None = None,
        *,
        exclusive: bool = False,
        reverse: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """CumSum of opset3. Cumulative sums along ``axis`` (default 0), without the element itself if ``exclusive``,
        from the last one if ``reverse``.

        Source: CumSum-3.

        Args:
            data: a numeric type.
            axis: i32 or i64, rank 0, or 1 with a single element.
        """

    @staticmethod
    def embedding_bag_offsets_sum(
        emb_table: Operand,
        indices: Operand,
        offsets: Operand,
        default_index: Operand | None = None,
        per_sample_weights: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EmbeddingBagOffsetsSum of opset3. The sum of the rows of ``emb_table`` at the ``indices`` of each bag, each
        times its weight.

        A bag is the indices from its offset to the next. An empty one has the row ``default_index``; zeros if it is
        -1 or not given. Source: EmbeddingBagOffsetsSum-3.

        Args:
            emb_table: a numeric type, rank 1 or more.
            indices: an integer type, rank 1.
            offsets: an integer type, rank 1.
            default_index: an integer type, rank 0.
            per_sample_weights: a numeric type, rank 1.
        """

    @staticmethod
    def embedding_bag_packed_sum(
        emb_table: Operand,
        indices: Operand,
        per_sample_weights: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EmbeddingBagPackedSum of opset3. The sum of the rows of ``emb_table`` at each row of ``indices`` [bags,
        rows], each times its weight.

        Source: EmbeddingBagPackedSum-3.

        Args:
            emb_table: a numeric type, rank 1 or more.
            indices: i32 or i64, rank 2.
            per_sample_weights: a numeric type, rank 2.
        """

    @staticmethod
    def embedding_segments_sum(
        emb_table: Operand,
        indices: Operand,
        segment_ids: Operand,
        num_segments: Operand,
        default_index: Operand | None = None,
        per_sample_weights: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EmbeddingSegmentsSum of opset3. The sum of the rows of ``emb_table`` at the ``indices`` of each segment, each
        times its weight.

        An empty segment has the row ``default_index``; zeros if it is -1 or not given. Ids of num_segments and above
        are ignored, as in OpenVINO. Source: EmbeddingSegmentsSum-3.

        Args:
            emb_table: a numeric type, rank 1 or more.
            indices: i32 or i64, rank 1.
            segment_ids: i32 or i64, rank 1.
            num_segments: i32 or i64, rank 0.
            default_index: i32 or i64, rank 0.
            per_sample_weights: a numeric type, rank 1.
        """

    @staticmethod
    def extract_image_patches(
        data: Operand,
        *,
        sizes: Sequence[int],
        strides: Sequence[int],
        rates: Sequence[int],
        auto_pad: Literal["valid", "same_upper", "same_lower"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ExtractImagePatches of opset3. Patches of images [N, C, Y, X], laid into the channels: [N, rows * columns *
        C, Y, X], channels fastest.

        Source: ExtractImagePatches-3.

        Args:
            data: any element type but string, rank 4.
        """

    @staticmethod
    def gru_cell(
        x: Operand,
        initial_hidden_state: Operand,
        w: Operand,
        r: Operand,
        b: Operand | None = None,
        *,
        hidden_size: int,
        activations: Sequence[str] = ("sigmoid", "tanh"),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        linear_before_reset: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GRUCell of opset3. One step of a GRU: the hidden state [B, S]. Source: GRUCell-3.

        Args:
            x: a floating-point type, rank 2.
            initial_hidden_state: a floating-point type, rank 2.
            w: a floating-point type, rank 2.
            r: a floating-point type, rank 2.
            b: a floating-point type, rank 1.
        """

    @staticmethod
    def non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None,
        score_threshold: Operand | None = None,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NonMaxSuppression of opset3. NonMaxSuppression-1 with a choice of the element type of the indices. Source:
        NonMaxSuppression-3 and -4.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0.
            iou_threshold: a floating-point type, rank 0.
            score_threshold: a floating-point type, rank 0.
        """

    @staticmethod
    def non_zero(
        data: Operand,
        *,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NonZero of opset3. The indices of the values that are not 0, one column each, in row-major order: [rank, n].

        A scalar counts as a vector of one value, but a scalar 0 gives no row either, as in openvino
        ``reference/non_zero.hpp`` (the plugin gives one). Source: NonZero-3.

        Args:
            data: any element type but string.
        """

    @staticmethod
    def roi_align(
        data: Operand,
        rois: Operand,
        batch_indices: Operand,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        mode: Literal["avg", "max"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ROIAlign of opset3. The mean or maximum of points interpolated in each bin of each box (x1, y1, x2, y2),
        which is at least one pixel wide and high.

        ``data`` is [N, C, H, W], ``rois`` [R, 4]; gives [R, C, pooled_h, pooled_w]. The maximum is never below 0, in
        the reference and in the CPU plugin. Source: ROIAlign-3.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
            batch_indices: an integer type, rank 1.
        """

    @staticmethod
    def read_value(
        init_value: Operand,
        *,
        variable_id: str,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReadValue of opset3. The variable's value; ``init_value`` before anything was assigned in this session.

        ``init_value`` may have another shape in each run; a value assigned under another shape is refused. Source:
        ReadValue-3 and Assign-3, where a variable has the shape of ``init_value``.

        Args:
            init_value: any element type.
        """

    @staticmethod
    def scatter_elements_update(
        data: Operand,
        indices: Operand,
        updates: Operand,
        axis: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScatterElementsUpdate of opset3. ``data`` with each element of ``updates`` at its own position, but at the
        given index along ``axis``.

        ``indices`` and ``updates`` have the same shape, of the rank of ``data``; negative indices are counted from
        the end. Source: ScatterElementsUpdate-3.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type, rank 1 or more.
            updates: any element type, rank 1 or more.
            axis: an integer type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def scatter_update(
        data: Operand,
        indices: Operand,
        updates: Operand,
        axis: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScatterUpdate of opset3. ``data`` with the slices at ``indices`` along ``axis`` replaced; negative indices
        are out of range.

        ``updates`` have the shape of ``data`` with ``axis`` replaced by the shape of ``indices``. Source:
        ScatterUpdate-3.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type.
            updates: any element type.
            axis: an integer type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def shape_of(
        data: Operand,
        *,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ShapeOf of opset3. The sizes of ``data``. Source: ShapeOf-3.

        Args:
            data: any element type.
        """

    @staticmethod
    def topk(
        data: Operand,
        k: Operand,
        *,
        axis: int,
        mode: Literal["max", "min"],
        sort: Literal["value", "index", "none"],
        index_element_type: Literal["i64", "i32"] = "i32",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """TopK of opset3. The ``k`` largest or smallest values along ``axis`` and their indices. Source: TopK-3.

        Args:
            data: any element type but string, rank 1 or more.
            k: an integer type, rank 0.
        """

class Opset4(Opset3):
    """The operations of opset 4."""

    @staticmethod
    def acosh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Acosh of opset4. The inverse hyperbolic cosine. Source: Acosh-4.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def asinh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Asinh of opset4. The inverse hyperbolic sine. Source: Asinh-4.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def atanh(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Atanh of opset4. The inverse hyperbolic tangent. Source: Atanh-4.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def ctc_loss(
        logits: Operand,
        logit_length: Operand,
        labels: Operand,
        label_length: Operand,
        blank_index: Operand | None = None,
        *,
        preprocess_collapse_repeated: bool = False,
        ctc_merge_repeated: bool = True,
        unique: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """CTCLoss of opset4. Minus the logarithm of the probability that the logits read as the labels, (batch, steps,
        classes) to (batch).

        Where no path does, it is infinite. ``unique`` keeps the first of equal labels,
        ``preprocess_collapse_repeated`` one of consecutive equal ones. Source: CTCLoss-4.

        Args:
            logits: a floating-point type, rank 3.
            logit_length: an integer type, rank 1.
            labels: an integer type, rank 2.
            label_length: an integer type, rank 1.
            blank_index: an integer type, rank 0.
        """

    @staticmethod
    def hswish(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """HSwish of opset4. x * min(max(x + 3, 0), 6) / 6. Source: HSwish-4.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def interpolate(
        data: Operand,
        output_shape: Operand,
        scales: Operand,
        axes: Operand | None = None,
        *,
        mode: Literal["nearest", "linear", "linear_onnx", "cubic"],
        shape_calculation_mode: Literal["sizes", "scales"],
        antialias: bool = False,
        pads_begin: Sequence[int] = (),
        pads_end: Sequence[int] = (),
        coordinate_transformation_mode: Literal[
            "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"
        ] = "half_pixel",
        nearest_mode: Literal[
            "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"
        ] = "round_prefer_floor",
        cube_coeff: float = -0.75,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Interpolate of opset4. ``data`` resized along ``axes`` (all unless given), to sizes or by scales. Source:
        Interpolate-4.

        Args:
            data: a floating-point type, i8, i32, i64 or u8.
            output_shape: i32, i64, u32 or u64, rank 1.
            scales: f32, f16 or bf16, rank 1.
            axes: i32, i64, u32 or u64, rank 1.
        """

    @staticmethod
    def lstm_cell(
        x: Operand,
        initial_hidden_state: Operand,
        initial_cell_state: Operand,
        w: Operand,
        r: Operand,
        b: Operand | None = None,
        *,
        hidden_size: int,
        activations: Sequence[str] = ("sigmoid", "tanh", "tanh"),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """LSTMCell of opset4. One step of an LSTM: the hidden state and the cell state, [B, S] each. Source:
        LSTMCell-4.

        Args:
            x: a floating-point type, rank 2.
            initial_hidden_state: a floating-point type, rank 2.
            initial_cell_state: a floating-point type, rank 2.
            w: a floating-point type, rank 2.
            r: a floating-point type, rank 2.
            b: a floating-point type, rank 1.
        """

    @staticmethod
    def mish(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Mish of opset4. x * tanh(log(1 + exp(x))). Source: Mish-4.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None,
        score_threshold: Operand | None = None,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NonMaxSuppression of opset4. NonMaxSuppression-1 with a choice of the element type of the indices. Source:
        NonMaxSuppression-3 and -4.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0.
            iou_threshold: a floating-point type, rank 0.
            score_threshold: a floating-point type, rank 0.
        """

    @staticmethod
    def proposal(
        class_probs: Operand,
        bbox_deltas: Operand,
        image_shape: Operand,
        *,
        base_size: int,
        pre_nms_topn: int,
        post_nms_topn: int,
        nms_thresh: float,
        feat_stride: int,
        min_size: int,
        ratio: Sequence[float],
        scale: Sequence[float],
        clip_before_nms: bool = True,
        clip_after_nms: bool = False,
        normalize: bool = False,
        box_size_scale: float = 1.0,
        box_coordinate_scale: float = 1.0,
        framework: Literal["", "tensorflow"] = "",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """Proposal of opset4. Same as Proposal-1, and the scores of the boxes, 0 where there is no box. Source:
        Proposal-4.

        Args:
            class_probs: a floating-point type, rank 4.
            bbox_deltas: a floating-point type, rank 4.
            image_shape: a floating-point type, rank 1.
        """

    @staticmethod
    def range(
        start: Operand,
        stop: Operand,
        step: Operand,
        *,
        output_type: ElementLike,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Range of opset4. start, start + step, ... before stop, as ``output_type``; for an integer type the inputs are
        truncated first.

        Source: Range-4.

        Args:
            start: a numeric type, rank 0.
            stop: a numeric type, rank 0.
            step: a numeric type, rank 0.
        """

    @staticmethod
    def reduce_l1(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceL1 of opset4. The sum of absolute values. Source: ReduceL1-4.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def reduce_l2(
        data: Operand,
        axes: Operand,
        *,
        keep_dims: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReduceL2 of opset4. The square root of the sum of squares. Source: ReduceL2-4.

        Args:
            data: a numeric type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def scatter_nd_update(
        data: Operand,
        indices: Operand,
        updates: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScatterNDUpdate of opset4. ``data`` with the slices at the positions in the last axis of ``indices``
        replaced.

        ``updates`` have the shape of ``indices`` without its last axis, then that of the slices. Negative
        indices are counted from the end. Source: ScatterNDUpdate-3 (opset4).

        Args:
            data: any element type, rank 1 or more.
            indices: i32 or i64, rank 1 or more.
            updates: any element type.
        """

    @staticmethod
    def softplus(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """SoftPlus of opset4. log(1 + exp(x)). Source: SoftPlus-4.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def swish(
        data: Operand,
        beta: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Swish of opset4. x / (1 + exp(-beta * x)), beta is 1 by default. Source: Swish-4.

        Args:
            data: a floating-point type.
            beta: a floating-point type, rank 0.
        """

class Opset5(Opset4):
    """The operations of opset 5."""

    @staticmethod
    def batch_norm_inference(
        data: Operand,
        gamma: Operand,
        beta: Operand,
        mean: Operand,
        variance: Operand,
        *,
        epsilon: float,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BatchNormInference of opset5. gamma * (data - mean) / sqrt(variance + epsilon) + beta, channel by channel.
        Source: BatchNormInference-5.

        Args:
            data: a floating-point type, rank 2 or more.
            gamma: a floating-point type, rank 1.
            beta: a floating-point type, rank 1.
            mean: a floating-point type, rank 1.
            variance: a floating-point type, rank 1.
        """

    @staticmethod
    def gru_sequence(
        x: Operand,
        initial_hidden_state: Operand,
        sequence_lengths: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ("sigmoid", "tanh"),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        linear_before_reset: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """GRUSequence of opset5. A GRU over X [B, T, I], each sequence of its own length: Y [B, D, T, S] and the final
        state. Source: GRUSequence-5.

        Args:
            x: a floating-point type, rank 3.
            initial_hidden_state: a floating-point type, rank 3.
            sequence_lengths: an integer type, rank 1.
            w: a floating-point type, rank 3.
            r: a floating-point type, rank 3.
            b: a floating-point type, rank 2.
        """

    @staticmethod
    def gather_nd(
        data: Operand,
        indices: Operand,
        *,
        batch_dims: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GatherND of opset5. Slices at the positions in the last axis of ``indices``; the batch axes are merged into
        one.

        An index out of range is an error. Source: GatherND-5.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type, rank 1 or more.
        """

    @staticmethod
    def hsigmoid(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """HSigmoid of opset5. min(max(x + 3, 0), 6) / 6. Source: HSigmoid-5.

        Args:
            data: a numeric type.
        """

    @staticmethod
    def lstm_sequence(
        x: Operand,
        initial_hidden_state: Operand,
        initial_cell_state: Operand,
        sequence_lengths: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ("sigmoid", "tanh", "tanh"),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """LSTMSequence of opset5. An LSTM over X [B, T, I], each sequence of its own length: Y [B, D, T, S] and both
        final states. Source: LSTMSequence-5.

        Args:
            x: a floating-point type, rank 3.
            initial_hidden_state: a floating-point type, rank 3.
            initial_cell_state: a floating-point type, rank 3.
            sequence_lengths: an integer type, rank 1.
            w: a floating-point type, rank 3.
            r: a floating-point type, rank 3.
            b: a floating-point type, rank 2.
        """

    @staticmethod
    def log_softmax(data: Operand, *, axis: int = 1, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """LogSoftmax of opset5. The logarithm of Softmax along ``axis``. Source: LogSoftmax-5.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None,
        score_threshold: Operand | None = None,
        soft_nms_sigma: Operand | None = None,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """NonMaxSuppression of opset5. NonMaxSuppression-1 that also gives rows (batch, class, score) of f32 [n, 3],
        and the number of rows [1].

        With a positive ``soft_nms_sigma`` an overlap lowers scores by exp(-0.5 IoU² / sigma) and ``iou_threshold``
        has no effect. Source: NonMaxSuppression-5 and -9; OpenVINO runs version 5 as version 9 (the older reference
        also applies the threshold).

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0, or 1 with a single element.
            iou_threshold: a floating-point type, rank 0, or 1 with a single element.
            score_threshold: a floating-point type, rank 0, or 1 with a single element.
            soft_nms_sigma: a floating-point type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def rnn_sequence(
        x: Operand,
        initial_hidden_state: Operand,
        sequence_lengths: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: Sequence[str] = ("tanh",),
        activations_alpha: Sequence[float] = (),
        activations_beta: Sequence[float] = (),
        clip: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """RNNSequence of opset5. A recurrent network without gates over X [B, T, I], each sequence of its own length: Y
        [B, D, T, S] and the final state.

        Source: RNNSequence-5.

        Args:
            x: a floating-point type, rank 3.
            initial_hidden_state: a floating-point type, rank 3.
            sequence_lengths: an integer type, rank 1.
            w: a floating-point type, rank 3.
            r: a floating-point type, rank 3.
            b: a floating-point type, rank 2.
        """

    @staticmethod
    def round(
        data: Operand,
        *,
        mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Round of opset5. The nearest integer; halves are rounded to the even one or away from zero. Source: Round-5.

        Args:
            data: a numeric type.
        """

class Opset6(Opset5):
    """The operations of opset 6."""

    @staticmethod
    def assign(new_value: Operand, *, variable_id: str, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Assign of opset6. Sets the variable to ``new_value``, which is also the result. Source: Assign-6.

        Args:
            new_value: any element type.
        """

    @staticmethod
    def ctc_greedy_decoder_seq_len(
        data: Operand,
        sequence_length: Operand,
        blank_index: Operand | None = None,
        *,
        merge_repeated: bool = True,
        classes_index_type: Literal["i32", "i64"] = "i32",
        sequence_length_type: Literal["i32", "i64"] = "i32",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """CTCGreedyDecoderSeqLen of opset6. The most probable class of each step without blanks, (batch, steps,
        classes) to (batch, steps), and their number (batch).

        Rows are padded with -1. The blank is the last class by default. Source: CTCGreedyDecoderSeqLen-6.

        Args:
            data: a floating-point type, rank 3.
            sequence_length: an integer type, rank 1.
            blank_index: an integer type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def experimental_detectron_detection_output(
        rois: Operand,
        deltas: Operand,
        scores: Operand,
        im_info: Operand,
        *,
        score_threshold: float,
        nms_threshold: float,
        num_classes: int,
        post_nms_count: int,
        max_detections_per_image: int,
        max_delta_log_wh: float,
        deltas_weights: Sequence[float],
        class_agnostic_box_regression: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """ExperimentalDetectronDetectionOutput of opset6. The rois (N, 4) moved by the deltas of each class but the
        background, 0; the best of each class without overlaps.

        ``deltas`` are (N, classes * 4), ``scores`` (N, classes), ``im_info`` (1, 3). Gives boxes (M, 4), classes
        (M,) in i32 and scores (M,), M ``max_detections_per_image``; unused rows are zeros. They are sorted by class,
        and by score within each class; only where there are more than M, the best of all, sorted by score. Boxes are
        clipped at 0, but not at the image's other border, and class_agnostic_box_regression has no effect, against
        the specification: so do both of OpenVINO's implementations. A roi without width or height counts as a box of
        zeros with score 0. Source: ExperimentalDetectronDetectionOutput-6.

        Args:
            rois: a floating-point type, rank 2.
            deltas: a floating-point type, rank 2.
            scores: a floating-point type, rank 2.
            im_info: a floating-point type, rank 2.
        """

    @staticmethod
    def experimental_detectron_generate_proposals_single_image(
        im_info: Operand,
        anchors: Operand,
        deltas: Operand,
        scores: Operand,
        *,
        min_size: float,
        nms_threshold: float,
        post_nms_count: int,
        pre_nms_count: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """ExperimentalDetectronGenerateProposalsSingleImage of opset6. The anchors (H * W * A, 4) moved by their
        deltas, clipped to the image, the best without overlaps; then zeros.

        ``im_info`` is height, width and scale, ``deltas`` (4 * A, H, W), ``scores`` (A, H, W). Gives boxes
        (post_nms_count, 4) and scores (post_nms_count,). A box that is too small has score 0 and comes last. Source:
        ExperimentalDetectronGenerateProposalsSingleImage-6.

        Args:
            im_info: a floating-point type, rank 1.
            anchors: a floating-point type, rank 2.
            deltas: a floating-point type, rank 3.
            scores: a floating-point type, rank 3.
        """

    @staticmethod
    def experimental_detectron_prior_grid_generator(
        priors: Operand,
        feature_map: Operand,
        im_data: Operand,
        *,
        flatten: bool = False,
        h: int = 0,
        w: int = 0,
        stride_x: float = 0.0,
        stride_y: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ExperimentalDetectronPriorGridGenerator of opset6. The priors (N, 4) moved to the centre of every cell of a
        grid over the image: (H, W, N, 4), or (H * W * N, 4) if ``flatten``.

        The grid has as many cells as the feature map [1, C, H, W], or ``h`` and ``w``; the boxes of a smaller grid
        come first in the result, whose other values are not specified and zero here. ``flatten`` is false by
        default, although the specification says true: so OpenVINO reads it. Source:
        ExperimentalDetectronPriorGridGenerator-6.

        Args:
            priors: a floating-point type, rank 2.
            feature_map: a floating-point type, rank 4.
            im_data: a floating-point type, rank 4.
        """

    @staticmethod
    def experimental_detectron_roi_feature_extractor(
        rois: Operand,
        *features: Operand,
        output_size: int,
        sampling_ratio: int,
        pyramid_scales: Sequence[int],
        aligned: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """ExperimentalDetectronROIFeatureExtractor of opset6. Features of each roi from the level of the pyramid that
        fits its size, by ROI Align; and the rois unchanged.

        ``rois`` are (N, 4), each level is (1, C, H, W); gives (N, C, output_size, output_size). A roi of 224 by 224
        pixels belongs to level 2, and each level is twice as coarse as the one before; a roi without an area has
        features of zero. The rois are not reordered, although the specification says so: OpenVINO gives both outputs
        in the order of the input. Source: ExperimentalDetectronROIFeatureExtractor-6.

        Args:
            rois: a floating-point type, rank 2.
            features: a floating-point type, rank 4.
        """

    @staticmethod
    def experimental_detectron_topk_rois(
        input_rois: Operand,
        rois_probs: Operand,
        *,
        max_rois: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ExperimentalDetectronTopKROIs of opset6. The rois (N, 4) with the highest probabilities (N,), in descending
        order; of equal ones the first: (max_rois, 4).

        Where there are fewer than ``max_rois`` the rest is not specified, and zero here.
        Source: ExperimentalDetectronTopKROIs-6.

        Args:
            input_rois: a floating-point type, rank 2.
            rois_probs: a floating-point type, rank 1.
        """

    @staticmethod
    def gather_elements(
        data: Operand,
        indices: Operand,
        *,
        axis: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GatherElements of opset6. Elements of ``data`` at the positions of ``indices``, but at the given index along
        ``axis``.

        Negative indices are counted from the end. Source: GatherElements-6.

        Args:
            data: any element type, rank 1 or more.
            indices: i32 or i64, rank 1 or more.
        """

    @staticmethod
    def mvn(
        data: Operand,
        axes: Operand,
        *,
        normalize_variance: bool,
        eps: float,
        eps_mode: Literal["inside_sqrt", "outside_sqrt"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """MVN of opset6. (x - mean) / standard deviation along ``axes``; eps is added before or after the square root.
        Source: MVN-6.

        Args:
            data: a floating-point type.
            axes: an integer type, rank 1.
        """

    @staticmethod
    def read_value(
        init_value: Operand | None = None,
        *,
        variable_id: str,
        variable_type: ElementLike | None = None,
        variable_shape: ShapeLike = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ReadValue of opset6. The variable's value; before anything was assigned ``init_value``, or zeros where it is
        absent.

        Without ``init_value`` an unknown size of ``variable_shape`` is its minimum, as in
        OpenVINO's plugins. Source: ReadValue-6.

        Args:
            init_value: any element type.
        """

class Opset7(Opset6):
    """The operations of opset 7."""

    @staticmethod
    def dft(
        data: Operand,
        axes: Operand,
        signal_size: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DFT of opset7. The discrete Fourier transform of complex numbers along ``axes``.

        The data are first truncated or padded with zeros to ``signal_size``, where -1 keeps the size of an axis.
        Negative axes are counted without the last axis, that of the pairs. Source: DFT-7.

        Args:
            data: a floating-point type, rank 2 or more.
            axes: i32 or i64, rank 1.
            signal_size: i32 or i64, rank 1.
        """

    @staticmethod
    def einsum(*inputs: Operand, equation: str, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Einsum of opset7. The sum of products over the labels that are not in the result.

        A label that occurs twice in an operand takes the diagonal; the axes that ellipses stand for are broadcast,
        and so are equal labels of sizes 1 and n. Source: Einsum-7.

        Args:
            inputs: a numeric type.
        """

    @staticmethod
    def gather(
        data: Operand,
        indices: Operand,
        axis: Operand,
        *,
        batch_dims: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Gather of opset7. Slices of ``data`` along ``axis``, batch by batch; an index out of range gives zeros.
        Source: Gather-7.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type.
            axis: an integer type.
        """

    @staticmethod
    def gelu(
        data: Operand,
        *,
        approximation_mode: Literal["erf", "tanh"] = "erf",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Gelu of opset7. x times the cumulative normal distribution of x, exactly (erf) or approximated by tanh.
        Source: Gelu-7.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def idft(
        data: Operand,
        axes: Operand,
        signal_size: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """IDFT of opset7. The inverse of DFT, divided by the number of points. Source: IDFT-7.

        Args:
            data: a floating-point type, rank 2 or more.
            axes: i32 or i64, rank 1.
            signal_size: i32 or i64, rank 1.
        """

    @staticmethod
    def roll(
        data: Operand,
        shift: Operand,
        axes: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Roll of opset7. ``data`` rotated along the axes: elements shifted beyond the end come first. Source: Roll-7.

        Args:
            data: any element type.
            shift: i32 or i64, rank 0 or 1.
            axes: i32 or i64, rank 0 or 1.
        """

class Opset8(Opset7):
    """The operations of opset 8."""

    @staticmethod
    def adaptive_avg_pool(
        data: Operand,
        output_shape: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """AdaptiveAvgPool of opset8. The means of windows that divide the spatial axes into ``output_shape`` parts;
        those of integers are rounded.

        Source: AdaptiveAvgPool-8.

        Args:
            data: a numeric type, rank 3, 4 or 5.
            output_shape: an integer type, rank 1.
        """

    @staticmethod
    def adaptive_max_pool(
        data: Operand,
        output_shape: Operand,
        *,
        index_element_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """AdaptiveMaxPool of opset8. The maxima of windows that cut the spatial axes into ``output_shape`` parts, and
        their indices in the flattened spatial axes.

        Source: AdaptiveMaxPool-8.

        Args:
            data: a numeric type, rank 3, 4 or 5.
            output_shape: an integer type, rank 1.
        """

    @staticmethod
    def deformable_convolution(
        data: Operand,
        offsets: Operand,
        filter: Operand,
        mask: Operand | None = None,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        group: int = 1,
        deformable_group: int = 1,
        bilinear_interpolation_pad: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DeformableConvolution of opset8. Convolution of data [N, C, Y, X] with filter [O, C / group, Y, X] whose
        points ``offsets`` move and ``mask`` weighs.

        offsets are [N, deformable_group * Y * X * 2, ...], first y then x of each point; mask [N, deformable_group *
        Y * X, ...]. Channel c goes by deformable group c // (C / deformable_group), whatever ``group`` is. With
        ``bilinear_interpolation_pad`` pixels beyond the border are zero, and positions less than one pixel beyond it
        count; else a position must lie in [0, size), and past the last pixel it gives the last. Source:
        DeformableConvolution-8 and OpenVINO's reference.

        Args:
            data: a numeric type, rank 4.
            offsets: a numeric type, rank 4.
            filter: a numeric type, rank 4.
            mask: a numeric type, rank 4.
        """

    @staticmethod
    def detection_output(
        box_logits: Operand,
        class_preds: Operand,
        proposals: Operand,
        aux_class_preds: Operand | None = None,
        aux_box_preds: Operand | None = None,
        *,
        keep_top_k: Sequence[int],
        nms_threshold: float,
        background_label_id: int = 0,
        top_k: int = -1,
        variance_encoded_in_target: bool = False,
        code_type: Literal[
            "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE", "CORNER", "CENTER_SIZE"
        ] = "caffe.PriorBoxParameter.CORNER",
        share_location: bool = True,
        confidence_threshold: float = 0.0,
        clip_after_nms: bool = False,
        clip_before_nms: bool = False,
        decrease_label_id: bool = False,
        normalized: bool = False,
        input_height: int = 1,
        input_width: int = 1,
        objectness_score: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DetectionOutput of opset8. The detections: rows of image, class, score and corners [1, 1, rows, 7].

        Rows are sorted by image, by class, and by descending score; the row after the last has -1 as its image, and
        all else is 0.

        ``box_logits`` are [N, boxes * classes or 1 * 4], ``class_preds`` [N, boxes * classes]. Proposals [1 or N, 1
        or 2, ...] hold the boxes and, unless ``variance_encoded_in_target``, in their second row four variances for
        each, without gaps. Where they are not ``normalized``, a box has a value before its corners; a value of -1
        ends the boxes of the image, as in the CPU plugin. ``code_type`` may lack its prefix
        "caffe.PriorBoxParameter.".

        ``top_k`` limits the candidates of a class before suppression, ``keep_top_k`` (its first value) the
        detections of an image. With ``decrease_label_id`` a box counts only for its best class, never for the first,
        its score may equal the threshold, ``top_k`` is that of the image, and classes count from 0. With five inputs
        a box whose second additional score is below ``objectness_score`` is background, and boxes are decoded twice,
        first by the additional input; then they are divided twice by the size of the input and clipped twice, as in
        OpenVINO.

        Source: DetectionOutput-8, OpenVINO's reference and CPU plugin.

        Args:
            box_logits: a floating-point type, rank 2.
            class_preds: a floating-point type, rank 2.
            proposals: a floating-point type, rank 3.
            aux_class_preds: a floating-point type, rank 2.
            aux_box_preds: a floating-point type, rank 2.
        """

    @staticmethod
    def gather(
        data: Operand,
        indices: Operand,
        axis: Operand,
        *,
        batch_dims: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Gather of opset8. Slices of ``data`` along ``axis``, batch by batch; negative indices are counted from the
        end.

        An index out of range gives zeros. Source: Gather-8.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type.
            axis: an integer type.
        """

    @staticmethod
    def gather_nd(
        data: Operand,
        indices: Operand,
        *,
        batch_dims: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GatherND of opset8. Slices at the positions in the last axis of ``indices``; the batch axes are kept.

        An index out of range is an error. Source: GatherND-8.

        Args:
            data: any element type, rank 1 or more.
            indices: an integer type, rank 1 or more.
        """

    @staticmethod
    def i420_to_bgr(
        arg_y: Operand,
        arg_u: Operand | None = None,
        arg_v: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """I420toBGR of opset8. Same as I420toRGB, blue first. Source: I420toBGR-8.

        Args:
            arg_y: u8 or a floating-point type, rank 4.
            arg_u: u8 or a floating-point type, rank 4.
            arg_v: u8 or a floating-point type, rank 4.
        """

    @staticmethod
    def i420_to_rgb(
        arg_y: Operand,
        arg_u: Operand | None = None,
        arg_v: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """I420toRGB of opset8. I420 in one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1), U and V (N, H/2, W/2, 1), to
        RGB (N, H, W, 3). Source: I420toRGB-8.

        Args:
            arg_y: u8 or a floating-point type, rank 4.
            arg_u: u8 or a floating-point type, rank 4.
            arg_v: u8 or a floating-point type, rank 4.
        """

    @staticmethod
    def matrix_nms(
        boxes: Operand,
        scores: Operand,
        *,
        sort_result_type: Literal["none", "score", "classid", "class"] = "none",
        sort_result: Literal["none", "score", "classid", "class"] | None = None,
        sort_result_across_batch: bool = False,
        output_type: Literal["i64", "i32"] = "i64",
        score_threshold: float = 0.0,
        nms_top_k: int = -1,
        keep_top_k: int = -1,
        background_class: int = -1,
        normalized: bool = True,
        decay_function: Literal["linear", "gaussian"] = "linear",
        gaussian_sigma: float = 2.0,
        post_threshold: float = 0.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """MatrixNms of opset8. Boxes whose scores stay above ``post_threshold`` after better boxes of their class that
        overlap them have lowered them.

        ``boxes`` are [batches, boxes, 4], ``scores`` [batches, classes, boxes]. Gives rows (class, score, corners)
        [n, 6], indices into all boxes [n, 1] and the number of boxes of each batch. Each batch is sorted by score
        whatever the order asked for, but across batches the boxes are sorted by score or class (implementations; the
        specification sorts by class within a batch too). Where nothing is selected, the outputs are empty (the CPU
        plugin fails). Source: MatrixNms-8.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
        """

    @staticmethod
    def max_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        rounding_type: Literal["floor", "ceil"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        dilations: Sequence[int] = (),
        index_element_type: Literal["i64", "i32"] = "i64",
        axis: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """MaxPool of opset8. The maximum of each window, as of MaxPool-1, and its index in the data flattened from
        ``axis`` on. Source: MaxPool-8.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def multiclass_nms(
        boxes: Operand,
        scores: Operand,
        *,
        sort_result_type: Literal["none", "score", "classid", "class"] = "none",
        sort_result: Literal["none", "score", "classid", "class"] | None = None,
        sort_result_across_batch: bool = False,
        output_type: Literal["i64", "i32"] = "i64",
        score_threshold: float = 0.0,
        nms_top_k: int = -1,
        keep_top_k: int = -1,
        background_class: int = -1,
        normalized: bool = True,
        iou_threshold: float = 0.0,
        nms_eta: float = 1.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """MulticlassNms of opset8. The boxes that overlap no better box of their class, the best of each batch, sorted
        as asked.

        ``boxes`` are [batches, boxes, 4], ``scores`` [batches, classes, boxes]. Gives rows (class, score, corners)
        [n, 6], indices into all boxes [n, 1] and the number of boxes of each batch. A box is dropped if an overlap
        is not below the threshold (implementations; the specification: above it), which is multiplied by ``nms_eta``
        after each selected box while it is above 0.5. The order "none" is by score within each batch. Source:
        MulticlassNms-8.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
        """

    @staticmethod
    def nv12_to_bgr(
        arg_y: Operand,
        arg_uv: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NV12toBGR of opset8. Same as NV12toRGB, blue first. Source: NV12toBGR-8.

        Args:
            arg_y: u8 or a floating-point type, rank 4.
            arg_uv: u8 or a floating-point type, rank 4.
        """

    @staticmethod
    def nv12_to_rgb(
        arg_y: Operand,
        arg_uv: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """NV12toRGB of opset8. NV12 in one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1) and UV (N, H/2, W/2, 2), to RGB
        (N, H, W, 3). Source: NV12toRGB-8.

        Args:
            arg_y: u8 or a floating-point type, rank 4.
            arg_uv: u8 or a floating-point type, rank 4.
        """

    @staticmethod
    def prior_box(
        output_size: Operand,
        image_size: Operand,
        *,
        offset: float,
        min_size: Sequence[float] = (),
        max_size: Sequence[float] = (),
        aspect_ratio: Sequence[float] = (),
        flip: bool = False,
        clip: bool = False,
        step: float = 0.0,
        variance: Sequence[float] = (),
        scale_all_sizes: bool = True,
        fixed_ratio: Sequence[float] = (),
        fixed_size: Sequence[float] = (),
        density: Sequence[float] = (),
        min_max_aspect_ratios_order: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """PriorBox of opset8. Boxes in every cell of a grid, and their variances: f32 [2, 4 * height * width * boxes of
        a cell].

        First come the boxes of ``fixed_size``, ``density`` by ``density`` of them for each of ``fixed_ratio``, or
        else of 1 and ``aspect_ratio``; each is clipped at the borders of the image. Then for each of ``min_size`` a
        square, one of sqrt(min * max), and one box for each ratio (in the other order without
        ``min_max_aspect_ratios_order``). Without ``scale_all_sizes`` sizes and step are relative to the image's
        height, max_size has no effect, and the ratios apply to the first of ``min_size``, after the last. With step
        0 the cells cover the image, and boxes are in their centres whatever ``offset`` is; so does -1 without
        ``scale_all_sizes``. Source: PriorBox-8 and OpenVINO's reference, all in f32. Attributes for which OpenVINO
        counts another number of boxes than it makes (and then writes beyond its memory, or leaves some of it
        uninitialised) are refused.

        Args:
            output_size: an integer type, rank 1.
            image_size: an integer type, rank 1.
        """

    @staticmethod
    def random_uniform(
        shape: Operand,
        min_val: Operand,
        max_val: Operand,
        *,
        output_type: Literal["i32", "i64", "f16", "bf16", "f32", "f64"],
        global_seed: int = 0,
        op_seed: int = 0,
        alignment: Literal["TENSORFLOW", "PYTORCH"] = "TENSORFLOW",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RandomUniform of opset8. Random numbers in [min_val, max_val): those of TensorFlow for the seeds (Philox), or
        those of PyTorch (Mersenne Twister).

        Without seeds they differ each time. With seeds they are the same in every run of a model, where OpenVINO's
        plugin continues the sequence from one inference to the next. Source: RandomUniform-8 and openvino
        ``reference/src/utils/philox_converter.cpp``.

        Args:
            shape: an integer type, rank 1.
            min_val: i32, i64, f16, bf16, f32 or f64, rank 0, or 1 with a single element.
            max_val: i32, i64, f16, bf16, f32 or f64, rank 0, or 1 with a single element.
        """

    @staticmethod
    def slice(
        data: Operand,
        start: Operand,
        stop: Operand,
        step: Operand,
        axes: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Slice of opset8. ``[start:stop:step]`` along each of the axes, by default the first ones.

        Source: Slice-8, and OpenVINO for bounds beyond the axis (see ``_slice``).

        Args:
            data: any element type.
            start: an integer type, rank 1.
            stop: an integer type, rank 1.
            step: an integer type, rank 1.
            axes: an integer type, rank 1.
        """

    @staticmethod
    def softmax(data: Operand, *, axis: int = 1, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Softmax of opset8. exp(x) / sum(exp(x)) along ``axis``, which may be negative. Source: Softmax-8.

        Args:
            data: a floating-point type.
        """

class Opset9(Opset8):
    """The operations of opset 9."""

    @staticmethod
    def eye(
        num_rows: Operand,
        num_columns: Operand,
        diagonal_index: Operand,
        batch_shape: Operand | None = None,
        *,
        output_type: ElementLike,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Eye of opset9. Ones on a diagonal, zeros elsewhere, for every batch. Source: Eye-9.

        Args:
            num_rows: i32 or i64, rank 0, or 1 with a single element.
            num_columns: i32 or i64, rank 0, or 1 with a single element.
            diagonal_index: i32 or i64, rank 0, or 1 with a single element.
            batch_shape: i32 or i64, rank 1.
        """

    @staticmethod
    def generate_proposals(
        im_info: Operand,
        anchors: Operand,
        boxesdeltas: Operand,
        scores: Operand,
        *,
        min_size: float,
        nms_threshold: float,
        pre_nms_count: int,
        post_nms_count: int,
        normalized: bool = True,
        nms_eta: float = 1.0,
        roi_num_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """GenerateProposals of opset9. The anchors (H, W, A, 4) moved by the deltas of each image, clipped to it, the
        best without overlaps.

        ``im_info`` is (N, 3 or 4): height, width and scales; ``boxesdeltas`` (N, 4 * A, H, W), ``scores`` (N, A, H,
        W). Gives the boxes of all images one after another (n, 4), their scores (n,), and how many belong to each
        image (N,). Boxes that are too small are removed only after the best ``pre_nms_count`` were taken. Unless
        ``normalized`` a box includes its last pixel. With an ``nms_eta`` below 1 a threshold above one half is
        multiplied by it after each box kept, as the specification says; OpenVINO refuses it. Source:
        GenerateProposals-9.

        Args:
            im_info: a floating-point type, rank 2.
            anchors: a floating-point type, rank 4.
            boxesdeltas: a floating-point type, rank 4.
            scores: a floating-point type, rank 4.
        """

    @staticmethod
    def grid_sample(
        data: Operand,
        grid: Operand,
        *,
        align_corners: bool = False,
        mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GridSample of opset9. Pixels of (N, C, H, W) at the points (N, h, w, 2) of ``grid``, x before y, from -1 to 1
        across the image.

        Interpolation is computed in the type of the grid, for f16 in f32; integers are then truncated, as
        OpenVINO's reference does and the CPU plugin for 32 and 64 bits. With ``nearest`` a tie goes to the even
        pixel. A point that is NaN or infinite gives NaN, but with ``nearest`` NaN is the first pixel. A point far
        beyond the border is brought back without loss, where OpenVINO's reference overflows. Source: GridSample-9.

        Args:
            data: any element type but string, rank 4.
            grid: a floating-point type, rank 4.
        """

    @staticmethod
    def irdft(
        data: Operand,
        axes: Operand,
        signal_size: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """IRDFT of opset9. The inverse of RDFT.

        Along the last of ``axes`` the result has size 2 * (n - 1), or the ``signal_size`` s, for which s // 2 + 1
        points of the data are used. Source: IRDFT-9.

        Args:
            data: a floating-point type, rank 2 or more.
            axes: i32 or i64, rank 1.
            signal_size: i32 or i64, rank 1.
        """

    @staticmethod
    def multiclass_nms(
        boxes: Operand,
        scores: Operand,
        roisnum: Operand | None = None,
        *,
        sort_result_type: Literal["none", "score", "classid", "class"] = "none",
        sort_result: Literal["none", "score", "classid", "class"] | None = None,
        sort_result_across_batch: bool = False,
        output_type: Literal["i64", "i32"] = "i64",
        score_threshold: float = 0.0,
        nms_top_k: int = -1,
        keep_top_k: int = -1,
        background_class: int = -1,
        normalized: bool = True,
        iou_threshold: float = 0.0,
        nms_eta: float = 1.0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """MulticlassNms of opset9. MulticlassNms-8, or with ``roisnum`` of classes with boxes [classes, boxes, 4] and
        scores [classes, boxes] of their own.

        ``roisnum`` says how many of these boxes belong to each batch, one after the other; then the index of a box
        is its index among the boxes of its class times the number of classes plus its class (implementations; the
        specification has the index into the flattened boxes). Source: MulticlassNms-9.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 2 or 3.
            roisnum: i32 or i64, rank 1.
        """

    @staticmethod
    def non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand | None = None,
        iou_threshold: Operand | None = None,
        score_threshold: Operand | None = None,
        soft_nms_sigma: Operand | None = None,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """NonMaxSuppression of opset9. NonMaxSuppression-1 that also gives rows (batch, class, score) of f32 [n, 3],
        and the number of rows [1].

        With a positive ``soft_nms_sigma`` an overlap lowers scores by exp(-0.5 IoU² / sigma) and ``iou_threshold``
        has no effect. Source: NonMaxSuppression-5 and -9; OpenVINO runs version 5 as version 9 (the older reference
        also applies the threshold).

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0, or 1 with a single element.
            iou_threshold: a floating-point type, rank 0, or 1 with a single element.
            score_threshold: a floating-point type, rank 0, or 1 with a single element.
            soft_nms_sigma: a floating-point type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def rdft(
        data: Operand,
        axes: Operand,
        signal_size: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RDFT of opset9. The transform of real numbers: n // 2 + 1 points along the last of ``axes``, the rest is
        redundant. Source: RDFT-9.

        Args:
            data: a floating-point type, rank 1 or more.
            axes: i32 or i64, rank 1.
            signal_size: i32 or i64, rank 1.
        """

    @staticmethod
    def roi_align(
        data: Operand,
        rois: Operand,
        batch_indices: Operand,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        mode: Literal["avg", "max"],
        aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ROIAlign of opset9. Same as ROIAlign-3; unless ``aligned_mode`` is asymmetric, boxes are moved by half a
        pixel and may be smaller than one.

        A box without width or height has no points where their number follows its size: it gives 0, as in the
        reference, where the CPU plugin gives NaN. Source: ROIAlign-9.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
            batch_indices: an integer type, rank 1.
        """

    @staticmethod
    def softsign(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """SoftSign of opset9. x / (1 + |x|). Source: SoftSign-9.

        Args:
            data: a floating-point type.
        """

class Opset10(Opset9):
    """The operations of opset 10."""

    @staticmethod
    def is_finite(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """IsFinite of opset10. Whether each element is neither NaN nor infinite. Source: IsFinite-10.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def is_inf(
        data: Operand,
        *,
        detect_negative: bool = True,
        detect_positive: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """IsInf of opset10. Whether each element is infinite, with a sign that is to be detected. Source: IsInf-10.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def is_nan(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """IsNaN of opset10. Whether each element is NaN. Source: IsNaN-10.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def unique(
        data: Operand,
        axis: Operand | None = None,
        *,
        sorted: bool = True,
        index_element_type: Literal["i64", "i32"] = "i64",
        count_element_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Unique of opset10. The distinct values, or slices along ``axis``; the index of the first occurrence, of which
        distinct one each is, and counts.

        They are in ascending order, or in the order of first occurrence; NaN differs from NaN. Source: Unique-10.

        Args:
            data: any element type.
            axis: an integer type, rank 0, or 1 with a single element.
        """

class Opset11(Opset10):
    """The operations of opset 11."""

    @staticmethod
    def interpolate(
        data: Operand,
        scales_or_sizes: Operand,
        axes: Operand | None = None,
        *,
        mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"],
        shape_calculation_mode: Literal["sizes", "scales"],
        antialias: bool = False,
        pads_begin: Sequence[int] = (),
        pads_end: Sequence[int] = (),
        coordinate_transformation_mode: Literal[
            "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"
        ] = "half_pixel",
        nearest_mode: Literal[
            "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"
        ] = "round_prefer_floor",
        cube_coeff: float = -0.75,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Interpolate of opset11. ``data`` resized along ``axes`` (all unless given), to sizes or by scales; also by
        the filters of Pillow.

        bicubic_pillow honours cube_coeff, as OpenVINO's reference does. Source: Interpolate-11.

        Args:
            data: a floating-point type, i8, i32, i64 or u8.
            scales_or_sizes: a numeric type, rank 1.
            axes: i32, i64, u32 or u64, rank 1.
        """

    @staticmethod
    def topk(
        data: Operand,
        k: Operand,
        *,
        axis: int,
        mode: Literal["max", "min"],
        sort: Literal["value", "index", "none"],
        index_element_type: Literal["i64", "i32"] = "i32",
        stable: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """TopK of opset11. The ``k`` largest or smallest values along ``axis`` and their indices; always stable here.
        Source: TopK-11.

        Args:
            data: any element type but string, rank 1 or more.
            k: an integer type, rank 0.
        """

class Opset12(Opset11):
    """The operations of opset 12."""

    @staticmethod
    def group_normalization(
        data: Operand,
        scale: Operand,
        bias: Operand,
        *,
        num_groups: int,
        epsilon: float,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GroupNormalization of opset12. (x - mean) / sqrt(variance + epsilon) over each group of channels, times scale
        plus bias of the channel.

        Source: GroupNormalization-12.

        Args:
            data: a floating-point type, rank 2 or more.
            scale: a floating-point type, rank 1.
            bias: a floating-point type, rank 1.
        """

    @staticmethod
    def pad(
        data: Operand,
        pads_begin: Operand,
        pads_end: Operand,
        pad_value: Operand | None = None,
        *,
        pad_mode: Literal["constant", "edge", "reflect", "symmetric"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Pad of opset12. Same as Pad-1; negative pads remove elements, after the positive pads are added.

        So elements that are removed at one end can still be reflected at the other, as in OpenVINO. Source: Pad-12.

        Args:
            data: any element type.
            pads_begin: an integer type, rank 1.
            pads_end: an integer type, rank 1.
            pad_value: any element type, rank 0.
        """

    @staticmethod
    def scatter_elements_update(
        data: Operand,
        indices: Operand,
        updates: Operand,
        axis: Operand,
        *,
        reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = "none",
        use_init_val: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScatterElementsUpdate of opset12. Same as ScatterElementsUpdate-3; updates can also be reduced with the
        elements of data, or with each other alone.

        The mean of integers is rounded down. Without ``use_init_val`` a minimum of infinities is infinite,
        as specified; OpenVINO gives the largest finite number. Source: ScatterElementsUpdate-12.

        Args:
            data: any element type but string, rank 1 or more.
            indices: an integer type, rank 1 or more.
            updates: any element type but string, rank 1 or more.
            axis: an integer type, rank 0, or 1 with a single element.
        """

class Opset13(Opset12):
    """The operations of opset 13."""

    @staticmethod
    def bitwise_and(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BitwiseAnd of opset13. a & b, bit by bit; a and b for booleans. Source: BitwiseAnd-13.

        Args:
            a: an integer type or boolean.
            b: an integer type or boolean.
        """

    @staticmethod
    def bitwise_not(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """BitwiseNot of opset13. Every bit inverted; for booleans the opposite. Source: BitwiseNot-13.

        Args:
            data: an integer type or boolean.
        """

    @staticmethod
    def bitwise_or(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BitwiseOr of opset13. a | b, bit by bit; a or b for booleans. Source: BitwiseOr-13.

        Args:
            a: an integer type or boolean.
            b: an integer type or boolean.
        """

    @staticmethod
    def bitwise_xor(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BitwiseXor of opset13. a ^ b, bit by bit; exclusive or for booleans. Source: BitwiseXor-13.

        Args:
            a: an integer type or boolean.
            b: an integer type or boolean.
        """

    @staticmethod
    def fake_convert(
        data: Operand,
        scale: Operand,
        shift: Operand | None = None,
        *,
        destination_type: Literal["f8e4m3", "f8e5m2"] = "f8e4m3",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """FakeConvert of opset13. data * scale - shift rounded to f16 and then to an 8-bit float type, and converted
        back: (x + shift) / scale.

        The 8-bit types are rounded and saturated differently than by Convert, see irexec.reference.quantization.
        Each step is rounded to the type of the data. Source: FakeConvert-13 and openvino
        ``reference/src/op/fake_convert.cpp``.

        Args:
            data: f16, bf16 or f32.
            scale: f16, bf16 or f32.
            shift: f16, bf16 or f32.
        """

    @staticmethod
    def multinomial(
        probs: Operand,
        num_samples: Operand,
        *,
        convert_type: Literal["i32", "i64"],
        with_replacement: bool,
        log_probs: bool,
        global_seed: int = 0,
        op_seed: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Multinomial of opset13. Classes chosen by their probabilities, (batch, classes) to (batch, num_samples): the
        first whose cumulative probability reaches a random number.

        The random numbers are those of RandomUniform in f64, as openvino ``reference/multinomial.hpp`` has it and
        the specification leaves open; the CPU plugin uses others. Without replacement the probability of a chosen
        class is 0 for the samples that follow. Source: Multinomial-13.

        Args:
            probs: a floating-point type, rank 1 or 2.
            num_samples: an integer type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def nms_rotated(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand,
        iou_threshold: Operand,
        score_threshold: Operand,
        *,
        sort_result_descending: bool = True,
        output_type: Literal["i64", "i32"] = "i64",
        clockwise: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """NMSRotated of opset13. NonMaxSuppression-9 of rotated boxes [batches, boxes, 5]: centre x and y, width,
        height and angle in radians.

        The y axis points down, so that clockwise is from the x axis to the y axis. Source: NMSRotated-13.

        Args:
            boxes: bf16, f16 or f32, rank 3.
            scores: bf16, f16 or f32, rank 3.
            max_output_boxes_per_class: an integer type, rank 0, or 1 with a single element.
            iou_threshold: a floating-point type, rank 0, or 1 with a single element.
            score_threshold: a floating-point type, rank 0, or 1 with a single element.
        """

    @staticmethod
    def scaled_dot_product_attention(
        query: Operand,
        key: Operand,
        value: Operand,
        attention_mask: Operand | None = None,
        scale: Operand | None = None,
        sink: Operand | None = None,
        *,
        causal: bool,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScaledDotProductAttention of opset13. softmax(query @ key.T * scale + mask) @ value, leading axes broadcast:
        (..., L, E), (..., S, E), (..., S, Ev) to (..., L, Ev).

        A boolean mask keeps the scores where it is true; ``causal`` keeps for row i the columns up to i, and ignores
        the mask. The sink is one more score of each row, broadcast to all of them, that adds to the sum of softmax
        and has no value (in OpenVINO 2026, not in the specification). A row without any score kept is NaN. ``scale``
        is 1 / sqrt(E) by default. Source: ScaledDotProductAttention-13.

        Args:
            query: a floating-point type, rank 3 or more.
            key: a floating-point type, rank 3 or more.
            value: a floating-point type, rank 3 or more.
            attention_mask: any element type but string.
            scale: a floating-point type, rank 0, or 1 with a single element.
            sink: a floating-point type.
        """

class Opset14(Opset13):
    """The operations of opset 14."""

    @staticmethod
    def avg_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        exclude_pad: bool,
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """AvgPool of opset14. Same as AvgPool-1, with ceil_torch: rounded up, but no window starts after the data.
        Source: AvgPool-14.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def convert_promote_types(
        input_0: Operand,
        input_1: Operand,
        *,
        promote_unsafe: bool = False,
        pytorch_scalar_promotion: bool = False,
        u64_integer_promotion_target: ElementLike = "f32",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """ConvertPromoteTypes of opset14. Both tensors converted to one type that can hold the values of either.

        Without ``promote_unsafe`` an integer becomes a float, and an unsigned integer a signed one, only where all
        of its values fit. With ``pytorch_scalar_promotion`` a scalar is converted to the type of the tensor. u64 and
        a signed integer become ``u64_integer_promotion_target``. Source: ConvertPromoteTypes-14.

        Args:
            input_0: a type that can be promoted (not string, u2, u3, u6, nf4, f8e8m0 or f4e2m1).
            input_1: a type that can be promoted (not string, u2, u3, u6, nf4, f8e8m0 or f4e2m1).
        """

    @staticmethod
    def inverse(data: Operand, *, adjoint: bool = False, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Inverse of opset14. The inverses of square matrices on the last two axes, transposed if ``adjoint``.

        A singular matrix gives infinities and NaN, from the divisions by 0 of elimination. Source: Inverse-14.

        Args:
            data: a floating-point type, rank 2 or more.
        """

    @staticmethod
    def max_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        dilations: Sequence[int] = (),
        index_element_type: Literal["i64", "i32"] = "i64",
        axis: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """MaxPool of opset14. Same as MaxPool-8, with ceil_torch: rounded up, but no window starts after the data.
        Source: MaxPool-14.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

class Opset15(Opset14):
    """The operations of opset 15."""

    @staticmethod
    def bitwise_left_shift(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BitwiseLeftShift of opset15. a << b; bits beyond the type are lost. Source: BitwiseLeftShift-15.

        Args:
            a: an integer type.
            b: an integer type.
        """

    @staticmethod
    def bitwise_right_shift(
        a: Operand,
        b: Operand,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        auto_broadcast_axis: int | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """BitwiseRightShift of opset15. a >> b; the sign is kept. Source: BitwiseRightShift-15.

        Args:
            a: an integer type.
            b: an integer type.
        """

    @staticmethod
    def col2im(
        data: Operand,
        output_size: Operand,
        kernel_size: Operand,
        *,
        strides: Sequence[int] = (1, 1),
        dilations: Sequence[int] = (1, 1),
        pads_begin: Sequence[int] = (0, 0),
        pads_end: Sequence[int] = (0, 0),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Col2Im of opset15. Images [N, C, Y, X] in which columns [N, C * kernel, windows] are summed; N may be left
        out of both.

        Source: Col2Im-15.

        Args:
            data: any element type but string, rank 2 or 3.
            output_size: i32 or i64, rank 1.
            kernel_size: i32 or i64, rank 1.
        """

    @staticmethod
    def embedding_bag_offsets(
        emb_table: Operand,
        indices: Operand,
        offsets: Operand,
        default_index: Operand | None = None,
        per_sample_weights: Operand | None = None,
        *,
        reduction: Literal["sum", "mean"] = "sum",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EmbeddingBagOffsets of opset15. Same as EmbeddingBagOffsetsSum-3, or the mean of the rows. Source:
        EmbeddingBagOffsets-15.

        Args:
            emb_table: a numeric type, rank 1 or more.
            indices: an integer type, rank 1.
            offsets: an integer type, rank 1.
            default_index: an integer type, rank 0.
            per_sample_weights: a numeric type, rank 1.
        """

    @staticmethod
    def embedding_bag_packed(
        emb_table: Operand,
        indices: Operand,
        per_sample_weights: Operand | None = None,
        *,
        reduction: Literal["sum", "mean"] = "sum",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EmbeddingBagPacked of opset15. Same as EmbeddingBagPackedSum-3, or the mean of the rows. Source:
        EmbeddingBagPacked-15.

        Args:
            emb_table: a numeric type, rank 1 or more.
            indices: i32 or i64, rank 2.
            per_sample_weights: a numeric type, rank 2.
        """

    @staticmethod
    def roi_align_rotated(
        data: Operand,
        rois: Operand,
        batch_indices: Operand,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        clockwise_mode: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ROIAlignRotated of opset15. The mean of points interpolated in each bin of each box (centre x, centre y,
        width, height, angle in radians).

        ``data`` is [N, C, H, W], ``rois`` [R, 5]; gives [R, C, pooled_h, pooled_w]. Source: ROIAlignRotated-15.

        Args:
            data: a floating-point type, rank 4.
            rois: a floating-point type, rank 2.
            batch_indices: an integer type, rank 1.
        """

    @staticmethod
    def stft(
        signal: Operand,
        window: Operand,
        frame_size: Operand,
        frame_step: Operand,
        *,
        transpose_frames: bool,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """STFT of opset15. The transforms of frames of the signal, at a stride of ``frame_step``, each multiplied with
        the window.

        A window shorter than a frame is centered in it. Shapes: (N) or (batch, N) to (..., frames, frame_size // 2 +
        1, 2), with these two axes swapped by ``transpose_frames``. Source: STFT-15.

        Args:
            signal: a floating-point type, rank 1 or 2.
            window: a floating-point type, rank 1.
            frame_size: i32 or i64, rank 0.
            frame_step: i32 or i64, rank 0.
        """

    @staticmethod
    def scatter_nd_update(
        data: Operand,
        indices: Operand,
        updates: Operand,
        *,
        reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ScatterNDUpdate of opset15. Same as ScatterNDUpdate-3; updates can also be reduced with the elements of data.
        Source: ScatterNDUpdate-15.

        Args:
            data: any element type but string, rank 1 or more.
            indices: i32 or i64, rank 1 or more.
            updates: any element type but string.
        """

    @staticmethod
    def search_sorted(
        sorted_sequence: Operand,
        values: Operand,
        *,
        right_mode: bool = False,
        output_type: Literal["i64", "i32"] = "i64",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SearchSorted of opset15. The index at which each value would be inserted to keep its sequence sorted: the
        first, or the last in ``right_mode``.

        The sequences lie along the last axis; a single one serves values of any shape. Source: SearchSorted-15.

        Args:
            sorted_sequence: any element type but string, rank 1 or more.
            values: any element type but string.
        """

    @staticmethod
    def slice_scatter(
        data: Operand,
        updates: Operand,
        start: Operand,
        stop: Operand,
        step: Operand,
        axes: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SliceScatter of opset15. ``data`` with ``[start:stop:step]`` along each of the axes replaced by ``updates``,
        which have that shape.

        Source: SliceScatter-15.

        Args:
            data: any element type, rank 1 or more.
            updates: any element type.
            start: an integer type, rank 1.
            stop: an integer type, rank 1.
            step: an integer type, rank 1.
            axes: an integer type, rank 1.
        """

    @staticmethod
    def squeeze(
        data: Operand,
        axes: Operand | None = None,
        *,
        allow_axis_skip: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """Squeeze of opset15. Same as Squeeze-1; with ``allow_axis_skip`` sizes that are not known are not assumed to
        be 1. Source: Squeeze-15.

        Args:
            data: any element type.
            axes: an integer type, rank 0 or 1.
        """

    @staticmethod
    def string_tensor_pack(
        begins: Operand,
        ends: Operand,
        symbols: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringTensorPack of opset15. Strings decoded from UTF-8: string i is the bytes of ``symbols`` from begins[i]
        to ends[i].

        Bytes that are not UTF-8 become U+FFFD, as in OpenVINO's Python API. Source: StringTensorPack-15.

        Args:
            begins: an integer type.
            ends: an integer type.
            symbols: u8, rank 1.
        """

    @staticmethod
    def string_tensor_unpack(
        data: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """StringTensorUnpack of opset15. The offsets at which the UTF-8 bytes of each string begin and end (i32), and
        the bytes of all strings (u8).

        Source: StringTensorUnpack-15.

        Args:
            data: string.
        """

class Opset16(Opset15):
    """The operations of opset 16."""

    @staticmethod
    def avg_pool(
        data: Operand,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        kernel: Sequence[int],
        exclude_pad: bool,
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = "floor",
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        dilations: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """AvgPool of opset16. Same as AvgPool-14, with dilations. Source: AvgPool-16.

        Args:
            data: a numeric type, rank 3, 4 or 5.
        """

    @staticmethod
    def istft(
        data: Operand,
        window: Operand,
        frame_size: Operand,
        frame_step: Operand,
        signal_length: Operand | None = None,
        *,
        center: bool,
        normalized: bool,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ISTFT of opset16. The inverse of STFT: frames times the window, added at their positions in the signal.

        The sum is divided by the sum of the squares of the windows, and 0 where that is 0. ``center`` removes half a
        frame, rounded down, at both ends, so that an odd ``frame_size`` leaves one element more than the
        specification says; ``normalized`` multiplies by the square root of ``frame_size``. The result is padded with
        zeros to a longer ``signal_length``. Source: ISTFT-16, and OpenVINO 2026.4 for what is not specified.

        Args:
            data: a floating-point type, rank 3 or 4.
            window: a floating-point type, rank 1.
            frame_size: i32 or i64, rank 0.
            frame_step: i32 or i64, rank 0.
            signal_length: i32 or i64, rank 0, or 1 with a single element.
        """

    @staticmethod
    def identity(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """Identity of opset16. ``data`` itself. Source: Identity-16.

        Args:
            data: any element type.
        """

    @staticmethod
    def one_hot(
        indices: Operand,
        depth: Operand,
        on_value: Operand,
        off_value: Operand,
        *,
        axis: int,
        negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """OneHot of opset16. Same as OneHot-1; with normalize, negative indices are counted from the end. Source:
        OneHot-16.

        Args:
            indices: an integer type.
            depth: an integer type, rank 0.
            on_value: any element type, rank 0.
            off_value: any element type, rank 0.
        """

    @staticmethod
    def segment_max(
        data: Operand,
        segment_ids: Operand,
        num_segments: Operand | None = None,
        *,
        fill_mode: Literal["zero", "lowest"],
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """SegmentMax of opset16. The maximum of each segment of the first axis; an empty segment has 0 or the lowest
        value of the type.

        ``num_segments`` is the last id + 1 by default; ids of ``num_segments`` and above are ignored. NaN is the
        maximum of a segment only where it has no other element, as in OpenVINO's reference. Source: SegmentMax-16.

        Args:
            data: a numeric type, rank 1 or more.
            segment_ids: i32 or i64, rank 1.
            num_segments: i32 or i64, rank 0.
        """

    @staticmethod
    def sparse_fill_empty_rows(
        values: Operand,
        dense_shape: Operand,
        indices: Operand,
        default_value: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """SparseFillEmptyRows of opset16. The indices and values of a sparse matrix in row-major order, with
        ``default_value`` at column 0 of empty rows.

        ``indices`` are [count, 2]; the third result is true for the rows that were empty. Source:
        SparseFillEmptyRows-16.

        Args:
            values: any element type, rank 1.
            dense_shape: i32 or i64, rank 1.
            indices: i32 or i64, rank 2.
            default_value: any element type, rank 0.
        """

class Opset17(Opset16):
    """The operations of opset 17."""

    @staticmethod
    def bgr_to_nv12(
        data: Operand,
        *,
        single_plane: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Any:
        """BGRtoNV12 of opset17. Same as RGBtoNV12, blue first. Source: BGRtoNV12-17.

        Args:
            data: u8 or a floating-point type, rank 4.
        """

    @staticmethod
    def erfinv(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """ErfInv of opset17. The inverse error function (the plugin errs by up to 1 in 2,000). Source: ErfInv-17.

        Args:
            data: a floating-point type.
        """

    @staticmethod
    def grouped_matmul(
        mat_a: Operand,
        mat_b: Operand,
        offsets: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """GroupedMatMul of opset17. Products of groups of rows, each with a matrix of its own; ``offsets`` are the
        stops of the groups.

        [G, M, K] and [G, N, K] to [G, M, N]. [T, K] and [G, N, K] to [T, N], rows after the last offset are 0.
        [K, T] and [T, N] to [G, K, N], summed over a group's part of T. The specification printed [G, K, N] for the
        matrices at first; OpenVINO 2026.4 accepts [G, N, K], and no pair of rank 2.
        Source: GroupedMatMul-17 and openvino ``grouped_matmul_shape_inference.hpp``.

        Args:
            mat_a: a numeric type, rank 2 or 3.
            mat_b: a numeric type, rank 2 or 3.
            offsets: an integer type, rank 1.
        """

    @staticmethod
    def rgb_to_nv12(
        data: Operand,
        *,
        single_plane: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Any:
        """RGBtoNV12 of opset17. RGB (N, H, W, 3) to NV12: one plane (N, H * 3/2, W, 1), or Y (N, H, W, 1) and UV (N,
        H/2, W/2, 2).

        U and V are the mean of four pixels. Source: RGBtoNV12-17.

        Args:
            data: u8 or a floating-point type, rank 4.
        """

class ExtensionIrexec:
    """The operations of the namespace irexec."""

    @staticmethod
    def as_string(data: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """AsString of irexec. Numbers as decimal texts: integers with all digits, floats with up to 8, NaN, INF, -INF;
        booleans as 1 and 0.

        Source: ONNX Cast-13 and ONNX Runtime.

        Args:
            data: a numeric type or boolean.
        """

    @staticmethod
    def deformable_convolution(
        data: Operand,
        offsets: Operand,
        filter: Operand,
        mask: Operand | None = None,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        group: int = 1,
        deformable_group: int = 1,
        bilinear_interpolation_pad: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """DeformableConvolution of irexec. DeformableConvolution-8 in any number of spatial axes. Source: ONNX
        DeformConv-22, of which IR has only the planar case.

        Args:
            data: a numeric type, rank 3 or more.
            offsets: a numeric type, rank 3 or more.
            filter: a numeric type, rank 3 or more.
            mask: a numeric type, rank 3 or more.
        """

    @staticmethod
    def regex_full_match(
        data: Operand,
        pattern: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RegexFullMatch of irexec. Whether each whole string matches a regular expression in the syntax of RE2.
        Source: ONNX RegexFullMatch-20.

        Args:
            data: string.
            pattern: string, rank 0, or 1 with a single element.
        """

    @staticmethod
    def string_concat(a: Operand, b: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """StringConcat of irexec. Each string of ``a`` followed by that of ``b``; the shapes are broadcast as NumPy
        does. Source: ONNX StringConcat-20.

        Args:
            a: string.
            b: string.
        """

    @staticmethod
    def string_lookup(data: Operand, keys: Operand, *, name: str | None = None, names: Sequence[str] = ()) -> Tensor:
        """StringLookup of irexec. The index of each string in ``keys`` (i64), of the first of equal ones; -1 if it is
        not among them.

        Args:
            data: string.
            keys: string, rank 1.
        """

    @staticmethod
    def string_normalizer(
        data: Operand,
        stopwords: Operand,
        *,
        case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
        is_case_sensitive: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringNormalizer of irexec. The strings of a vector, or of a matrix of one row, that are not among
        ``stopwords``, in upper or lower case.

        Without any string left the result is one empty string. Strings are compared before their case is changed if
        ``is_case_sensitive``, else after; characters of which the other case is several characters stay. Source:
        ONNX StringNormalizer-10 and ONNX Runtime.

        Args:
            data: string, rank 1 or 2.
            stopwords: string, rank 1.
        """

    @staticmethod
    def string_split(
        data: Operand,
        delimiter: Operand,
        *,
        maxsplit: int = -1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """StringSplit of irexec. Strings split at a delimiter, padded with empty strings along a new last axis, and the
        number of parts of each (i64).

        An empty delimiter stands for any whitespace, which is dropped at both ends. At most ``maxsplit`` splits are
        made of a string; a negative number has no limit. Source: ONNX StringSplit-20 and its reference.

        Args:
            data: string.
            delimiter: string, rank 0, or 1 with a single element.
        """

    @staticmethod
    def string_to_number(
        data: Operand,
        *,
        destination_type: ElementLike,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringToNumber of irexec. Numbers parsed from decimal texts, which may have an exponent, or be nan, inf or
        infinity, in any case.

        A boolean is parsed from an integer: whether it is not 0. Source: ONNX Cast-13.

        Args:
            data: string.
        """

    @staticmethod
    def string_tokenizer(
        data: Operand,
        patterns: Operand,
        pad_value: Operand,
        *,
        mode: Literal["separators", "tokens", "characters"],
        mark: bool = False,
        min_length: int = 1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringTokenizer of irexec. The tokens of each string along a new last axis, padded with ``pad_value``.

        ``patterns`` are regular expressions of RE2, whose longest matches count: separators, which split one after
        another; the expression of a token; none for tokens of one character. Tokens of fewer characters than
        ``min_length`` are dropped. ``mark`` puts the characters 2 and 3 around the tokens of a string, unless no
        string has tokens. Source: ONNX Runtime, Tokenizer of com.microsoft.

        Args:
            data: string, rank 1 or 2.
            patterns: string, rank 1.
            pad_value: string, rank 0, or 1 with a single element.
        """

class ExtensionExtension:
    """The operations of the namespace extension."""

    @staticmethod
    def bpe_tokenizer(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        *merges_and_added: Operand,
        unk_token: str = "",
        fuse_unk: bool = False,
        suffix_indicator: str = "",
        end_suffix: str = "",
        byte_fallback: bool = False,
        cache_capacity: int = 20000,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """BPETokenizer of extension. Token ids of words by byte pair encoding: pairs of tokens are merged in the order
        of the merges.

        After the vocabulary come begins, ends and chars of the merges, as texts with a space or as left and right
        parts; then begins, ends, chars and ids of added tokens, which are never split, if there are any.
        ``end_suffix`` is put after each word. Bytes without a token become tokens such as "<0x0A>" with
        ``byte_fallback``, else ``unk_token``, else nothing. OpenVINO does not read ``suffix_indicator``, and joins
        no unknown tokens for ``fuse_unk``.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            merges_and_added: any element type but string.
        """

    @staticmethod
    def byte_fallback(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """ByteFallback of extension. Tokens such as "<0x0A>" replaced by their byte.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
        """

    @staticmethod
    def bytes_to_chars(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        skips: Operand | None = None,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """BytesToChars of extension. Each byte as a printable character: the alphabet of GPT-2. Strings that ``skips``
        marks stay as they are.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips: boolean.
        """

    @staticmethod
    def case_fold(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        skips: Operand | None = None,
        *,
        encoding: Literal["utf-8", ""] = "utf-8",
        lower: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """CaseFold of extension. Strings folded to lower case by Unicode's simple case folding; with an empty
        ``encoding`` the letters of ASCII alone, to lower or to upper case, in all strings. Strings that ``skips``
        marks stay as they are otherwise.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips: boolean.
        """

    @staticmethod
    def chars_map_normalization(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *skips_and_charsmap: Operand,
        add_dummy_prefix: bool = False,
        remove_extra_whitespaces: bool = True,
        escape_whitespaces: bool = False,
        normalization_form: str = "",
        case_fold: bool = False,
        nmt: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """CharsMapNormalization of extension. Strings normalized by the rules of a precompiled charsmap of
        SentencePiece, which is the last input, or by those of ``normalization_form``. Strings that ``skips``, the
        fourth input, marks stay as they are.

        The longest rule counts at each position. ``add_dummy_prefix`` puts a space before each string,
        ``remove_extra_whitespaces`` removes spaces at the ends and after other spaces, and ``escape_whitespaces``
        writes spaces as U+2581. ``nmt`` has no effect.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips_and_charsmap: any element type but string.
        """

    @staticmethod
    def chars_to_bytes(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """CharsToBytes of extension. The strings of each row joined, and their characters turned back to bytes; see
        BytesToChars.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
        """

    @staticmethod
    def combine_segments(
        *inputs: Operand,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """CombineSegments of extension. Rows of several ragged tensors joined, and the id of the tensor of each
        element.

        Inputs are begins, ends and values of each ragged tensor, then one id for each. A tensor of one row is
        broadcast.

        Args:
            inputs: any element type but string.
        """

    @staticmethod
    def equal_str(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        other_begins: Operand,
        other_ends: Operand,
        other_chars: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """EqualStr of extension. 1 where two strings are equal, else 0. Where a tensor has fewer strings, its first one
        is compared.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            other_begins: i32.
            other_ends: i32.
            other_chars: u8, rank 1.
        """

    @staticmethod
    def fuze_ragged(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """FuzeRagged of extension. Begin and end of each row as one string: those of its first and of its last string.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32, rank 1.
            ends: i32, rank 1.
        """

    @staticmethod
    def normalize_unicode(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        skips: Operand | None = None,
        *,
        normalization_form: Literal["NFC", "NFD", "NFKC", "NFKD"] = "NFD",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """NormalizeUnicode of extension. Strings in a normal form of Unicode, by rules as in CharsMapNormalization.
        Strings that ``skips`` marks stay as they are.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips: boolean.
        """

    @staticmethod
    def ragged_tensor_pack(
        begins: Operand,
        ends: Operand,
        data: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RaggedTensorPack of extension. The flat tensor of a ragged tensor; begins and ends are dropped.

        Args:
            begins: i32.
            ends: i32.
            data: any element type.
        """

    @staticmethod
    def ragged_to_dense(
        begins: Operand,
        ends: Operand,
        data: Operand,
        size: Operand,
        default: Operand,
        right: Operand | None = None,
        *,
        pad_right: bool = True,
        m_pad_max_length: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """RaggedToDense of extension. Rows padded with ``default``, or cut, to ``size``; and a mask, which is true
        where the elements are those of a row. ``right`` takes precedence over ``pad_right``.

        With ``m_pad_max_length`` OpenVINO reads ``size`` elements from the begin of each row, whatever its end is.

        Args:
            begins: i32.
            ends: i32.
            data: any element type but string, rank 1 or more.
            size: an integer type, rank 0, or 1 with a single element.
            default: any element type but string, rank 0, or 1 with a single element.
            right: boolean, rank 0, or 1 with a single element.
        """

    @staticmethod
    def ragged_to_ragged(
        row_ids: Operand,
        size: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor]:
        """RaggedToRagged of extension. Begins and ends of ``size`` rows; ``row_ids`` has the row of each element, in
        ascending order.

        Args:
            row_ids: i32, rank 1.
            size: i32, rank 0, or 1 with a single element.
        """

    @staticmethod
    def ragged_to_sparse(
        begins: Operand,
        ends: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """RaggedToSparse of extension. The row and the column of each element.

        Args:
            begins: i32.
            ends: i32.
        """

    @staticmethod
    def regex_normalization(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *skips_and_patterns: Operand,
        global_replace: bool = True,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """RegexNormalization of extension. Strings in which the matches of a pattern, or the first one, are replaced.

        The last two inputs are the pattern and the replacement, in which ``$1`` is a group. Strings that ``skips``,
        the input before them, marks stay as they are.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips_and_patterns: any element type but string.
        """

    @staticmethod
    def regex_split(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *skips_and_pattern: Operand,
        behaviour: Literal["remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"] = "remove",
        invert: bool = False,
        max_splits: int = -1,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """RegexSplit of extension. Strings split at the matches of a pattern, in the same rows.

        The matches are removed, isolated, or merged with the part before or after them; "contiguous" isolates runs
        of matches. With ``invert`` the parts between matches are treated so. The pattern is the sixth input. Skips
        before it mark strings that stay whole; three inputs after it are strings that stay whole. After
        ``max_splits`` parts the next part is the rest of the string. OpenVINO returns one row for a batch of which
        every string is empty.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips_and_pattern: any element type but string.
        """

    @staticmethod
    def sentencepiece_detokenizer(
        model: Operand,
        ids: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """SentencepieceDetokenizer of extension. The text of the token ids of each row; ids from the size of the
        vocabulary on are left out.

        Args:
            model: u8, rank 1.
            ids: i32, rank 2.
        """

    @staticmethod
    def sentencepiece_stream_detokenizer(
        model: Operand,
        ids: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """SentencepieceStreamDetokenizer of extension. The pieces of the token ids of each row, bytes for tokens such
        as "<0x0A>", and U+2581 for spaces.

        Args:
            model: u8, rank 1.
            ids: i32, rank 2.
        """

    @staticmethod
    def sentencepiece_tokenizer(
        model: Operand,
        *strings_and_special: Operand,
        nbest_size: int = 0,
        alpha: float = 1.0,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """SentencepieceTokenizer of extension. Token ids of strings by a model of SentencePiece, as a sparse matrix:
        indices, values and shape.

        The strings are a tensor of strings, or begins, ends and chars. Begins, ends, chars and ids of special tokens
        may follow: these are split off first, and each part between them has its own begin of sequence. ``alpha`` is
        for sampling, which other values of ``nbest_size`` than 0 and 1 ask for, and which is not supported.

        Args:
            model: u8, rank 1.
            strings_and_special: any element type.
        """

    @staticmethod
    def special_tokens_split(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *skips_and_pattern: Operand,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """SpecialTokensSplit of extension. Special tokens split off, in the same rows, and a mask that is true for
        them.

        A special token is the group of a match of the pattern, the last input; the rest of the match is left out.
        Strings that ``skips``, the input before it, marks stay whole.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            skips_and_pattern: any element type but string.
        """

    @staticmethod
    def string_tensor_pack(
        begins: Operand,
        ends: Operand,
        symbols: Operand,
        *,
        mode: Literal["begins_ends"] = "begins_ends",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringTensorPack of extension. Strings decoded from UTF-8, as in StringTensorPack-15.

        Args:
            begins: an integer type.
            ends: an integer type.
            symbols: u8, rank 1.
        """

    @staticmethod
    def string_tensor_unpack(
        data: Operand,
        *,
        mode: Literal["begins_ends"] = "begins_ends",
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """StringTensorUnpack of extension. The offsets and the UTF-8 bytes of strings, as in StringTensorUnpack-15.

        Args:
            data: string.
        """

    @staticmethod
    def string_to_hash_bucket(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *,
        num_buckets: int,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """StringToHashBucket of extension. The FarmHash of each string modulo ``num_buckets``.

        Args:
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
        """

    @staticmethod
    def trie_tokenizer(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        indices: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """TrieTokenizer of extension. Token ids of strings: the longest token at each position, as in RWKV.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            indices: i32, rank 1.
        """

    @staticmethod
    def truncate(
        *inputs: Operand,
        m_num_inputs: int = 0,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, ...]:
        """Truncate of extension. Rows of one or two ragged tensors cut so that a row, or a pair of rows, has at most
        ``max_length`` elements.

        Inputs are begins, ends and values of each ragged tensor, then max_length, the side that is cut ("left" or
        "right") and the mode ("only_first", "only_second" or "longest_first") as UTF-8. The mode counts for pairs
        alone.

        Args:
            inputs: any element type but string.
        """

    @staticmethod
    def utf8_validate(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        *,
        replace_mode: bool = False,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """UTF8Validate of extension. Bytes that are not UTF-8 replaced by U+FFFD, or left out.

        Args:
            begins: i32, rank 1.
            ends: i32, rank 1.
            chars: u8, rank 1.
        """

    @staticmethod
    def unigram_tokenizer(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        scores: Operand,
        *,
        byte_fallback: bool = False,
        unk_token_id: int = 0,
        fuse_unk: bool = False,
        min_score: float = float("inf"),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """UnigramTokenizer of extension. Token ids of words: the sequence of tokens with the largest sum of scores,
        computed in f32.

        A character without a token is ``unk_token_id``, with a score 10 below the smallest; adjacent ones are
        joined. OpenVINO does not read ``byte_fallback``, ``fuse_unk`` and ``min_score``.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            scores: f32, rank 1.
        """

    @staticmethod
    def vocab_decoder(
        ids: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        skipped: Operand | None = None,
        *,
        skip_tokens: Sequence[int] = (),
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """VocabDecoder of extension. The string of each token id; ids that are not in the vocabulary, or are skipped,
        have empty strings.

        ``skipped`` takes precedence over ``skip_tokens``. A row without ids has one empty string.

        Args:
            ids: i32, rank 2.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            skipped: i32, rank 1.
        """

    @staticmethod
    def vocab_encoder(
        begins: Operand,
        ends: Operand,
        chars: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        values: Operand,
        default: Operand,
        *,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """VocabEncoder of extension. The value of each string in a vocabulary, or ``default``; of equal keys the first
        counts.

        Args:
            begins: i32, rank 1.
            ends: i32, rank 1.
            chars: u8, rank 1.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            values: i32 or i64, rank 1.
            default: i32 or i64, rank 0, or 1 with a single element.
        """

    @staticmethod
    def wordpiece_tokenizer(
        ragged_begins: Operand,
        ragged_ends: Operand,
        begins: Operand,
        ends: Operand,
        chars: Operand,
        vocab_begins: Operand,
        vocab_ends: Operand,
        vocab_chars: Operand,
        unknown: Operand,
        *,
        suffix_indicator: str = "##",
        max_bytes_per_word: int = 100,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> tuple[Tensor, Tensor, Tensor]:
        """WordpieceTokenizer of extension. Token ids of words by the longest matches from the left; a word without
        them, or a long one, is ``unknown``.

        In the vocabulary every token but the first of a word begins with ``suffix_indicator``.

        Args:
            ragged_begins: i32.
            ragged_ends: i32.
            begins: i32.
            ends: i32.
            chars: u8, rank 1.
            vocab_begins: i32.
            vocab_ends: i32.
            vocab_chars: u8, rank 1.
            unknown: i32 or i64, rank 0, or 1 with a single element.
        """

class ExtensionOnednn:
    """The operations of the namespace onednn."""

    @staticmethod
    def conv_transpose(
        input: Operand,
        filter: Operand,
        bias: Operand | None = None,
        *,
        strides: Sequence[int],
        pads_begin: Sequence[int],
        pads_end: Sequence[int],
        dilations: Sequence[int],
        auto_pad: Literal["none", "same_upper", "same_lower", "valid"] = "none",
        output_padding: str = "",
        groups: int = 1,
        data_format: Literal["NXC", "NCX"] = "NXC",
        filter_format: Literal["XIO", "OIX", "XOI", "IOX"] | None = None,
        weights_format: Literal["XIO", "OIX", "XOI", "IOX"] | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
    ) -> Tensor:
        """ConvTranspose of onednn. Transposed convolution; X stands for the spatial axes, I for all input channels, O
        for the output channels of a group.

        The filter's layout is ``filter_format``, which was later renamed ``weights_format``; XIO where neither is
        given. Source: oneDNN Graph ConvTranspose-1, and ``shape_infer.cpp`` for what O and I count.

        Args:
            input: f32, f16 or bf16, rank 3 or more.
            filter: f32, f16 or bf16, rank 3 or more.
            bias: f32, f16 or bf16, rank 1.
        """

opset1: Opset1
opset2: Opset2
opset3: Opset3
opset4: Opset4
opset5: Opset5
opset6: Opset6
opset7: Opset7
opset8: Opset8
opset9: Opset9
opset10: Opset10
opset11: Opset11
opset12: Opset12
opset13: Opset13
opset14: Opset14
opset15: Opset15
opset16: Opset16
opset17: Opset17

@overload
def extension(namespace: Literal["extension"]) -> ExtensionExtension: ...
@overload
def extension(namespace: Literal["irexec"]) -> ExtensionIrexec: ...
@overload
def extension(namespace: Literal["onednn"]) -> ExtensionOnednn: ...
@overload
def extension(namespace: str) -> Any: ...

abs = Opset17.abs
acos = Opset17.acos
acosh = Opset17.acosh
adaptive_avg_pool = Opset17.adaptive_avg_pool
adaptive_max_pool = Opset17.adaptive_max_pool
add = Opset17.add
asin = Opset17.asin
asinh = Opset17.asinh
assign = Opset17.assign
atan = Opset17.atan
atanh = Opset17.atanh
avg_pool = Opset17.avg_pool
bgr_to_nv12 = Opset17.bgr_to_nv12
batch_norm_inference = Opset17.batch_norm_inference
batch_to_space = Opset17.batch_to_space
binary_convolution = Opset17.binary_convolution
bitwise_and = Opset17.bitwise_and
bitwise_left_shift = Opset17.bitwise_left_shift
bitwise_not = Opset17.bitwise_not
bitwise_or = Opset17.bitwise_or
bitwise_right_shift = Opset17.bitwise_right_shift
bitwise_xor = Opset17.bitwise_xor
broadcast = Opset17.broadcast
bucketize = Opset17.bucketize
ctc_greedy_decoder = Opset17.ctc_greedy_decoder
ctc_greedy_decoder_seq_len = Opset17.ctc_greedy_decoder_seq_len
ctc_loss = Opset17.ctc_loss
ceiling = Opset17.ceiling
clamp = Opset17.clamp
col2im = Opset17.col2im
concat = Opset17.concat
convert = Opset17.convert
convert_like = Opset17.convert_like
convert_promote_types = Opset17.convert_promote_types
convolution = Opset17.convolution
convolution_backprop_data = Opset17.convolution_backprop_data
cos = Opset17.cos
cosh = Opset17.cosh
cum_sum = Opset17.cum_sum
dft = Opset17.dft
deformable_convolution = Opset17.deformable_convolution
deformable_psroi_pooling = Opset17.deformable_psroi_pooling
depth_to_space = Opset17.depth_to_space
detection_output = Opset17.detection_output
divide = Opset17.divide
einsum = Opset17.einsum
elu = Opset17.elu
embedding_bag_offsets = Opset17.embedding_bag_offsets
embedding_bag_offsets_sum = Opset17.embedding_bag_offsets_sum
embedding_bag_packed = Opset17.embedding_bag_packed
embedding_bag_packed_sum = Opset17.embedding_bag_packed_sum
embedding_segments_sum = Opset17.embedding_segments_sum
equal = Opset17.equal
erf = Opset17.erf
erfinv = Opset17.erfinv
exp = Opset17.exp
experimental_detectron_detection_output = Opset17.experimental_detectron_detection_output
experimental_detectron_generate_proposals_single_image = Opset17.experimental_detectron_generate_proposals_single_image
experimental_detectron_prior_grid_generator = Opset17.experimental_detectron_prior_grid_generator
experimental_detectron_roi_feature_extractor = Opset17.experimental_detectron_roi_feature_extractor
experimental_detectron_topk_rois = Opset17.experimental_detectron_topk_rois
extract_image_patches = Opset17.extract_image_patches
eye = Opset17.eye
fake_convert = Opset17.fake_convert
fake_quantize = Opset17.fake_quantize
floor = Opset17.floor
floor_mod = Opset17.floor_mod
grn = Opset17.grn
gru_cell = Opset17.gru_cell
gru_sequence = Opset17.gru_sequence
gather = Opset17.gather
gather_elements = Opset17.gather_elements
gather_nd = Opset17.gather_nd
gather_tree = Opset17.gather_tree
gelu = Opset17.gelu
generate_proposals = Opset17.generate_proposals
greater = Opset17.greater
greater_equal = Opset17.greater_equal
grid_sample = Opset17.grid_sample
group_convolution = Opset17.group_convolution
group_convolution_backprop_data = Opset17.group_convolution_backprop_data
group_normalization = Opset17.group_normalization
grouped_matmul = Opset17.grouped_matmul
hsigmoid = Opset17.hsigmoid
hswish = Opset17.hswish
hard_sigmoid = Opset17.hard_sigmoid
i420_to_bgr = Opset17.i420_to_bgr
i420_to_rgb = Opset17.i420_to_rgb
idft = Opset17.idft
irdft = Opset17.irdft
istft = Opset17.istft
identity = Opset17.identity
interpolate = Opset17.interpolate
inverse = Opset17.inverse
is_finite = Opset17.is_finite
is_inf = Opset17.is_inf
is_nan = Opset17.is_nan
lrn = Opset17.lrn
lstm_cell = Opset17.lstm_cell
lstm_sequence = Opset17.lstm_sequence
less = Opset17.less
less_equal = Opset17.less_equal
log = Opset17.log
log_softmax = Opset17.log_softmax
logical_and = Opset17.logical_and
logical_not = Opset17.logical_not
logical_or = Opset17.logical_or
logical_xor = Opset17.logical_xor
mvn = Opset17.mvn
matmul = Opset17.matmul
matrix_nms = Opset17.matrix_nms
max_pool = Opset17.max_pool
maximum = Opset17.maximum
minimum = Opset17.minimum
mish = Opset17.mish
mod = Opset17.mod
multiclass_nms = Opset17.multiclass_nms
multinomial = Opset17.multinomial
multiply = Opset17.multiply
nms_rotated = Opset17.nms_rotated
nv12_to_bgr = Opset17.nv12_to_bgr
nv12_to_rgb = Opset17.nv12_to_rgb
negative = Opset17.negative
non_max_suppression = Opset17.non_max_suppression
non_zero = Opset17.non_zero
normalize_l2 = Opset17.normalize_l2
not_equal = Opset17.not_equal
one_hot = Opset17.one_hot
prelu = Opset17.prelu
psroi_pooling = Opset17.psroi_pooling
pad = Opset17.pad
power = Opset17.power
prior_box = Opset17.prior_box
prior_box_clustered = Opset17.prior_box_clustered
proposal = Opset17.proposal
rdft = Opset17.rdft
rgb_to_nv12 = Opset17.rgb_to_nv12
rnn_cell = Opset17.rnn_cell
rnn_sequence = Opset17.rnn_sequence
roi_align = Opset17.roi_align
roi_align_rotated = Opset17.roi_align_rotated
roi_pooling = Opset17.roi_pooling
random_uniform = Opset17.random_uniform
range = Opset17.range
read_value = Opset17.read_value
reduce_l1 = Opset17.reduce_l1
reduce_l2 = Opset17.reduce_l2
reduce_logical_and = Opset17.reduce_logical_and
reduce_logical_or = Opset17.reduce_logical_or
reduce_max = Opset17.reduce_max
reduce_mean = Opset17.reduce_mean
reduce_min = Opset17.reduce_min
reduce_prod = Opset17.reduce_prod
reduce_sum = Opset17.reduce_sum
region_yolo = Opset17.region_yolo
relu = Opset17.relu
reorg_yolo = Opset17.reorg_yolo
reshape = Opset17.reshape
reverse = Opset17.reverse
reverse_sequence = Opset17.reverse_sequence
roll = Opset17.roll
round = Opset17.round
stft = Opset17.stft
scaled_dot_product_attention = Opset17.scaled_dot_product_attention
scatter_elements_update = Opset17.scatter_elements_update
scatter_nd_update = Opset17.scatter_nd_update
scatter_update = Opset17.scatter_update
search_sorted = Opset17.search_sorted
segment_max = Opset17.segment_max
select = Opset17.select
selu = Opset17.selu
shape_of = Opset17.shape_of
shuffle_channels = Opset17.shuffle_channels
sigmoid = Opset17.sigmoid
sign = Opset17.sign
sin = Opset17.sin
sinh = Opset17.sinh
slice = Opset17.slice
slice_scatter = Opset17.slice_scatter
softplus = Opset17.softplus
softsign = Opset17.softsign
softmax = Opset17.softmax
space_to_batch = Opset17.space_to_batch
space_to_depth = Opset17.space_to_depth
sparse_fill_empty_rows = Opset17.sparse_fill_empty_rows
split = Opset17.split
sqrt = Opset17.sqrt
squared_difference = Opset17.squared_difference
squeeze = Opset17.squeeze
strided_slice = Opset17.strided_slice
string_tensor_pack = Opset17.string_tensor_pack
string_tensor_unpack = Opset17.string_tensor_unpack
subtract = Opset17.subtract
swish = Opset17.swish
tan = Opset17.tan
tanh = Opset17.tanh
tile = Opset17.tile
topk = Opset17.topk
transpose = Opset17.transpose
unique = Opset17.unique
unsqueeze = Opset17.unsqueeze
variadic_split = Opset17.variadic_split
xor = Opset17.xor
as_string = ExtensionIrexec.as_string
bpe_tokenizer = ExtensionExtension.bpe_tokenizer
byte_fallback = ExtensionExtension.byte_fallback
bytes_to_chars = ExtensionExtension.bytes_to_chars
case_fold = ExtensionExtension.case_fold
chars_map_normalization = ExtensionExtension.chars_map_normalization
chars_to_bytes = ExtensionExtension.chars_to_bytes
combine_segments = ExtensionExtension.combine_segments
conv_transpose = ExtensionOnednn.conv_transpose
equal_str = ExtensionExtension.equal_str
fuze_ragged = ExtensionExtension.fuze_ragged
normalize_unicode = ExtensionExtension.normalize_unicode
ragged_tensor_pack = ExtensionExtension.ragged_tensor_pack
ragged_to_dense = ExtensionExtension.ragged_to_dense
ragged_to_ragged = ExtensionExtension.ragged_to_ragged
ragged_to_sparse = ExtensionExtension.ragged_to_sparse
regex_full_match = ExtensionIrexec.regex_full_match
regex_normalization = ExtensionExtension.regex_normalization
regex_split = ExtensionExtension.regex_split
sentencepiece_detokenizer = ExtensionExtension.sentencepiece_detokenizer
sentencepiece_stream_detokenizer = ExtensionExtension.sentencepiece_stream_detokenizer
sentencepiece_tokenizer = ExtensionExtension.sentencepiece_tokenizer
special_tokens_split = ExtensionExtension.special_tokens_split
string_concat = ExtensionIrexec.string_concat
string_lookup = ExtensionIrexec.string_lookup
string_normalizer = ExtensionIrexec.string_normalizer
string_split = ExtensionIrexec.string_split
string_to_hash_bucket = ExtensionExtension.string_to_hash_bucket
string_to_number = ExtensionIrexec.string_to_number
string_tokenizer = ExtensionIrexec.string_tokenizer
trie_tokenizer = ExtensionExtension.trie_tokenizer
truncate = ExtensionExtension.truncate
utf8_validate = ExtensionExtension.utf8_validate
unigram_tokenizer = ExtensionExtension.unigram_tokenizer
vocab_decoder = ExtensionExtension.vocab_decoder
vocab_encoder = ExtensionExtension.vocab_encoder
wordpiece_tokenizer = ExtensionExtension.wordpiece_tokenizer
