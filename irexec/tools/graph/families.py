"""Families of operations, each with its colours."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from irexec.errors import UnsupportedError
from irexec.schema.registry import resolve


@dataclass(frozen=True)
class Family:
    """A family of operations, drawn in one colour.

    Attributes:
        name: short, for programs.
        title: for people.
        fill, stroke: colours on a light page.
        dark_fill, dark_stroke: on a dark one.
    """

    name: str
    title: str
    fill: str
    stroke: str
    dark_fill: str
    dark_stroke: str


FAMILIES = {
    row[0]: Family(*row)
    for row in (
        ("input", "input, output, state", "#e3e6ea", "#56616e", "#343b44", "#a5b0bd"),
        ("convolution", "convolution", "#d3e4fb", "#1f62b5", "#1b3557", "#79b1f5"),
        ("product", "matrix product, attention", "#ded9fa", "#5644b8", "#302a5c", "#aa9cf3"),
        ("recurrent", "recurrent cell", "#f3d6f2", "#94328f", "#4d2249", "#e08fdb"),
        ("activation", "activation", "#fbdcd8", "#b5372a", "#552520", "#f29488"),
        ("arithmetic", "element-wise arithmetic", "#fde8c9", "#996000", "#493414", "#e7b45c"),
        ("normalization", "normalization", "#d4efd9", "#207a37", "#1c4127", "#74cc8b"),
        ("pooling", "pooling, resizing", "#cdeeee", "#12747a", "#164044", "#66c9cf"),
        ("movement", "reshaping, moving, gathering", "#eeeacb", "#766b10", "#3b3813", "#cdbf55"),
        ("reduction", "reduction, sorting", "#e6dccf", "#76532a", "#40311f", "#cfa879"),
        ("detection", "boxes, detection", "#fbd6e4", "#ad2561", "#52203a", "#f08cb6"),
        ("quantization", "conversion, quantization", "#e2f0c4", "#567a06", "#333f14", "#aed25a"),
        ("control", "control flow, bodies", "#d9d9d9", "#303030", "#3d3d3d", "#dddddd"),
        ("constant", "constant", "#f4f4f4", "#7d7d7d", "#262626", "#9a9a9a"),
        ("other", "other", "#f0f0f0", "#5f5f5f", "#2e2e2e", "#bababa"),
    )
}
"""The families by name, in the order of legends."""

_OF_FILES = {
    "convolution": ("convolution", "conv_transpose", "convolution_backprop", "deformable"),
    "product": ("linear_algebra", "attention", "einsum"),
    "recurrent": ("recurrent",),
    "activation": ("activation",),
    "arithmetic": ("arithmetic", "elementwise", "logic", "unary"),
    "normalization": ("normalization",),
    "pooling": ("pooling", "interpolate", "grid_sample", "roi"),
    "movement": ("blocks", "broadcasting", "gather", "movement", "scatter", "shape", "slicing"),
    "reduction": ("reduction", "searching", "sorting"),
    "detection": ("detection_output", "detectron", "nms", "nms_multiclass", "prior_box", "proposals", "yolo"),
    "quantization": ("conversion", "quantization"),
    "control": ("control",),
    "input": ("state",),
    "other": ("colour", "ctc", "generation", "random", "signal", "sparse", "strings"),
}
"""Families by file of irexec.ops; by file of irexec.reference for kernels without a file in irexec.ops."""
_OF_TYPES = {
    "Parameter": "input", "Result": "input", "Constant": "constant", "ReadValue": "input", "Assign": "input",
    "Softmax": "activation",
    "LogSoftmax": "activation", "Sigmoid": "activation", "Tanh": "activation", "ReLU": "activation",
    "Relu": "activation",
    "Mish": "activation", "HSwish": "activation", "HSigmoid": "activation", "SoftPlus": "activation",
    "SoftSign": "activation",
    "Range": "movement", "Pad": "movement",
}  # fmt: skip
_BY_FILE = {file: name for name, files in _OF_FILES.items() for file in files}


@functools.lru_cache(maxsize=1024)
def family_of(type: str, version: str) -> str:
    """The name of the family of an operation; "other" for an unknown operation."""
    if type in _OF_TYPES:
        return _OF_TYPES[type]
    try:
        file = resolve(type, version).kernel.__module__.rpartition(".")[2]
    except UnsupportedError:
        return "other"
    return _BY_FILE.get(file, "other")
