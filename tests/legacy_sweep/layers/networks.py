"""Small networks of many layers, as in detectors and taggers of 2019."""

from __future__ import annotations

from typing import Any

from tests.legacy_sweep.network import Network, Port
from tests.legacy_sweep.registry import chance, generates, pick, size, values

RECENT = (5, 6, 7)


def _convolution(net: Network, x: Port, out: int, kernel: int, high: float = 0.5) -> Port:
    """A convolution that keeps the sizes, with weights up to ``high``."""
    batch, channels, height, width = x.shape
    pad = kernel // 2
    data: dict[str, Any] = {
        "kernel": [kernel] * 2, "strides": [1, 1], "pads_begin": [pad] * 2, "pads_end": [pad] * 2,
        "dilations": [1, 1], "group": 1, "output": out,
    }  # fmt: skip
    weights = values(net, (out, channels, kernel, kernel), -high, high)
    blobs = {"weights": weights, "biases": values(net, (out,), -0.5, 0.5)}
    return net.layer("Convolution", [x], [(batch, out, height, width)], data, blobs, gap=2)[0]


def _features(net: Network, image: Port) -> Port:
    """Convolutions with what stood between them; the engines do not clear the rest of blocks of 8 and 16 channels."""
    channels = image.shape[1]
    blobs = {"weights": values(net, (channels,), 0.5, 1.5), "biases": values(net, (channels,))}
    (x,) = net.layer("ScaleShift", [image], [image.shape], {}, blobs)
    x = _convolution(net, x, 16, 3)
    (x,) = net.layer("PReLU", [x], [x.shape], {"channel_shared": 0}, {"weights": values(net, (16,), 0, 0.5)})
    (y,) = net.layer("Norm", [x], [x.shape], {"alpha": 0.1, "beta": 0.75, "local-size": 5, "region": "across"})
    (x,) = net.layer("Eltwise", [x, y], [x.shape], {"operation": "sum", "coeff": [1.0, 0.5]})
    pooled = (x.shape[0], 16, *((n - 2) // 2 + 1 + (n - 2) % 2 for n in x.shape[2:]))
    data = {"kernel": [2, 2], "strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "rounding_type": "ceil"}
    (x,) = net.layer("Pooling", [x], [pooled], {**data, "pool-method": pick(net, "max", "avg"), "exclude-pad": True})
    (x,) = net.layer("Clamp", [_convolution(net, x, 16, 1)], [(x.shape[0], 16, *x.shape[2:])], {"min": 0, "max": 6})
    return x


@generates("detector", versions=RECENT)
def detector(net: Network) -> None:
    """Boxes of one map of features."""
    image = net.input(values(net, (1, 3, size(net, 9, 14), size(net, 9, 14)), -1, 1), name="data")
    x = _features(net, image)
    classes, priors, height, width = 3, 2, x.shape[2], x.shape[3]
    count = priors * height * width

    def head(kind: int) -> Port:
        # Scores of 1 that are equal may come in any order.
        y = _convolution(net, x, priors * kind, 3, 0.03)
        (y,) = net.layer("Permute", [y], [(1, height, width, priors * kind)], {"order": [0, 2, 3, 1]})
        return net.layer("Flatten", [y], [(1, count * kind)], {"axis": 1, "end_axis": -1})[0]

    locations = head(4)
    (logits,) = net.layer("Reshape", [head(classes)], [(1, count, classes)], {"dim": [0, -1, classes]})
    (scores,) = net.layer("SoftMax", [logits], [logits.shape], {"axis": 2})
    (scores,) = net.layer("Flatten", [scores], [(1, count * classes)], {"axis": 1, "end_axis": -1})
    data: dict[str, Any] = {"width": [3.0, 5.0], "height": [4.0, 3.0], "clip": 0, "flip": 0, "step": 0.0, "offset": 0.5}
    (boxes,) = net.layer(
        "PriorBoxClustered", [x, image], [(1, 2, count * 4)], data | {"variance": [0.1, 0.1, 0.2, 0.2]}
    )
    found = {
        "num_classes": classes, "background_label_id": 0, "top_k": 100, "keep_top_k": 10, "nms_threshold": 0.45,
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": 1, "confidence_threshold": 0.2,
        "variance_encoded_in_target": 0,
    }  # fmt: skip
    net.layer("DetectionOutput", [locations, scores, boxes], [(1, 1, 10, 7)], found, name="detections")


@generates("tagger", versions=RECENT)
def tagger(net: Network) -> None:
    """A recurrent layer over the columns of features, and a classifier of each."""
    image = net.input(values(net, (1, 1, 8, size(net, 6, 12)), -1, 1), name="data")
    x = _features(net, image)
    _, channels, height, steps = x.shape
    width, hidden = channels * height, 5
    (x,) = net.layer("Permute", [x], [(1, steps, channels, height)], {"order": [0, 3, 1, 2]})
    (x,) = net.layer("Reshape", [x], [(1, steps, width)], {"dim": [1, -1, width]})
    states = [net.input(values(net, (1, hidden), -1, 1)) for _ in range(2)]
    blobs = {"weights": values(net, (4 * hidden, width + hidden), -0.3, 0.3), "biases": values(net, (4 * hidden,))}
    data = {"hidden_size": hidden, "axis": 1, "direction": "Backward" if chance(net) else "Forward"}
    shapes = [(1, steps, hidden), (1, hidden), (1, hidden)]
    sequence, last, _ = net.layer("LSTMSequence", [x, *states], shapes, data, blobs)
    (flat,) = net.layer("Reshape", [sequence], [(steps, hidden)], {"dim": [-1, hidden]})
    weights = {"weights": values(net, (4, hidden)), "biases": values(net, (4,))}
    (logits,) = net.layer("FullyConnected", [flat], [(steps, 4)], {"out-size": 4}, weights, gap=2)
    net.layer("SoftMax", [logits], [logits.shape], {"axis": 1}, name="tags")
    net.layer("Activation", [last], [last.shape], {"type": "tanh"}, name="state")
