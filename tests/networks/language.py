"""Transformers of text and speech, with and without a cache of keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openvino as ov
import torch
import transformers as hf
from openvino import opset13
from openvino._offline_transformations import apply_make_stateful_transformation

from tests.networks.network import Calling, Network, RandomInput, convert, exactly, ids, network, randomise


def long(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.long)


def padded(*lengths: int) -> RandomInput:
    """The attention mask of sequences of these lengths, padded at the end."""
    return exactly([[int(i < n) for i in range(max(lengths))] for n in lengths])


def bert(wide: bool, attention: str) -> Network:
    sizes = {
        "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 48, "max_position_embeddings": 32,
    }  # fmt: skip
    config = hf.BertConfig(attn_implementation=attention, **({"num_hidden_layers": 3} if wide else sizes))
    module = randomise(hf.BertForTokenClassification(config))
    model = convert(
        Calling(module, lambda m, tokens, mask, kinds: m(tokens, mask, kinds).logits), [long(2, 7)] * 3, [[-1, -1]] * 3
    )
    runs = [(1, [128])] if wide else [(1, [5]), (3, [4, 9, 1])]
    words = config.vocab_size
    return Network(model, [[ids(n, max(ls), below=words), padded(*ls), ids(n, max(ls), below=2)] for n, ls in runs])


@network("bert_sdpa")
def bert_sdpa(wide: bool) -> Network:
    """BERT-base (Devlin et al. 2018); wide: three of its layers."""
    return bert(wide, "sdpa")


@network("bert_eager")
def bert_eager(wide: bool) -> Network:
    return bert(wide, "eager")


def with_past(config: Any, past: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> hf.DynamicCache:
    """A cache that holds these keys and values, one pair for each layer."""
    cache = hf.DynamicCache(config=config)
    for layer, (keys, values) in zip(cache.layers, past, strict=True):
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values, layer.is_initialized = keys, values, True
    return cache


def decode(config: Any) -> Any:
    def call(inner: Any, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, past: Any) -> Any:
        cache = with_past(config, past)
        found = inner(
            input_ids=tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
        )
        return (found.logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values)))

    return call


def keep_state(model: ov.Model, first: int) -> ov.Model:
    """Inputs from ``first`` on become variables fed by the outputs from 1 on, reordered by a new input beam_idx."""
    order = opset13.parameter([-1], ov.Type.i32, name="beam_idx")
    order.output(0).set_names({"beam_idx"})
    pairs = {}
    for i, (source, result) in enumerate(zip(model.inputs[first:], model.outputs[1:], strict=True)):
        parameter = source.get_node()
        consumers = source.get_target_inputs()
        gathered = opset13.gather(parameter, order, opset13.constant(0, ov.Type.i64))
        for consumer in consumers:
            consumer.replace_source_output(gathered.output(0))
        source.set_names({f"past.{i}"})
        result.set_names({f"present.{i}"})
        pairs[f"past.{i}"] = f"present.{i}"
    model.add_parameters([order])
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, pairs)
    start_empty(model, order)
    return model


def start_empty(model: ov.Model, order: ov.Node) -> None:
    """Give every variable a first value without tokens: without one the CPU plugin refuses a model."""
    zero = opset13.constant(0, ov.Type.i64)
    batch = opset13.gather(opset13.shape_of(order, output_type="i64"), opset13.constant([0], ov.Type.i64), zero)
    for node in model.get_ordered_ops():
        if node.get_type_name() == "ReadValue":
            heads, size = (node.get_output_partial_shape(0)[i].get_length() for i in (1, 3))
            shape = opset13.concat([batch, opset13.constant([heads, 0, size], ov.Type.i64)], 0)
            node.set_arguments([opset13.broadcast(opset13.constant(0.0, ov.Type.f32), shape).output(0)])
    model.validate_nodes_and_infer_types()


def generating(words: int, spans: Sequence[tuple[int, Sequence[int]]]) -> list[list[RandomInput]]:
    """Runs of a decoder with a cache: (new tokens, order of the beams) one after the other."""
    runs, seen = [], 0
    for new, order in spans:
        batch = len(order)
        seen += new
        positions = exactly([list(range(seen - new, seen))] * batch)
        runs.append([ids(batch, new, below=words), exactly([[1] * seen] * batch), positions, exactly(list(order))])
    return runs


def decoder(module: Any, config: Any, wide: bool, heads: int, size: int, layers: int) -> Network:
    past = [(torch.randn(2, heads, 3, size), torch.randn(2, heads, 3, size)) for _ in range(layers)]
    example = [long(2, 2), long(2, 5), torch.tensor([[3, 4], [3, 4]]), past]
    shapes = [[-1, -1]] * 3 + [[-1, heads, -1, size]] * (2 * layers)
    model = keep_state(convert(Calling(randomise(module), decode(config)), example, shapes), 3)
    spans = [(64, [0]), (1, [0]), (1, [0])] if wide else [(5, [0, 1]), (1, [0, 1]), (2, [1, 0]), (1, [1, 1])]
    return Network(model, generating(config.vocab_size, spans))


def gpt2(wide: bool, attention: str) -> Network:
    sizes = {"vocab_size": 60, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 32}
    config = hf.GPT2Config(attn_implementation=attention, **({"n_layer": 3} if wide else sizes))
    return decoder(
        hf.GPT2LMHeadModel(config), config, wide, config.n_head, config.n_embd // config.n_head, config.n_layer
    )


@network("gpt2_sdpa")
def gpt2_sdpa(wide: bool) -> Network:
    """GPT-2 (Radford et al. 2019) with its cache in variables; wide: three of its layers."""
    return gpt2(wide, "sdpa")


@network("gpt2_eager")
def gpt2_eager(wide: bool) -> Network:
    return gpt2(wide, "eager")


_LLAMA = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
_TINYLLAMA = {
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 2, "num_attention_heads": 32,
    "num_key_value_heads": 4, "vocab_size": 4000,
}  # fmt: skip


def llama(wide: bool, attention: str, kind: str = "Llama", **more: Any) -> Network:
    config = getattr(hf, f"{kind}Config")(attn_implementation=attention, **(_TINYLLAMA if wide else _LLAMA), **more)
    module = getattr(hf, f"{kind}ForCausalLM")(config)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return decoder(module, config, wide, config.num_key_value_heads, size, config.num_hidden_layers)


@network("llama_sdpa")
def llama_sdpa(wide: bool) -> Network:
    """Llama with grouped queries, rotary positions and its cache in variables (Touvron et al. 2023; wide: TinyLlama's widths)."""
    return llama(wide, "sdpa")


@network("llama_eager")
def llama_eager(wide: bool) -> Network:
    return llama(wide, "eager")


@network("qwen3")
def qwen3(wide: bool) -> Network:
    """Qwen3: normalised queries and keys."""
    return llama(wide, "sdpa", "Qwen3", head_dim=64 if wide else 8)


def t5(wide: bool) -> tuple[Any, Any]:
    sizes = {
        "vocab_size": 60,
        "d_model": 24,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 3,
        "relative_attention_num_buckets": 8,
    }
    config = hf.T5Config(**({"num_layers": 3} if wide else sizes))
    return randomise(hf.T5ForConditionalGeneration(config)), config


@network("t5")
def t5_both(wide: bool) -> Network:
    """T5: encoder and decoder with relative positions and RMS normalisation (Raffel et al. 2019)."""
    module, config = t5(wide)

    def call(inner: Any, tokens: torch.Tensor, mask: torch.Tensor, targets: torch.Tensor) -> Any:
        return inner(input_ids=tokens, attention_mask=mask, decoder_input_ids=targets, use_cache=False).logits

    model = convert(Calling(module, call), [long(2, 7), long(2, 7), long(2, 4)], [[-1, -1]] * 3)
    words = config.vocab_size
    spans = [(64, [64], 16)] if wide else [(6, [6], 3), (9, [9, 4], 5)]
    return Network(
        model, [[ids(len(ls), n, below=words), padded(*ls), ids(len(ls), m, below=words)] for n, ls, m in spans]
    )


def whisper(wide: bool) -> tuple[Any, Any]:
    sizes = {
        "vocab_size": 60, "d_model": 24, "encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_mel_bins": 10, "max_source_positions": 20, "max_target_positions": 16,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3,
    }  # fmt: skip
    config = hf.WhisperConfig(**({"encoder_layers": 2, "decoder_layers": 2} if wide else sizes))
    return randomise(hf.WhisperForConditionalGeneration(config)), config


@network("whisper_encoder")
def whisper_encoder(wide: bool) -> Network:
    """Whisper's encoder (Radford et al. 2022); wide: two of the layers of whisper-base."""
    module, config = whisper(wide)
    bands, frames = config.num_mel_bins, 2 * config.max_source_positions
    model = convert(
        Calling(module.model.encoder, lambda m, x: m(x).last_hidden_state),
        [torch.randn(1, bands, frames)],
        [[-1, bands, frames]],
    )
    return Network(model, [[RandomInput((1, bands, frames))], [RandomInput((2, bands, frames))]][: 1 if wide else 2])


@network("whisper_decoder")
def whisper_decoder(wide: bool) -> Network:
    """Whisper's decoder without a cache."""
    module, config = whisper(wide)

    def call(inner: Any, tokens: torch.Tensor, heard: torch.Tensor) -> Any:
        return inner.proj_out(
            inner.model.decoder(tokens, torch.ones_like(tokens), heard, use_cache=False).last_hidden_state
        )

    width = config.d_model
    model = convert(Calling(module, call), [long(2, 4), torch.randn(2, 9, width)], [[-1, -1], [-1, -1, width]])
    spans = [(1, 16, 1500)] if wide else [(1, 3, 20), (2, 5, 11)]
    return Network(model, [[ids(n, m, below=config.vocab_size), RandomInput((n, k, width))] for n, m, k in spans])
