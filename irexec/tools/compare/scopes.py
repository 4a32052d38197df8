"""Tensors that were recorded by module of a PyTorch model, and the layers that its exporters made of each module.

A script records the tensors of every module. A recording has the keys ``module:SCOPE#CALL[INDEX]`` in the order in
which modules end, ``source:SCOPE#CALL`` with the keys of the tensors that the module was given, and
``input:NAME[INDEX]``. OpenVINO's frontend names layers ``__module.SCOPE/aten::op/Type``, the ONNX exporter by torch.jit
``/a/a.0/conv/Conv`` for the scope ``a.0.conv``, with ``_1`` behind a part for a second call; the one by torch.export
writes the scope beside the name. Layers of other frameworks have their names in a path, such as ``model/dense/BiasAdd``
of TensorFlow for the scope ``dense``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.io.files import new_file
from irexec.io.payload import module_of
from irexec.io.writer import check_script
from irexec.ir.dims import admits
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import grouped, readers
from irexec.tools.observing.sides import ModelSide

_KEY = re.compile(r"module:(?P<call>(?P<scope>[^#]*)#\d+)\[\d+\]")
_INPUT = re.compile(r"input:(?P<name>.*)\[(?P<index>\d+)\]")
_OF_OPENVINO = re.compile(r"__module\.(?P<scope>[^/]*)/")
_MADE_UP = re.compile(r"[A-Z][A-Za-z]*_\d+")
_REPEATED = re.compile(r"_\d+$")


def input_names(names: Sequence[str]) -> list[tuple[str, str]]:
    """The inputs of a recording, in order: the parameter of ``forward``, and the key."""
    return [
        (match["name"] if match["index"] == "0" else f"{match['name']}[{match['index']}]", match.string)
        for match in filter(None, map(_INPUT.fullmatch, names))
    ]


@dataclass(frozen=True)
class _Recorded:
    """A tensor of a recording.

    Attributes:
        key: its name there.
        scope: its module, as ``named_modules`` names it.
        shape: its sizes.
        sources: the keys of the tensors that the module was given.
    """

    key: str
    scope: str
    shape: tuple[int, ...]
    sources: Sequence[str]


def pairs_by_module(
    names: Sequence[str], read: Callable[[str], np.ndarray], b: ModelSide, facts: Mapping[Value, Fact]
) -> tuple[dict[Value, str], set[str]]:
    """The tensors of a model for the modules of a recording; where two modules give one tensor, the inner one.

    Args:
        names: the keys of the recording, in its order.
        read: gives the array of a key.
        b: the model.
        facts: facts of its values with the recorded inputs.

    Returns:
        The keys by the tensors of the model, and further keys of the same tensors: of a container that returns what its
        last module returns, or of a Dropout.
    """
    recorded = [
        _Recorded(match.string, match["scope"], read(match.string).shape, _sources(match["call"], names, read))
        for match in filter(None, map(_KEY.fullmatch, names))
    ]
    found, same = _Pairing(recorded, b, facts).made()
    keys = {*found.values(), *same}
    paired = {one.key: one for one in recorded if one.key in keys}
    for one in recorded:
        if one.key in paired:
            continue
        # A Dropout returns the tensor itself, so that what follows reads the one before it; a container returns that of
        # a module inside it.
        others = [
            key
            for key, other in paired.items()
            if other.shape == one.shape and (key in one.sources or other.scope.startswith(f"{one.scope}."))
        ]
        array = read(one.key) if others else None
        if array is not None and any(_equal(read(key), array) for key in others):
            same.add(one.key)
            paired[one.key] = one
    return found, same


def _sources(call: str, names: Sequence[str], read: Callable[[str], np.ndarray]) -> list[str]:
    """The keys of the tensors that a call of a module was given."""
    return read(f"source:{call}").tolist() if f"source:{call}" in names else []


def folded(keys: Mapping[Value, str], names: Sequence[str], read: Callable[[str], np.ndarray]) -> set[Value]:
    """The paired tensors of which a module in front has none: both are one layer of the model, with other weights."""
    paired, found = set(keys.values()), set()
    for value, key in keys.items():
        before = _sources(key.removeprefix("module:").rpartition("[")[0], names, read)
        if any(one.startswith("module:") and one not in paired for one in before):
            found.add(value)
    return found


class _Pairing:
    """The pairs of a recording and a model while they are found."""

    def __init__(self, recorded: Sequence[_Recorded], b: ModelSide, facts: Mapping[Value, Fact]) -> None:
        self._b, self._facts = b, facts
        self._by_scope = grouped((one.scope, one) for one in recorded)
        self._readers = grouped((source, one) for one in recorded for source in one.sources)
        self._by_key = {one.key: one for one in recorded}
        # The layers that were made of each module or of a module inside it, in topological order.
        self._layers = defaultdict[str, list[Node]](list)
        for node in b.order:
            scope = _scope(node, self._by_scope)
            while scope:
                self._layers[scope].append(node)
                scope = scope.rpartition(".")[0]
        self._reading = readers(b.order)
        self._found: dict[Value, str] = {}
        self._same = defaultdict[str, list[str]](list)

    def made(self) -> tuple[dict[Value, str], set[str]]:
        """The pairs, and the keys that stand for the same tensors."""
        for scope, own in self._by_scope.items():
            if scope and self._layers[scope]:
                for value, one in self._in_order(self._leaving(self._layers[scope]), own):
                    self._pair(value, one)
        for value, one in zip(self._b.results, self._by_scope.get("", ()), strict=False):
            if self._may_be(value, one.shape):
                self._pair(value, one)
        for scope, own in self._by_scope.items():
            if len(own) == 1 and len(own[0].sources) == 1 and self._layers[scope]:
                self._pair_entering(self._layers[scope], own[0].sources[0])
        for node in self._b.order:
            if not _scope(node, self._by_scope):
                self._pair_nameless(node)
        return self._found, {key for keys in self._same.values() for key in keys}

    def _pair(self, value: Value, one: _Recorded) -> None:
        """Pair a tensor with that of a module, and of modules after it that have no layers: a BatchNorm was folded into
        the weights before it, and a Dropout does nothing."""
        last = one
        while (after := self._folded_after(last)) is not None:
            last = after
        own = self._found.setdefault(value, last.key)
        self._same[own] += [key for key in (one.key, last.key) if key != own]

    def _folded_after(self, one: _Recorded) -> _Recorded | None:
        """The only module that reads a tensor, if it has no layers and keeps the shape."""
        readers = self._readers.get(one.key, ())
        if len(readers) != 1 or self._layers[readers[0].scope] or readers[0].shape != one.shape:
            return None
        return readers[0]

    def _pair_entering(self, layers: Sequence[Node], key: str) -> None:
        """Pair the only tensor at the entrance of a module with the recorded one, after two modules without layers,
        such as a convolution and a BatchNorm."""
        given = self._by_key.get(key)
        if given is None or self._layers[given.scope]:
            return
        before = [self._by_key[source] for source in given.sources if source in self._by_key]
        if not before or any(self._layers[one.scope] for one in before):
            return
        inside = set(layers)
        entering = {value for node in layers for value in node.inputs if value is not None and value.node not in inside}
        computed = [one for one in entering if one.node not in self._b.constant and one.node.type != "Constant"]
        if len(computed) == 1 and computed[0] not in self._found and self._may_be(computed[0], given.shape):
            self._found[computed[0]] = key

    def _pair_nameless(self, node: Node) -> None:
        """Pair the tensor of a layer without a name, by the module with the same input.

        A layer loses its name when another is folded into it: the module that follows has no layers then. Where it has
        some, only a part was folded, and no recorded tensor is that of the layer.
        """
        keys = [self._found[value] for value in node.inputs if value is not None and value in self._found]
        if len(keys) != 1 or len(node.outputs) != 1 or node.outputs[0] in self._found:
            return
        given = {keys[0], *self._same[keys[0]]}
        candidates = [
            one
            for key in given
            for one in self._readers.get(key, ())
            if not self._layers[one.scope]
            and self._may_be(node.outputs[0], one.shape)
            and self._folded_after(one) is not None
        ]
        innermost = [
            one for one in candidates if not any(other.scope.startswith(f"{one.scope}.") for other in candidates)
        ]
        if len({one.key for one in innermost}) == 1:
            self._pair(node.outputs[0], innermost[0])

    def _leaving(self, layers: Sequence[Node]) -> list[Value]:
        """The floating-point tensors of layers that others read, in the order of the layers.

        OpenVINO may move the bias of a module behind the scale that follows: what is left is another tensor.
        """
        inside = set(layers)
        return [
            value
            for node in layers
            if node not in self._b.constant
            for value in node.outputs
            if not inside.issuperset(self._reading.get(value, ()))
            and (value.fact is None or value.fact.element is None or value.fact.element.is_float)
            and not all(map(self._is_rewritten, self._reading.get(value, ())))
        ]

    def _is_rewritten(self, reader: Node) -> bool:
        """True for arithmetic with a constant whose name OpenVINO made up when it rewrote the model."""
        constants = [value for value in reader.inputs if value is not None and value.node.type == "Constant"]
        return reader.type in ("Multiply", "Add") and bool(constants) and _MADE_UP.fullmatch(reader.name) is not None

    def _in_order(self, values: Sequence[Value], recorded: Sequence[_Recorded]) -> list[tuple[Value, _Recorded]]:
        """Tensors of layers with those of a module: one after the other if as many have these shapes; the last of the
        shape of a single recorded one; else those for which only one has the shape."""
        in_turn = list(zip(values, recorded, strict=False))
        if len(values) == len(recorded) and all(self._may_be(value, one.shape) for value, one in in_turn):
            return in_turn
        if len(recorded) == 1:
            fitting = [value for value in values if self._may_be(value, recorded[0].shape)]
            return [(fitting[-1], recorded[0])] if fitting else []
        by_shape = [(value, [one for one in recorded if self._may_be(value, one.shape)]) for value in values]
        alone = [(value, fitting[0]) for value, fitting in by_shape if len(fitting) == 1]
        return alone if len({one.key for _, one in alone}) == len(alone) else []

    def _may_be(self, value: Value, shape: tuple[int, ...]) -> bool:
        fact = self._facts.get(value, value.fact)
        return fact is None or admits(fact.shape, shape)


def _scope(node: Node, scopes: Mapping[str, object]) -> str:
    """The recorded module of a layer; "" if neither its name nor the exporter says it."""
    name, scope = node.name, module_of(node)
    of_openvino = _OF_OPENVINO.match(name)
    if of_openvino is not None:
        scope = of_openvino["scope"]
    elif not scope and name.startswith("/"):
        parts: list[str] = []
        before = ""
        for part in name[1:].split("/")[:-1]:
            own = part.removeprefix(f"{before}.")
            parts.append(own if ".".join([*parts, own]) in scopes else _REPEATED.sub("", own))
            before = _REPEATED.sub("", part) if part not in (own, parts[-1]) else part
        scope = ".".join(parts)
    elif not scope:
        # Other frameworks: the longest part of the path, from any folder on, or the name itself.
        path = name.split("/")
        tails = (".".join(path[i:end]) for end in (len(path), len(path) - 1) for i in range(end))
        return next((tail for tail in tails if tail in scopes), "")
    while scope and scope not in scopes:
        scope = scope.rpartition(".")[0]
    return scope


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def record_torch(output: str) -> None:
    """Write the script, which needs torch and numpy alone.

    Raises:
        InputError: the file cannot be written, does not end in .py, or is another script.
    """
    check_script("--record-torch", Path(output), _SCRIPT, {})
    with new_file(Path(output)) as file:
        file.write(_SCRIPT.encode())


_SCRIPT = '''"""Record what every module of a PyTorch model gives:

    from record import record
    record(model, "torch.npz", *arguments, **keywords)

irexec compare torch.npz model.xml finds the first module whose tensor differs.
"""

import inspect

import numpy as np
import torch


def record(model, path, *arguments, **keywords):
    arrays, keys, kept, calls, types, devices = {}, {}, [], {}, set(), set()

    def tensors(value):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (dict, list, tuple)):
            for one in value.values() if isinstance(value, dict) else value:
                yield from tensors(one)

    def identity(tensor):
        # A module that works in place gives another tensor.
        return id(tensor), 0 if tensor.is_inference() else tensor._version

    def store(key, value):
        for i, tensor in enumerate(tensors(value)):
            keys.setdefault(identity(tensor), f"{key}[{i}]")
            kept.append(tensor)
            types.add(tensor.dtype)
            devices.add(tensor.device.type.upper())
            tensor = tensor.detach().cpu()
            arrays[f"{key}[{i}]"] = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy().copy()

    def hook(scope):
        def record_output(module, inputs, output):
            calls[scope] = calls.get(scope, 0) + 1
            call = f"{scope}#{calls[scope]}"
            arrays[f"source:{call}"] = np.array([keys.get(identity(tensor), "") for tensor in tensors(inputs)])
            store(f"module:{call}", output)

        return record_output

    names = inspect.signature(model.forward).parameters
    for name, value in {**dict(zip(names, arguments)), **keywords}.items():
        store(f"input:{name}", value)
    hooks = [module.register_forward_hook(hook(scope)) for scope, module in model.named_modules()]
    with torch.no_grad():
        model(*arguments, **keywords)
    for one in hooks:
        one.remove()
    is_cuda, arithmetic = "CUDA" in devices, "f32"
    if torch.bfloat16 in types or torch.float16 in types:
        arithmetic = "bf16" if torch.bfloat16 in types else "f16"
    elif is_cuda and (torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32):
        arithmetic = "tf32"
    device = "CUDA" if is_cuda else min(devices)
    arrays["irexec.arithmetic"] = np.array(f"{arithmetic} of PyTorch {torch.__version__} on {device}")
    np.savez(path, **arrays)
'''
