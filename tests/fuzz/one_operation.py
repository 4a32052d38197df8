"""The text and weights of a model of one operation, written without asking irexec whether it is sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from irexec.analysis.builder import packed
from irexec.dtypes.elements import element
from tests.fuzz import odd


def model_text(
    type: str, version: str, attributes: Mapping[str, str], inputs: Sequence[Mapping[str, Any]], outputs: int
) -> tuple[str, bytes]:
    """The .xml and the .bin.

    Args:
        inputs: "element" and "values" of a constant with its "shape", or "element" and "declared", the shape of a Parameter.
    """
    weights, layers, edges = b"", [], []
    for i, given in enumerate(inputs):
        if given["constant"]:
            raw = packed(
                odd.array(element(given["element"]), given["values"], given["shape"]), element(given["element"])
            ).raw.tobytes()
            shape = ",".join(map(str, given["shape"]))
            data = {
                "element_type": given["element"],
                "shape": shape,
                "offset": str(len(weights)),
                "size": str(len(raw)),
            }
            layers.append(layer(i, "Const", "opset1", data, 0, 1))
            weights += raw
        else:
            layers.append(
                layer(i, "Parameter", "opset1", {"shape": given["declared"], "element_type": given["element"]}, 0, 1)
            )
        edges.append((i, 0, len(inputs), i))
    last = len(inputs)
    layers.append(layer(last, type, version, attributes, last, outputs))
    for k in range(outputs):
        layers.append(layer(last + 1 + k, "Result", "opset1", {}, 1, 0))
        edges.append((last, last + k, last + 1 + k, 0))
    ends = "\n".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    body = "\n".join(layers)
    return f'<net name="n" version="11">\n<layers>\n{body}\n</layers>\n<edges>\n{ends}\n</edges>\n</net>\n', weights


def layer(number: int, type: str, version: str, attributes: Mapping[str, str], inputs: int, outputs: int) -> str:
    data = "".join(f" {key}={quoteattr(text)}" for key, text in attributes.items())
    ins = "".join(f'<port id="{i}"/>' for i in range(inputs))
    outs = "".join(f'<port id="{inputs + i}" precision="FP32"/>' for i in range(outputs))
    ports = (f"<input>{ins}</input>" if inputs else "") + (f"<output>{outs}</output>" if outputs else "")
    return f'<layer id="{number}" name="l{number}" type="{type}" version="{version}"><data{data}/>{ports}</layer>'
