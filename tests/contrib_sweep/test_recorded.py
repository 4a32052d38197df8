"""A sample of the sweep, against the recorded answers of ONNX Runtime or of the references."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import converters
import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Interval, graph_bounds
from irexec.ir.dims import ANY
from irexec.ir.order import topological
from tests.contrib_sweep.case import Arrays, Input, node
from tests.contrib_sweep.record import SAMPLE, recorded
from tests.contrib_sweep.sweep import DRAWS, converted_answer, difference, digest, drawn
from tests.onnx.rows import Fixed

_ANSWERS = recorded()


def test_each_operator_has_answers() -> None:
    counts = dict.fromkeys(DRAWS, 0)
    for name, _, _ in _ANSWERS:
        counts[name] += 1
    assert {name: count for name, count in counts.items() if count != SAMPLE} == {}


@pytest.mark.parametrize("key", _ANSWERS, ids=lambda key: f"{key[0]} {key[1]}")
@pytest.mark.sampled(8)
def test_recorded_case(key: tuple[str, int, str]) -> None:
    name, number, asked = key
    case = drawn(name, number)
    assert digest(case) == asked, "the case has changed: run python -m tests.contrib_sweep.record"
    model, results = converted_answer(case)
    assert [str(finding) for finding in irexec.validate(model) if finding.severity == "error"] == []
    expected: Arrays = _ANSWERS[key]
    assert difference(case, results, expected) == ""


@pytest.mark.parametrize("key", _ANSWERS, ids=lambda key: f"{key[0]} {key[1]}")
@pytest.mark.sampled(8)
def test_case_of_unknown_sizes(key: tuple[str, int, str]) -> None:
    """With all input sizes dynamic the results are the same, or the message says which size must be known."""
    case = drawn(key[0], key[1])
    model = case.row.model()
    inputs = {info.name: tuple(ANY for _ in info.type.tensor_type.shape.dim) for info in model.graph.input}
    try:
        converted = converters.convert(model, inputs=inputs)
    except irexec.ConversionError as error:
        assert "known" in str(error), error
        return
    results = list(irexec.compile_model(converted)(case.row.feeds).values())
    assert difference(case, results, _ANSWERS[key]) == ""


_WITHOUT_BOUNDS = {
    "DynamicTimeWarping": "the condition of a body is not certain",
    "MatMulBlockQuantizedFp8Weight": "how large numbers become those of few bits is open",
    "MurmurHash3": "BitwiseLeftShift has no rule",
    "NGramHashMapping": "integers that do not fit their type",
    "RelativePositionBias": "an index is not certain",
    "VarlenNGramHashMapping": "integers that do not fit their type",
}
_LESS_EXACT = {("QMoE", 3): "products of rows that are rounded to 8 bits"}
"""Cases for which ONNX Runtime computes less exactly than f32."""


@pytest.mark.parametrize("key", _ANSWERS, ids=lambda key: f"{key[0]} {key[1]}")
@pytest.mark.sampled(16)
def test_the_answer_lies_in_the_bounds_of_the_graph(key: tuple[str, int, str]) -> None:
    case = drawn(key[0], key[1])
    model = converters.convert(case.row.model(), warn=lambda text: None)
    given = {port.node.outputs[0]: case.row.feeds[port.name] for port in model.inputs}
    layers = [node for node in topological(model)[0] if node.type not in ("Parameter", "Result")]
    bounds = graph_bounds(layers, given, infer_shapes(model).facts, ARITHMETICS["f32"])
    outside: Arrays = []
    for result, answer in zip(model.results, _ANSWERS[key], strict=True):
        bound = bounds[result.inputs[0]]
        if isinstance(bound, Interval):
            outside.append(bound.outside(answer))
        else:
            assert bound.reason == _WITHOUT_BOUNDS[key[0]]
            outside.append(np.zeros(answer.shape, bool))
    assert any(x.any() for x in case.defined(outside)) == (key[:2] in _LESS_EXACT)


def test_a_cache_of_a_window_is_at_least_as_long() -> None:
    """ONNX Runtime refuses a shorter one: the input of the IR says so."""
    windowed = {"sliding_window_cache": 1, "local_window_size": 3}
    model = node("GroupQueryAttention", _GROUPED, 3, **_HEADS, **windowed).model()
    for info in model.graph.input[3:5]:
        info.type.tensor_type.shape.dim[2].dim_param = "past"
    converted = converters.convert(model)
    assert [str(port.shape[2]) for port in converted.inputs[3:5] if port.shape] == ["3..", "3.."]
    with pytest.raises(irexec.InputError, match="x3"):
        irexec.compile_model(converted)(
            dict(
                zip(
                    (port.name for port in converted.inputs),
                    [*_GROUPED[:3], _f(1, 1, 0, 16), *_GROUPED[4:]],
                    strict=True,
                )
            )
        )


# Attributes that nobody defines or that are not converted: one sentence, which names the node and the attribute.


def _f(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _u8(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint8)


def _i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


_GROUPED: list[Input] = [_f(1, 1, 32), _f(1, 1, 16), _f(1, 1, 16), _f(1, 1, 4, 16), _f(1, 1, 4, 16), _i32(4), _i32(5)]
_HEADS = {"num_heads": 2, "kv_num_heads": 1}
_MOE: list[Input] = [_f(2, 8), _f(2, 3), _f(3, 4, 8), None, _f(3, 8, 4)]
_QMOE: list[Input] = [_f(2, 32), _f(2, 3), _u8(3, 4, 16), _f(3, 4), None, _u8(3, 32, 2), _f(3, 32)]
_STATES: list[Input] = [_f(1, 2, 4), _f(1, 2, 4), _f(1, 2, 4)]
_ONE = {"q_num_heads": 1, "kv_num_heads": 1}
_CONV: list[Input] = [_f(1, 2, 4), _f(2, 1, 3)]
_TOKENS: list[Input] = [_f(4, 1, 4), _f(4, 1, 4), _f(4, 1, 4)]
_PAGES: list[Input] = [
    _f(2, 16), _f(2, 16), _f(2, 16), _f(3, 4, 1, 16), _f(3, 4, 1, 16), _i32(0, 2), _i32(0), _i32(1)[None],
]  # fmt: skip
_HASHED: list[Input] = [_i32(1)[None], _i32(3, 5), _i32(7)]
# fmt: off
_INVALID: list[tuple[str, list[Input], int, dict[str, Any], str]] = [
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"causal": 2}, "causal is 2"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"qk_output": 3}, "qk_output is 3"),
    ("GroupQueryAttention", _GROUPED, 4, _HEADS, "needs a qk_output of 1 or 2"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"k_quant_type": "PER_ROW"}, "k_quant_type is 'PER_ROW'"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"k_quant_type": "PER_TENSOR"}, "k_quant_type .* needs the scale"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"sliding_window_cache": 1}, "needs a local_window_size"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"causal": 0, "local_window_size": 2}, "local_window_size is 2, which needs causal 1"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"sliding_window_cache": 1, "local_window_size": 9}, "smaller than local_window_size 9"),
    ("GroupQueryAttention", _GROUPED, 3, _HEADS | {"do_rotary": 1}, "do_rotary needs cos_cache"),
    ("MoE", _MOE, 1, {"k": 4}, "k is 4"),
    ("GatherPacked", [Fixed(_u8(2, 17)), np.array([0])], 1, {"packed_type": 2, "K": 32}, "17 bytes of a row are not 32 numbers"),
    ("GatherPacked", [_u8(2, 18), np.array([0])], 1, {"packed_type": 2, "K": 32}, "packed weights must be known"),
    ("MatMulPacked", [_f(1, 32), Fixed(_u8(2, 18))], 1, {"packed_type": 2, "K": 32, "N": 3}, "N is 3, the weights have 2 rows"),
    ("MoE", _MOE, 1, {"activation_type": "swiglu"}, "swiglu_fusion is 0"),
    ("MoE", _MOE, 1, {"activation_type": "mish"}, "activation_type is 'mish'"),
    ("QMoE", _QMOE, 1, {"block_size": 24}, "block_size 24"),
    ("LinearAttention", _STATES, 2, _ONE, "update_rule gated_delta needs decay"),
    ("LinearAttention", _STATES, 2, _ONE | {"update_rule": "linear", "state_window": 9}, "state_window is 9"),
    ("CausalConvWithState", _CONV, 2, {"dilation": 0}, "dilation is 0"),
    ("GatedDeltaNet", _TOKENS, 2, {"update_rule": "linear"}, "initial_state is missing"),
    ("GatedDeltaNet", [*_TOKENS, None, None, None, _f(2, 1, 4, 4)], 2, {"update_rule": "linear", "state_update_capacity": 2}, "state_update_capacity is 2"),
    ("VarlenCausalConvWithState", [_f(4, 2), _f(2, 1, 3), _i32(0, 4), None, _f(1, 2, 2)], 2, {"state_update_capacity": 1}, "state_update_capacity is 1"),
    ("NGramHashMapping", _HASHED, 2, {"max_ngram_size": 1, "n_head_per_ngram": 1, "pad_id": 0}, "max_ngram_size is 1"),
    ("NGramHashMapping", _HASHED, 2, {"max_ngram_size": 2, "n_head_per_ngram": 1, "pad_id": 1 << 31}, "pad_id 2147483648 does not fit i32"),
    ("VarlenNGramHashMapping", [_i32(1), *_HASHED[1:], _i32(0, 1)], 2, {"max_ngram_size": 2, "n_head_per_ngram": 1, "pad_id": 0, "state_update_capacity": 1}, "state_update_capacity is 1"),
    ("VarlenNGramHashMapping", [_i32(1), *_HASHED[1:], _i32(0, 1)], 3, {"max_ngram_size": 2, "n_head_per_ngram": 1, "pad_id": 0}, "segment_ids is missing"),
    ("WordConvEmbedding", [_i32(1, 2)[None], _f(2, 1, 2, 3), _f(2), _f(9, 3)], 1, {"embedding_size": 3}, r"the sizes \[3, -1, -1\]"),
    ("MRotaryEmbedding", [_f(1, 2, 16), np.zeros((3, 1, 2), np.int64), _f(4, 8), _f(4, 8)], 1, {"mrope_section": [1, 2, 3]}, r"mrope_section is \[1, 2, 3\]"),
    ("DecoderMaskedMultiHeadAttention", [*[_f(1, 1, 8)] * 3, None, None, *[_f(1, 1, 4, 8)] * 2], 3, {"num_heads": 1, "past_present_share_buffer": 1},
        "past_present_share_buffer needs past_sequence_length"),
]
_UNSUPPORTED: list[tuple[str, list[Input], int, dict[str, Any], str]] = [
    ("GroupQueryAttention", _GROUPED, 4, _HEADS | {"sliding_window_cache": 1, "local_window_size": 2, "qk_output": 1}, "qk_output with sliding_window_cache"),
    ("MoE", _MOE, 1, {"use_sparse_mixer": 1}, "use_sparse_mixer 1"),
    ("QMoE", _QMOE, 1, {"quant_type": "fp4"}, "quant_type 'fp4'"),
    ("QMoE", _QMOE, 1, {"expert_weight_bits": 3}, "expert_weight_bits 3"),
    ("QMoE", _QMOE, 1, {"weights_prepacked": 1}, "weights_prepacked 1"),
    ("CausalConvWithState", _CONV, 2, {"ndim": 2}, "ndim 2"),
    ("CausalConvWithState", _CONV, 2, {"state_length": 9}, "state_length 9"),
    ("PagedAttention", _PAGES, 3, {"num_heads": 1, "kv_num_heads": 1, "kv_cache_layout": "LATENT"}, "kv_cache_layout 'LATENT'"),
    ("MatMulFpQ4", [_f(1, 32), _u8(40), np.array([32, 2])], 1, {"blk_quant_type": 2}, "blk_quant_type 2"),
    ("MurmurHash3", [_f(2)], 1, {}, "the hash of f32 cannot be converted"),
    ("GatherPacked", [Fixed(_u8(2, 66)), np.array([0])], 1, {"packed_type": 16, "K": 256}, "packed_type 16"),
    ("MatMulPacked", [_f(1, 32), Fixed(_u8(2, 18)), _f()], 1, {"packed_type": 2, "K": 32, "N": 2}, "global_scale"),
]
# fmt: on
_ROWS = [(*row, False) for row in _INVALID] + [(*row, True) for row in _UNSUPPORTED]


@pytest.mark.parametrize(("operator", "inputs", "outputs", "attributes", "message", "unsupported"), _ROWS)
def test_refused(
    operator: str, inputs: list[Input], outputs: int, attributes: dict[str, Any], message: str, unsupported: bool
) -> None:
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(node(operator, inputs, outputs, **attributes).model())
    assert re.search(rf"^node 'node' \(com.microsoft.{operator} of opset 1\): .*{message}", str(caught.value)), (
        caught.value
    )
    assert "\n" not in str(caught.value)
    assert caught.value.unsupported is unsupported
