"""The conditions of the differences by which a model is not read, compiled or run."""

from __future__ import annotations

from irexec.analysis.portability.conditions import CONDITIONS, always, applies
from irexec.analysis.portability.layer import Layer
from irexec.analysis.portability.shapes import aligned_at_the_end, is_aligned_at_the_start


@applies("IR951")
def _one_group(layer: Layer) -> bool:
    weights = layer.sizes(1)
    return weights is not None and len(weights) > 3 and weights[0] == 1 and (weights[1] != 1 or weights[2] != 1)


@applies("IR952")
def _axes(layer: Layer) -> bool:
    axes, shape = layer.ints(1), layer.sizes()
    if axes is None or shape is None or not axes or CONDITIONS["IR927"](layer):
        return False
    return axes != [1] and sorted(axes) != list(range(2, len(shape)))


@applies("IR953")
def _negative_axes(layer: Layer) -> bool:
    axes = layer.ints(3 if layer.definition.since == 4 else 2) if layer.definition.since != 1 else None
    return axes is not None and any(axis < 0 for axis in axes)


@applies("IR954")
def _does_not_fit(layer: Layer) -> bool:
    if not is_aligned_at_the_start(layer) or aligned_at_the_end(layer):
        return False
    if layer.definition.type in ("Subtract", "Divide", "Mod"):
        return layer.definition.type == "Subtract" or not layer.is_integer()
    return (layer.shape(1) or (1,))[-1] != 1


@applies("IR955")
def _no_group(layer: Layer) -> bool:
    return layer.says("group") is None or layer.says("deformable_group") is None


@applies("IR956")
def _no_activations(layer: Layer) -> bool:
    return layer.says("activations") is None


@applies("IR957")
def _background(layer: Layer) -> bool:
    attributes = layer.attributes
    return attributes is not None and attributes.decrease_label_id and attributes.background_label_id != 0


@applies("IR958")
def _adaptive(layer: Layer) -> bool:
    return layer["nms_eta"] != 1


applies("IR959")(always)


@applies("IR960")
def _unknown_rank(layer: Layer) -> bool:
    return (
        layer.is_of_the_model and layer.inference[layer.node.outputs[0]].shape is None if layer.node.outputs else False
    )


@applies("IR961")
def _any_axes(layer: Layer) -> bool:
    return layer.value(1) is None


@applies("IR962")
def _empty_batch(layer: Layer) -> bool:
    shape = layer.sizes()
    return bool(shape) and shape is not None and shape[0] == 0


@applies("IR963")
def _same_size(layer: Layer) -> bool:
    return -1 in (layer.ints(2) or ())


@applies("IR964")
def _unknown_length(layer: Layer) -> bool:
    shape = layer.sizes(2)
    return layer.has(2) and layer.value(2) is None and (shape is None or not isinstance(shape[0], int))


@applies("IR965")
def _empty_bag(layer: Layer) -> bool:
    offsets, indices = layer.ints(2), layer.shape(1)
    return offsets is None or indices is None or (bool(offsets) and offsets[-1] >= indices[0])


@applies("IR966")
def _padded_window(layer: Layer) -> bool:
    attributes = layer.attributes
    if attributes is None or attributes.auto_pad != "explicit" or not layer["exclude_pad"]:
        return False
    rank = len(attributes.kernel)
    dilations = getattr(attributes, "dilations", ()) or (1,) * rank
    extents = [dilation * (size - 1) + 1 for size, dilation in zip(attributes.kernel, dilations, strict=False)]
    return any(
        pad >= extent
        for pads in (attributes.pads_begin, attributes.pads_end)
        for pad, extent in zip(pads, extents, strict=False)
    )


@applies("IR967")
def _of_irexec(layer: Layer) -> bool:
    return isinstance(layer.definition.since, str)


@applies("IR968")
def _static_boxes(layer: Layer) -> bool:
    return layer.definition.since in (1, 3, 4)


@applies("IR969")
def _empty_range(layer: Layer) -> bool:
    if all(layer.value(i) is not None for i in range(3)):
        # Constant folding has the right result.
        return False
    if layer.value(1) is None and all(layer.is_computed_from_sizes(i) for i in range(2)):
        # A range from one length of a sequence to a longer one, as converters write it.
        return False
    start, stop, step = map(layer.bounds, range(3))
    return (step[1] > 0 and stop[0] < start[1]) or (step[0] < 0 and stop[1] > start[0])
