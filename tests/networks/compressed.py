"""Variants of other networks: quantised, with compressed weights, in half precision."""

from __future__ import annotations

from collections.abc import Callable

import nncf
import numpy as np
import openvino as ov

from tests.networks import convolutional, language
from tests.networks.network import Network, RandomInput, network


def random_array(spec: RandomInput, kind: ov.Type, rng: np.random.Generator) -> np.ndarray:
    """An input for calibration."""
    if spec.values is not None:
        return np.array(spec.values, kind.to_dtype())
    if kind.is_real():
        return rng.uniform(spec.low, spec.high, spec.shape).astype(kind.to_dtype())
    return rng.integers(int(spec.low), int(spec.high), spec.shape).astype(kind.to_dtype())


def quantised(made: Network) -> Network:
    """8-bit FakeQuantize on activations and weights; run once, for in every few thousand numbers one falls on the edge of two levels."""
    rng = np.random.default_rng(5)
    kinds = [port.element_type for port in made.model.inputs]
    rows = [
        [random_array(spec, kind, rng) for spec, kind in zip(made.runs[i % len(made.runs)], kinds, strict=True)]
        for i in range(4)
    ]
    return Network(nncf.quantize(made.model, nncf.Dataset(rows), subset_size=4), made.runs[:1])


def compressed(made: Network, mode: nncf.CompressWeightsMode, **options: object) -> Network:
    """Weights alone in fewer bits."""
    return Network(nncf.compress_weights(made.model, mode=mode, **options), made.runs)


def halved(made: Network) -> Network:
    return Network(made.model, made.runs, half=True)


def variant(name: str, base: Callable[[bool], Network], change: Callable[..., Network], **options: object) -> None:
    network(name)(lambda wide: change(base(wide), **options))


_GROUPS = {"group_size": 8, "ratio": 1.0, "all_layers": True}
_MODE = nncf.CompressWeightsMode

variant("resnet18_quantised", convolutional.resnet18, quantised)
variant("mobilenet_v2_quantised", convolutional.mobilenet_v2, quantised)
variant("bert_quantised", language.bert_sdpa, quantised)
variant("llama_int8_asym", language.llama_sdpa, compressed, mode=_MODE.INT8_ASYM)
variant("llama_int8_sym", language.llama_sdpa, compressed, mode=_MODE.INT8_SYM)
variant("llama_int4_asym", language.llama_sdpa, compressed, mode=_MODE.INT4_ASYM, **_GROUPS)
variant("llama_int4_sym", language.llama_sdpa, compressed, mode=_MODE.INT4_SYM, **_GROUPS)
variant("llama_nf4", language.llama_sdpa, compressed, mode=_MODE.NF4, **_GROUPS)
variant("bert_int8", language.bert_eager, compressed, mode=_MODE.INT8_ASYM)
variant("resnet50_half", convolutional.resnet50, halved)
variant("gpt2_half", language.gpt2_sdpa, halved)
variant("t5_half", language.t5_both, halved)
