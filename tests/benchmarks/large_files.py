"""Files of any number of layers, as text of an .xml: what the measurements of reading read, and the tests of its counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

SHAPE = (1, 8, 4, 4)
PRECISIONS = {"f32": ("FP32", 4), "i64": ("I64", 8)}


class Port(NamedTuple):
    """An output port: the ids of its layer and its own, and what it declares."""

    layer: int
    id: int
    shape: tuple[int, ...]
    element: str

    def text(self, id: int, names: str = "") -> str:
        """A port of the same declaration, as XML text."""
        precision = PRECISIONS[self.element][0]
        given = f' names="{names}"' if names else ""
        dims = "".join(f"\n\t\t\t\t\t<dim>{size}</dim>" for size in self.shape)
        return f'\t\t\t\t<port id="{id}" precision="{precision}"{given}>{dims}\n\t\t\t\t</port>\n'


class NetText:
    """The text of an IR, layer by layer, in the spelling and white space of OpenVINO's own writer."""

    def __init__(self) -> None:
        self._layers: list[str] = []
        self._edges: list[str] = []

    def layer(
        self, type: str, inputs: Sequence[Port] = (), *, data: str = "", shape: Sequence[int] | None = SHAPE, element: str = "f32",
        outputs: int = 1, name: str = "", named: bool = True, inside: str = "",
    ) -> list[Port]:  # fmt: skip
        """Add a layer of opset1; gives its outputs.

        Args:
            type: the operation.
            inputs: the outputs that it takes.
            data: the attributes, as XML text.
            shape: of each output.
            element: of each output.
            outputs: the number of output ports.
            name: the layer's name; by default its type and id.
            named: whether the outputs have tensor names.
            inside: further child elements, as XML text.
        """
        number, first = len(self._layers), len(inputs)
        name = name or f"{type}_{number}"
        made = [Port(number, first + i, tuple(shape or ()), element) for i in range(outputs)]
        parts = [f'\t\t<layer id="{number}" name="{name}" type="{type}" version="opset1">\n']
        parts += [f"\t\t\t<data {data} />\n"] if data else []
        parts += [f"\t\t\t{inside}\n"] if inside else []
        if inputs:
            parts += ["\t\t\t<input>\n", *(port.text(i) for i, port in enumerate(inputs)), "\t\t\t</input>\n"]
        if made:
            parts += [
                "\t\t\t<output>\n",
                *(port.text(port.id, f"{name}:{port.id - first}" * named) for port in made),
                "\t\t\t</output>\n",
            ]
        self._layers.append("".join([*parts, "\t\t</layer>\n"]))
        for i, source in enumerate(inputs):
            self.edge(source.layer, source.id, number, i)
        return made

    def edge(self, from_layer: int, from_port: int, to_layer: int, to_port: int) -> None:
        """Add an edge, whether or not the ports exist."""
        ids = f'from-layer="{from_layer}" from-port="{from_port}" to-layer="{to_layer}" to-port="{to_port}"'
        self._edges.append(f"\t\t<edge {ids} />\n")

    def parameter(self) -> Port:
        """Add a Parameter."""
        return self.layer("Parameter", data=f'shape="{",".join(map(str, SHAPE))}" element_type="f32"')[0]

    def constant(self, sizes: Sequence[int], *, element: str = "f32", offset: int = 0) -> Port:
        """Add a constant."""
        size = prod(sizes) * PRECISIONS[element][1]
        text = f'element_type="{element}" shape="{", ".join(map(str, sizes))}" offset="{offset}" size="{size}"'
        return self.layer("Const", data=text, shape=sizes, element=element, named=False)[0]

    def result(self, source: Port) -> None:
        """Add a Result."""
        self.layer("Result", [source], outputs=0)

    def text(self) -> bytes:
        """The whole file."""
        head = '<?xml version="1.0"?>\n<net name="large" version="11">\n\t<layers>\n'
        return "".join(
            [head, *self._layers, "\t</layers>\n\t<edges>\n", *self._edges, "\t</edges>\n\t<rt_info />\n</net>\n"]
        ).encode()


def chain(layers: int) -> bytes:
    """ReLU and Sigmoid one after the other."""
    net = NetText()
    value = net.parameter()
    for i in range(layers - 2):
        (value,) = net.layer("Sigmoid" if i % 2 else "ReLU", [value])
    net.result(value)
    return net.text()


def wide(layers: int) -> bytes:
    """One value that all other layers take, and a Concat of all of them: as many consumers, and as many inputs."""
    net = NetText()
    source = net.parameter()
    branches = [net.layer("ReLU", [source])[0] for _ in range(layers - 3)]
    batch, channels, *rest = SHAPE
    net.result(net.layer("Concat", branches, data='axis="1"', shape=(batch, channels * len(branches), *rest))[0])
    return net.text()


FUSED = '<rt_info>\n\t\t\t\t<attribute name="fused_names" version="0" value="conv_{0}, bias_{0}" />\n\t\t\t</rt_info>'
CONVOLUTION = 'strides="1, 1" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1" auto_pad="explicit"'
MIXED_BYTES = 2304 + 32 + 8
"""The size of the .bin of ``mixed``: weights, a bias, an axis."""


def mixed(layers: int) -> bytes:
    """Blocks of ten layers: a convolution with its constants, an addition, an activation, a Split, a Concat, a product."""
    net = NetText()
    value = net.parameter()
    for i in range((layers - 2) // 10):
        weights = net.constant((8, 8, 3, 3))
        (value,) = net.layer("Convolution", [value, weights], data=CONVOLUTION, inside=FUSED.format(i))
        (value,) = net.layer("Add", [value, net.constant((1, 8, 1, 1), offset=2304)], data='auto_broadcast="numpy"')
        (value,) = net.layer("ReLU", [value])
        axis = net.constant((), element="i64", offset=2336)
        halves = net.layer("Split", [value, axis], data='num_splits="2"', outputs=2, shape=(1, 4, 4, 4))
        (value,) = net.layer("Concat", halves[::-1], data='axis="1"')
        (value,) = net.layer(
            "Multiply", [value, net.constant((1, 8, 1, 1), offset=2304)], data='auto_broadcast="numpy"'
        )
    net.result(value)
    return net.text()


KINDS: dict[str, Callable[[int], bytes]] = {"chain": chain, "wide": wide, "mixed": mixed}
"""The kinds of files by name, each a function of the number of layers."""


def weights(kind: str) -> bytes:
    """The .bin of such a file."""
    axis = (1).to_bytes(8, "little")
    return bytes(MIXED_BYTES - len(axis)) + axis if kind == "mixed" else b""


def concat(inputs: int) -> bytes:
    """A Concat that takes one value again and again, and the value's many consumers."""
    net = NetText()
    source = net.parameter()
    batch, channels, *rest = SHAPE
    net.result(net.layer("Concat", [source] * inputs, data='axis="1"', shape=(batch, channels * inputs, *rest))[0])
    return net.text()


def equal_ids(layers: int) -> bytes:
    """A chain in which all layers have the same id: one finding for each."""
    return re.sub(rb'<layer id="\d+"', b'<layer id="7"', chain(layers))


def bad_edges(edges: int) -> bytes:
    """A chain of three layers with edges that come from and go to layers that do not exist."""
    net = NetText()
    net.result(net.parameter())
    for i in range(edges):
        net.edge(100 + i, i, 200 + i, i)
    return net.text()


def long_names(layers: int, characters: int = 10_000) -> bytes:
    """A chain in which every layer has a name of many characters, and so has every tensor."""
    net = NetText()
    value = net.parameter()
    for i in range(layers - 2):
        (value,) = net.layer("ReLU", [value], name=f"{i:0{characters}}")
    net.result(value)
    return net.text()


def long_attribute(characters: int) -> bytes:
    """A Reshape to a constant with an attribute, of a layer and of an unknown element, of many characters."""
    net = NetText()
    text = "1," * (characters // 2)
    (value,) = net.layer(
        "ReLU", [net.parameter()], data=f'unknown="{text}"', inside=f'<rt_info><attribute value="{text}" /></rt_info>'
    )
    net.result(value)
    return net.text()


def nested(depth: int, bodies: int = 1) -> bytes:
    """Ifs nested in Ifs, to a depth and with a number of them in each body; the else_body of one has no further If."""
    texts = ["".join(_branch(0, 0))]
    for level in range(1, depth + 1):
        texts.append("".join(_branch(level, bodies, texts[-1])))
    return f'<net name="nested" version="11">{texts[-1]}</net>'.encode()


_BODY_PORT = '<port id="{0}" precision="FP32"><dim>4</dim></port>'
_CONDITION_PORT = '<port id="{0}" precision="BOOL"></port>'
_MAPS = (
    '<input external_port_id="1" internal_layer_id="0"/><input external_port_id="0" internal_layer_id="1"/>'
    '<output external_port_id="2" internal_layer_id="2"/>'
)


def _branch(level: int, bodies: int, inner: str = "") -> list[str]:
    """The layers and edges of a graph that takes a vector and a condition and gives a vector, through an If at any level above 0."""
    layers = [
        '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>' f"<output>{_BODY_PORT.format(0)}</output></layer>",
        '<layer id="1" name="c" type="Parameter" version="opset1"><data shape="" element_type="boolean"/>'
        f"<output>{_CONDITION_PORT.format(0)}</output></layer>",
        f'<layer id="2" name="r" type="Result" version="opset1"><input>{_BODY_PORT.format(0)}</input></layer>',
    ]  # fmt: skip
    if level == 0:
        layers.append(
            f'<layer id="3" name="y" type="ReLU" version="opset1"><input>{_BODY_PORT.format(0)}</input>'
            f"<output>{_BODY_PORT.format(1)}</output></layer>"
        )
        ends = [(0, 0, 3, 0), (3, 1, 2, 0)]
    else:
        other = "".join(_branch(0, 0)) if bodies == 1 else inner
        layers.append(
            f'<layer id="3" name="if{level}" type="If" version="opset8"><input>{_CONDITION_PORT.format(0)}{_BODY_PORT.format(1)}</input>'
            f"<output>{_BODY_PORT.format(2)}</output><then_port_map>{_MAPS}</then_port_map><else_port_map>{_MAPS}</else_port_map>"
            f"<then_body>{inner}</then_body><else_body>{other}</else_body></layer>"
        )
        ends = [(1, 0, 3, 0), (0, 0, 3, 1), (3, 2, 2, 0)]
    edges = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in ends)
    return [f"<layers>{''.join(layers)}</layers>", f"<edges>{edges}</edges>"]


def tree(bodies: int) -> bytes:
    """A binary tree of Ifs with this number of bodies at its leaves."""
    return nested(bodies.bit_length() - 1, 2)


def sparse_weights(layers: int) -> bytes:
    """Constants that are each added, with a mebibyte from the offset of one to that of the next."""
    net = NetText()
    value = net.parameter()
    for i in range((layers - 2) // 2):
        (value,) = net.layer("Add", [value, net.constant(SHAPE, offset=i << 20)], data='auto_broadcast="numpy"')
    net.result(value)
    return net.text()
