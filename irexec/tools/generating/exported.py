"""A language model in a file, or in a folder with its tokenizer and its detokenizer, as optimum-intel exports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.errors import InputError, ModelError
from irexec.io.reading import read_json
from irexec.ir.dims import ANY, PartialShape, Size, low
from irexec.ir.graph import Node, Value
from irexec.ops.paged import paged_attention_extension
from irexec.reading import read_model
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import resolve

MODEL = "openvino_model.xml"
_FILES = (MODEL, "model.onnx")
_TOKENIZER, _DETOKENIZER = "openvino_tokenizer.xml", "openvino_detokenizer.xml"
_CONFIGURATIONS = ("generation_config.json", "config.json")
_END = "eos_token_id"
_INPUTS = ("input_ids", "attention_mask", "position_ids", "beam_idx")
_TABLES = (
    "past_lens", "subsequence_begins", "block_indices", "block_indices_begins", "max_context_len", "block_table",
    "cumulative_sequence_lengths", "past_sequence_lengths", "attention_metadata", "logits_indices",
)  # fmt: skip
"""Inputs of models with caches in blocks, as OpenVINO and the model builder of onnxruntime-genai name them."""
_HEADS = 4
"""Axes of a cache of attention: sequences, heads, tokens, elements of a head."""
_BLOCK = 32
"""Tokens of a block where the model leaves the number open: OpenVINO's CPU plugin has this one."""


def model_file(source: str) -> Path:
    """The model, or that of a folder. Raises ModelError where there is none."""
    path = Path(source)
    files = [path] if path.is_file() else [path / name for name in _FILES]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise ModelError(f"{source} has no {MODEL}, expected a folder that optimum-intel has exported, or a model")
    return found


class ExportedModel:
    """A language model.

    Args:
        source: a model, or a folder with openvino_model.xml or model.onnx.

    Attributes:
        path: of the model.
        model: the model.
        has_state: whether variables or caches keep what earlier steps computed; without them each step has all tokens.
        logits: the output with the logits [batch, tokens, vocabulary] or [tokens, vocabulary].
        caches: inputs whose values a step leaves to the next one, in an output or in the input itself.
        returned: the values of the caches after a step, by the name of the input or of the variable.

    Raises:
        ModelError: a file is missing or damaged.
        InputError: the model has inputs or outputs of other names.
    """

    def __init__(self, source: str) -> None:
        self.path = model_file(source)
        self._folder = self.path.parent
        self.model: Model = read_model(str(self.path))
        self._last_text: tuple[tuple[int, ...], str] = (), ""
        self._names = {name: port for port in self.model.inputs for name in (*_INPUTS, *_TABLES) if name in port.names}
        others = [port for port in self.model.inputs if port not in self._names.values()]
        outputs = {name: port for port in self.model.outputs for name in port.names}
        # The Parameters that layers write to, with the layer and the name of its input.
        written = {
            value.node: (node, name)
            for node in self.model.nodes
            for name, value in resolve(node.type, node.version).kept_inputs(node).items()
            if value.node.type == "Parameter"
        }
        pairs = {port.name: outputs.get(_present(port)) for port in others}
        self.caches = {port.name: port for port in others if pairs[port.name] or port.node in written}
        unknown = [port for port in others if port.name not in self.caches]
        if unknown or "input_ids" not in self._names:
            said = f"has the input {unknown[0]}" if unknown else "has no input input_ids"
            caches = " and caches such as past_key_values.0.key, which present.0.key returns"
            raise InputError(f"the model {said}, expected some of {', '.join(_INPUTS)}{caches}")
        self._shapes = {
            name: self._sizes(port, pairs[name], written.get(port.node)) for name, port in self.caches.items()
        }
        self.returned: dict[str, Value] = {
            name: value for name, port in pairs.items() if port is not None and (value := port.node.inputs[0])
        }
        for node in self.model.nodes:
            if node.type == "Assign" and node.inputs and node.inputs[0] is not None:
                self.returned[node.attributes["variable_id"]] = node.inputs[0]
        self.has_state = bool(self.caches) or any(node.type == "ReadValue" for node in self.model.walk())
        self.logits = _logits(self.model)

    def _sizes(self, port: Port, returned: Port | None, written: tuple[Node, str] | None) -> tuple[int, ...]:
        """The shape of a cache of one sequence without tokens, or with the fewest that the model accepts, as one of a
        window has; of one in blocks, without blocks.

        Raises:
            InputError: the rank, or the size of a head, is not known.
        """
        shape = port.shape
        if written is not None and written[0].type == paged_attention_extension.type:
            shape = _blocks(port, written[0], 1 if written[1] == "key_cache" else 2)
        if shape is None:
            raise InputError(f"the cache {port} has no known rank")
        other = shape if returned is None or returned.shape is None else returned.shape
        known = [a if isinstance(a, int) else b for a, b in zip(shape, other, strict=True)]
        if len(known) == _HEADS and not isinstance(known[-1], int):
            known[-1] = self._head_size(port)
        if len(known) == _HEADS and "block_table" in self._names and not isinstance(known[1], int):
            known[1] = _BLOCK
        return tuple(max(low(size), int(i == 0 and not isinstance(size, int))) for i, size in enumerate(known))

    def _head_size(self, port: Port) -> int:
        """The size of a head in genai_config.json or config.json, which the shape of a cache leaves open."""
        for name, decoder in (("genai_config.json", ("model", "decoder")), ("config.json", ())):
            found = _configuration(self._folder / name)
            for key in decoder:
                found = found.get(key, {})
            heads, width = found.get("num_attention_heads"), found.get("hidden_size")
            size = found.get("head_size") or found.get("head_dim") or (width and heads and width // heads)
            if size:
                return int(size)
        raise InputError(
            f"the cache {port} leaves the size of its heads open, and no genai_config.json or config.json in "
            f"{self._folder} states it"
        )

    @cached_property
    def _tokenizer(self) -> CompiledModel:
        return self._text_model(_TOKENIZER)

    @cached_property
    def _detokenizer(self) -> CompiledModel:
        return self._text_model(_DETOKENIZER)

    def _text_model(self, name: str) -> CompiledModel:
        path = self._folder / name
        if not path.is_file():
            raise ModelError(f"{self._folder} has no {name}: convert_tokenizer writes it")
        return CompiledModel(read_model(str(path)))

    def encoded(self, prompt: str) -> list[int]:
        """The token ids of a prompt, with those that the tokenizer adds."""
        found = self._tokenizer([np.array([prompt], object)])
        return [int(token) for token in found["input_ids"][0]]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens; "" without a detokenizer."""
        if not (self._folder / _DETOKENIZER).is_file() or not tokens:
            return ""
        return str(self._detokenizer([np.array([tokens], np.int64)])[0][0])

    def text_after(self, before: Sequence[int], *tokens: int) -> str:
        """The text that tokens add after others: tokens may have parts of a character, or a space between them."""
        if self._last_text[0] != tuple(before):
            # A step asks for several tokens after the same ones.
            self._last_text = tuple(before), self.text(before)
        old, new = self._last_text[1], self.text([*before, *tokens])
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        return new[same:]

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end a text: of generation_config.json, or else of config.json; none without both."""
        for name in _CONFIGURATIONS:
            found = _configuration(self._folder / name).get(_END)
            if found is not None:
                return frozenset(map(int, found if isinstance(found, list) else [found]))
        return frozenset()

    def start(self, tokens: int) -> dict[str, np.ndarray]:
        """The caches before the first step: zeros, in blocks for all tokens, or without tokens.

        Args:
            tokens: the number of tokens of all steps.
        """
        arrays = {}
        for name, port in self.caches.items():
            shape = list(self._shapes[name])
            if self._blocks_axes(port):
                shape[0] = -(-tokens // shape[self._blocks_axes(port)])
            arrays[name] = np.zeros(shape, port.element.carrier if port.element else np.float32)
        return arrays

    def _blocks_axes(self, port: Port) -> int:
        """The axis with the tokens of a block of a cache; 0 for a cache that is not in blocks."""
        if "block_table" in self._names:
            return 1 if len(self._shapes[port.name]) == _HEADS else 0
        return 2 if "block_indices" in self._names else 0

    def feeds(self, tokens: Sequence[int], past: int, caches: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of a step, by the names of the model's inputs.

        Args:
            tokens: all tokens so far.
            past: number of tokens that earlier steps had.
            caches: as the step before has left them.
        """
        past = past if self.has_state else 0
        new = len(tokens) - past
        sizes = [
            (len(caches[name]), caches[name].shape[i]) for name in caches if (i := self._blocks_axes(self.caches[name]))
        ]
        # Blocks in descending order show a kernel that does not read its table.
        blocks = np.arange(sizes[0][0])[::-1][: -(-len(tokens) // sizes[0][1])] if sizes else np.zeros(0)
        ends = np.array([0, new])
        arrays = {
            "input_ids": np.array(tokens[past:]),
            "attention_mask": np.ones((1, len(tokens))),
            "position_ids": np.arange(past, len(tokens)),
            "beam_idx": np.zeros(1),
            "past_lens": np.array([past]),
            "past_sequence_lengths": np.array([past]),
            "subsequence_begins": ends,
            "cumulative_sequence_lengths": ends,
            "block_indices": blocks,
            "block_table": blocks[None],
            "block_indices_begins": np.array([0, len(blocks)]),
            "max_context_len": np.array(len(tokens)),
            # For kernels of GPUs alone.
            "attention_metadata": np.array([new, len(tokens), len(tokens)]),
            "logits_indices": np.array([new - 1]),
        }
        given = dict(caches)
        for name, port in self._names.items():
            array = arrays[name].astype(port.element.carrier if port.element else np.int64)
            if name in ("input_ids", "position_ids") and port.shape is not None:
                # Several axes of positions, of time, height and width, are equal for text.
                array = np.broadcast_to(array, (*(3 if size == 3 else 1 for size in port.shape[:-1]), new))
            given[port.name] = array
        return given


def _configuration(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def _present(port: Port) -> str:
    """The name of the output that returns a cache: past_key_values.0.key is returned as present.0.key."""
    name = next((name for name in port.names if "past" in name), "")
    return name.replace("past_key_values", "present").replace("past", "present")


def _blocks(port: Port, attention: Node, index: int) -> PartialShape:
    """The shape of a cache in blocks: heads and their size are those that the keys or values of the layer had before
    they became columns; OpenVINO leaves all axes open."""
    value = attention.inputs[index]
    columns = value.fact.shape[-1] if value is not None and value.fact is not None and value.fact.shape else ANY
    while value is not None and value.fact is not None and value.fact.shape is not None and len(value.fact.shape) < 3:
        value = value.node.inputs[0] if value.node.inputs else None
    size = value.fact.shape[-1] if value is not None and value.fact is not None and value.fact.shape else ANY
    if not isinstance(size, int) or not isinstance(columns, int):
        raise InputError(f"the cache {port} leaves its heads open, and layer {attention.name!r} does not show them")
    own = port.shape or (ANY,) * _HEADS
    expected: tuple[Size, ...] = (ANY, columns // size, _BLOCK, size)
    return tuple(a if isinstance(a, int) else b for a, b in zip(own, expected, strict=True))


def _logits(model: Model) -> Any:
    """The value of the output logits, or of the only output."""
    outputs = [port for port in model.outputs if "logits" in port.names] or model.outputs
    if len(outputs) != 1 or not outputs[0].node.inputs or outputs[0].node.inputs[0] is None:
        raise InputError(f"the model has the outputs {', '.join(map(str, model.outputs))}, expected logits")
    return outputs[0].node.inputs[0]
