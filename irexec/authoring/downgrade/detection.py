"""Detection in older operations."""

from __future__ import annotations

from typing import Any

from irexec.authoring.downgrade.layer import REASONS, Layer, rewrites


@rewrites("NonMaxSuppression", 9)
def _nms_9(layer: Layer) -> Any:
    return layer.same(5)


@rewrites("NonMaxSuppression", 5)
def _nms_5(layer: Layer) -> Any:
    layer.refuse_unless(layer.read <= {0}, "NonMaxSuppression-4 gives neither scores nor a number of boxes")
    layer.refuse_unless(len(layer.inputs) < 6, "NonMaxSuppression-4 has no soft_nms_sigma")
    return layer.same(4)


REASONS["NonMaxSuppression", 4] = "NonMaxSuppression-3 limits the boxes of all classes together"


@rewrites("DetectionOutput", 8)
def _detection_output_8(layer: Layer) -> Any:
    """DetectionOutput-1 has the number of classes as an attribute."""
    classes, proposals = layer.sizes(1)[1], layer.sizes(2)[2]
    layer.refuse_unless(isinstance(classes, int) and isinstance(proposals, int), "the number of classes is not known")
    values = 4 if layer["normalized"] else 5
    return layer.same(1, num_classes=int(str(classes)) // (int(str(proposals)) // values))


@rewrites("PriorBox", 8)
def _prior_box_8(layer: Layer) -> Any:
    layer.refuse_unless(layer["min_max_aspect_ratios_order"], "PriorBox-1 has min_max_aspect_ratios_order alone")
    return layer.same(1, leave=["min_max_aspect_ratios_order"])


@rewrites("MulticlassNms", 9)
def _multiclass_nms_9(layer: Layer) -> Any:
    layer.refuse_unless(len(layer.inputs) == 2, "MulticlassNms-8 has no roisnum")
    return layer.same(8)


@rewrites("Proposal", 4)
def _proposal_4(layer: Layer) -> Any:
    layer.refuse_unless(1 not in layer.read, "Proposal-1 gives no scores")
    return layer.same(1)


@rewrites("Range", 4)
def _range_4(layer: Layer) -> Any:
    wanted = layer["output_type"]
    layer.refuse_unless(all(one.element is wanted for one in layer.inputs), "Range-1 has no output_type")
    return layer.same(1, leave=["output_type"])
