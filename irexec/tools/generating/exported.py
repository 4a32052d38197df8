"""A folder with a language model, its tokenizer and its detokenizer, as optimum-intel exports it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.errors import InputError, ModelError
from irexec.io.reading import read_json
from irexec.reading import read_model
from irexec.runtime.compiled_model import CompiledModel

MODEL = "openvino_model.xml"
_TOKENIZER, _DETOKENIZER = "openvino_tokenizer.xml", "openvino_detokenizer.xml"
_CONFIGURATIONS = ("generation_config.json", "config.json")
_END = "eos_token_id"
_INPUTS = ("input_ids", "attention_mask", "position_ids", "beam_idx")


class ExportedModel:
    """A language model in a folder.

    Attributes:
        path: of the model.
        model: the model.
        has_state: whether variables keep what earlier steps computed; without them each step has all tokens.
        logits: the output with the logits [batch, tokens, vocabulary].

    Raises:
        ModelError: a file is missing or damaged.
        InputError: the model has inputs or outputs of other names.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.path = self._folder / MODEL
        if not self.path.is_file():
            raise ModelError(f"{folder} has no {MODEL}, expected a folder that optimum-intel has exported")
        self.model: Model = read_model(str(self.path))
        self.has_state = any(node.type == "ReadValue" for node in self.model.walk())
        self._last_text: tuple[tuple[int, ...], str] = (), ""
        self._names = _input_names(self.model)
        self.logits = _logits(self.model)

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
            path = self._folder / name
            found = _configuration(path).get(_END) if path.is_file() else None
            if found is not None:
                return frozenset(map(int, found if isinstance(found, list) else [found]))
        return frozenset()

    def feeds(self, tokens: Sequence[int], past: int) -> dict[str, np.ndarray]:
        """The inputs of a step, by the names of the model's inputs.

        Args:
            tokens: all tokens so far.
            past: number of tokens that earlier steps had.
        """
        past = past if self.has_state else 0
        arrays = {
            "input_ids": np.array([tokens[past:]]),
            "attention_mask": np.ones((1, len(tokens))),
            "position_ids": np.arange(past, len(tokens))[None],
            "beam_idx": np.zeros(1),
        }
        return {
            port.name: arrays[name].astype(port.element.carrier if port.element else np.int64)
            for name, port in self._names.items()
        }


def _configuration(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def _input_names(model: Model) -> dict[str, Port]:
    """The inputs by the names that optimum-intel gives them."""
    found = {name: port for port in model.inputs for name in _INPUTS if name in port.names}
    others = [port for port in model.inputs if port not in found.values()]
    if others or "input_ids" not in found:
        without = " (a model that keeps its past in variables is run: export it with --task text-generation-with-past)"
        past = without if any("past" in name for port in others for name in port.names) else ""
        said = f"has the input {others[0]}" if others else "has no input input_ids"
        raise InputError(f"the model {said}, expected some of {', '.join(_INPUTS)}{past}")
    return found


def _logits(model: Model) -> Any:
    """The value of the output logits, or of the only output."""
    outputs = [port for port in model.outputs if "logits" in port.names] or model.outputs
    if len(outputs) != 1 or not outputs[0].node.inputs or outputs[0].node.inputs[0] is None:
        raise InputError(f"the model has the outputs {', '.join(map(str, model.outputs))}, expected logits")
    return outputs[0].node.inputs[0]
