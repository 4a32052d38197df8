"""A small random language model in a folder, as optimum-intel exports one: a layer of attention whose keys and values are
variables, and the tokenizer of tests/data/tokenizers.zip."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

import irexec
from irexec.ir.graph import Value
from tests.support.paths import ROOT

FAMILY = "llama3"
WIDTH = 16


def language_model(
    folder: Path, words: int, *, seed: int = 0, gain: float = 1.0, ends: list[int] | None = None, caches: bool = False
) -> Path:
    """Write the files into a folder.

    Args:
        folder: the folder.
        words: size of the vocabulary.
        seed: of the weights.
        gain: the logits are multiplied by it.
        ends: the end tokens.
        caches: keys and values are inputs and outputs in place of variables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    irexec.save_model(_model(words, np.random.default_rng(seed), gain, caches), folder / "openvino_model.xml")
    with zipfile.ZipFile(ROOT / "tests" / "data" / "tokenizers.zip") as archive:
        for kind in ("tokenizer", "detokenizer"):
            for suffix in ("xml", "bin"):
                (folder / f"openvino_{kind}.{suffix}").write_bytes(archive.read(f"{FAMILY}.{kind}.{suffix}"))
    if ends is not None:
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    return folder


def _model(words: int, rng: np.random.Generator, gain: float, caches: bool) -> irexec.Model:
    """Logits from the tokens so far: embeddings of tokens and positions, causal attention by the mask, a product."""
    make = irexec.Builder("language")

    def floats(*shape: int) -> Value:
        return make.constant(rng.normal(size=shape).astype(np.float32), "f32")

    ids, mask, positions = (
        make.parameter("i64", (-1, -1), name, names=[name]) for name in ("input_ids", "attention_mask", "position_ids")
    )
    beams = None if caches else make.parameter("i32", (-1,), "beam_idx", names=["beam_idx"])
    zero = make.constant(np.array(0, np.int64), "i64")
    tokens = make.emit("Gather", floats(words, WIDTH), ids, zero, batch_dims="0")
    places = make.emit("Gather", floats(64, WIDTH), positions, zero, batch_dims="0")
    x = make.emit("Add", tokens, places)
    query, key, value = (
        make.emit("MatMul", x, floats(WIDTH, WIDTH), transpose_a="false", transpose_b="false") for _ in range(3)
    )
    key, value = (_cached(make, name, new, beams, zero) for name, new in (("key", key), ("value", value)))
    scores = make.emit("MatMul", query, key, transpose_a="false", transpose_b="true")
    hidden = make.emit("Multiply", scores, make.constant(np.float32(0.1), "f32"))
    seen = make.emit("Convert", mask, destination_type="f32")
    one = make.constant(np.float32(1), "f32")
    far = make.emit("Multiply", make.emit("Subtract", seen, one), make.constant(np.float32(1e4), "f32"))
    biased = make.emit("Add", hidden, make.emit("Unsqueeze", far, make.constant(np.array([1], np.int64), "i64")))
    # Without a causal mask the prompt sees itself whole, which changes no rule of the steps.
    weights = make.emit("Softmax", biased, axis="-1")
    found = make.emit("MatMul", weights, value, transpose_a="false", transpose_b="false")
    logits = make.emit(
        "MatMul", make.emit("Add", x, found), floats(WIDTH, words), transpose_a="false", transpose_b="false"
    )
    make.result(make.emit("Multiply", logits, make.constant(np.float32(gain), "f32"), names=["logits"]))
    return make.model()


def _cached(make: irexec.Builder, name: str, new: Value, beams: Value | None, zero: Value) -> Value:
    """The values of all steps so far, of the beams, in a variable that begins without tokens, or in an output."""
    if beams is None:
        shape = (-1, -1, WIDTH)
        given = make.parameter("f32", shape, f"past_{name}", names=[f"past_key_values.0.{name}"])
        both = make.emit("Concat", given, new, axis="1", names=[f"present.0.{name}"])
        make.result(both)
        return both
    start = make.constant(np.zeros((1, 0, WIDTH), np.float32), "f32")
    kinds = {"variable_id": name, "variable_type": "f32", "variable_shape": f"?,?,{WIDTH}"}
    past = make.emit("Gather", make.emit("ReadValue", start, **kinds), beams, zero, batch_dims="0")
    both = make.emit("Concat", past, new, axis="1")
    make.emit("Assign", both, variable_id=name)
    return both
