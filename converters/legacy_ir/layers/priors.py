"""PriorBox and PriorBoxClustered: the operations, of the sizes of both inputs."""

from __future__ import annotations

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.shapes import strided_slice
from converters.legacy_ir.objections import NoEquivalentError
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value
from irexec.schema.attributes import Floats


@translates("PriorBox")
def prior_box(
    layer: Layer, data: Value, image: Value, *, min_size: Floats = (), max_size: Floats = (), aspect_ratio: Floats = (),
    flip: bool = False, clip: bool = False, step: float = 0.0, offset: float, variance: Floats = (),
    scale_all_sizes: bool = True, fixed_ratio: Floats = (), fixed_size: Floats = (), density: Floats = (),
) -> Value:  # fmt: skip
    """Boxes of several sizes and ratios around each cell.

    Without ``scale_all_sizes`` the ratios are for the first size alone, and come last. The engines then take sizes and
    step in pixels, the operation as fractions of the image's height; it ignores max_size.
    """
    if not scale_all_sizes:
        if max_size:
            raise NoEquivalentError("no operation has boxes of max_size without scale_all_sizes")
        pixels = layer.shape(image)[2]
        check(pixels > 0, "the image has no rows")
        min_size, step = tuple(size / pixels for size in min_size), step / pixels
    if fixed_ratio and density:
        layer.note(
            legacy_codes.ENGINES_DIFFER, "with fixed_ratio and density the engines leave part of the boxes unwritten"
        )
    boxes = layer.emit(
        "PriorBox", _spatial_sizes(layer, data), _spatial_sizes(layer, image), version=1, min_size=min_size,
        max_size=max_size, aspect_ratio=aspect_ratio, flip=flip, clip=clip, step=step, offset=offset,
        variance=variance, scale_all_sizes=scale_all_sizes, fixed_ratio=fixed_ratio, fixed_size=fixed_size,
        density=density,
    )  # fmt: skip
    return layer.emit("Unsqueeze", boxes, layer.constant([0], I64), version=1)


@translates("PriorBoxClustered")
def prior_box_clustered(
    layer: Layer, data: Value, image: Value, *, width: Floats, height: Floats, clip: bool = False, step: float = 0.0,
    step_w: float = 0.0, step_h: float = 0.0, offset: float, variance: Floats = (), img_w: int = 0, img_h: int = 0,
) -> Value:  # fmt: skip
    """A box of each width and height around each cell; ``step`` stands for steps that are 0."""
    size = _spatial_sizes(layer, image)
    if img_w or img_h:
        shape = layer.shape(image)
        size = layer.constant([img_h or shape[2], img_w or shape[3]], I64)
    boxes = layer.emit(
        "PriorBoxClustered", _spatial_sizes(layer, data), size, version=1, width=width, height=height, clip=clip,
        step_w=step_w or step, step_h=step_h or step, offset=offset, variance=variance,
    )  # fmt: skip
    return layer.emit("Unsqueeze", boxes, layer.constant([0], I64), version=1)


def _spatial_sizes(layer: Layer, value: Value) -> Value:
    """Height and width as a tensor."""
    check(layer.rank(value) == 4, f"an input has rank {layer.rank(value)}, expected 4")
    return strided_slice(layer, layer.emit("ShapeOf", value, version=3, output_type=I64), [2], [4])
