"""Tables, lengths and positions of language models that do not fit: one sentence with the layer, exit code 3."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import converters
import irexec
from irexec.cli.main import run
from irexec.testing import Case
from irexec.testing.rows import model_of, nothing
from tests.cases import language, matmul, recurrences
from tests.contrib_sweep.case import node
from tests.onnx.rows import Row
from tests.support.tiers import some

CASES = {row.id: row for row in [*language.ROWS, *recurrences.ROWS, *matmul.ROWS] if isinstance(row, Case)}


def i32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def f(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# fmt: off
_PAGED = "PagedAttentionExtension-extension-two sequences"
_ANGLES = "PagedAttentionExtension-extension-rotated blocks"
_STATES = [(f"Paged{name}-extension-plain", first) for name, first in (("GatedDeltaNet", 6), ("SelectiveSSM", 6), ("CausalConv1D", 4))]
OF_IR: list[tuple[str, dict[int, np.ndarray], str]] = [
    (_PAGED, {5: i32(0, -1)}, "past_lens has -1, expected 0 or more"),
    (_PAGED, {5: i32(0, 70)}, "sequence 1 needs 3 blocks, block_indices has 2"),
    (_PAGED, {5: i32(0)}, "subsequence_begins is [0, 5, 8], expected 2 numbers that ascend from 0 to 8"),
    (_PAGED, {6: i32(0, 5)}, "expected 3 numbers that ascend from 0 to 8"),
    (_PAGED, {6: i32(0, 9, 8)}, "subsequence_begins is [0, 9, 8]"),
    (_PAGED, {6: i32(-1, 5, 8)}, "subsequence_begins is [-1, 5, 8]"),
    (_PAGED, {7: i32(4, 2, 6)}, "block 6 of sequence 1 is out of range for 6 blocks"),
    (_PAGED, {7: i32(-2, 2, 0)}, "block -2 of sequence 0 is out of range for 6 blocks"),
    (_PAGED, {8: i32(0, 2, 1)}, "block_indices_begins is [0, 2, 1]"),
    (_PAGED, {8: i32(0, 1, 9)}, "block_indices_begins is [0, 1, 9]"),
    (_PAGED, {7: i32([4, 2, 0])}, "block_indices has rank 2, expected 1"),
    (_PAGED, {3: f(6, 2, 32)}, "key_cache has rank 3, expected 4"),
    (_PAGED, {25: i32(0, 1)}, "token_type_ids has 2 elements, expected 8 or none"),
    ("PagedAttentionExtension-extension-tree of tokens", {27: i32(0, 25, 40)}, "qq_bias_begins is 25 to 40 for sequence 1"),
    (_ANGLES, {14: i32(2, 99)}, "rotated_block_indices has [99], expected 0 to 5"),
    (_ANGLES, {15: i32([1], [3])}, "rotation_deltas has 1 to 3, rotation_trig_lut has 3 rows"),
    (_ANGLES, {15: i32([-1], [2])}, "rotation_deltas has -1 to 2"),
    *[row for name, at in _STATES for row in (
        (name, {at: i32(0, 7, 5, 8)}, "subsequence_begins is [0, 7, 5, 8], expected 4 numbers that ascend from 0 to 8"),
        (name, {at: i32(0, 5, 7, 9)}, "subsequence_begins is [0, 5, 7, 9]"),
        (name, {at + 1: i32(3, 9, 1, 4, 0, 2, 6, 5, 7)}, "block 9 of sequence 0 is out of range for 9 blocks"),
        (name, {at + 1: i32(3, -1, 1, 4, 0, 2, 6, 5, 7)}, "block -1 of sequence 0 is out of range"),
        (name, {at + 2: i32(0, 2, 7, 9)}, "sequence 0 needs 4 blocks, block_indices has 2"),
        (name, {at + 3: i32(0, -3, 4)}, "past_lens has -3, expected 0 or more"),
        (name, {at + 3: i32(0, 3)}, "expected 3 numbers that ascend"),
        (name, {at + 4: i32(2)}, "cache_interval has 1 elements, expected 3"),
    )],
    ("GatedDeltaNet-extension-plain", {3: f(3, 4, 8, 16)}, "recurrent_state has shape [3,4,8,16]"),
    ("GatedDeltaNet-extension-plain", {4: f(2, 4)}, "gate has rank 2, expected 3"),
    ("SelectiveSSM-extension-plain", {5: f(1, 4, 6, 8)}, "recurrent_state has shape [1,4,6,8]"),
    ("RoPE-ie_internal_opset-positions", {3: i32([0, 9, 1, 7, 2], [3, 3, 3, 4, 4])}, "positions are 0 to 9, the table has 9"),
    ("RoPE-ie_internal_opset-positions", {3: i32([0, -1, 1, 7, 2], [3, 3, 3, 4, 4])}, "positions are -1 to 7, the table has 9"),
    ("RoPE-ie_internal_opset-qwen with positions", {3: i32([0, 9, 1, 7, 2], [3, 3, 3, 4, 4])}, "positions are 0 to 9"),
    ("RMS-ie_internal_opset-scale", {1: f(5)}, "scale has shape [5]"),
    ("GroupedMatMul-17-tokens", {2: i64(3, 2, 10)}, "offsets [3, 2, 10] do not ascend within 0 to 10"),
    ("GroupedMatMul-17-tokens", {2: i64(3, 8, 11)}, "offsets [3, 8, 11] do not ascend within 0 to 10"),
    ("GroupedMatMul-17-tokens", {2: i64(-3, 8, 10)}, "offsets [-3, 8, 10] do not ascend"),
    ("GroupedMatMul-17-tokens", {2: i64(3, 5, 8, 10)}, "3 matrices"),
    ("GroupedMatMul-17-gradient", {2: i64(3, 12)}, "offsets [3, 12] do not ascend within 0 to 10"),
    ("AUGRUCell-ie_internal_opset-plain", {5: f(2, 2)}, "attention has shape [2,2], expected [2,1]"),
]
_HEADS = {"num_heads": 2, "kv_num_heads": 1}
_GROUPED = [f(2, 1, 32), f(2, 1, 16), f(2, 1, 16), f(2, 1, 8, 16), f(2, 1, 8, 16), i32(5, 3), i32(8)]
_ROTARY = [*_GROUPED, f(8, 8), f(8, 8), i64([4], [2])]
_PAGES = [f(4, 16), f(4, 16), f(4, 16), f(3, 4, 1, 16), f(3, 4, 1, 16), i32(0, 1, 4), i32(2, 3), i32([1, 0], [2, 0]), f(8, 8), f(8, 8), i32(6, 0, 1, -1)]
_ONE = {"num_heads": 1, "kv_num_heads": 1, "do_rotary": 1}
_SPARSE = [f(1, 1, 32), f(1, 1, 16), f(1, 1, 16), f(1, 1, 8, 16), f(1, 1, 8, 16), i32([0, 1, 3]), i32([0, 0, 1]), i32(5).reshape(()), i32(5)]
_MASKED = [f(1, 1, 8), f(1, 1, 8), f(1, 1, 8), None, None, f(1, 1, 4, 8), f(1, 1, 4, 8), i32(2)]
_CONV = [f(5, 2), f(2, 1, 3), i32(0, 2, 5), None, f(2, 2, 2)]
_DELTA = [f(5, 1, 4), f(5, 1, 4), f(5, 1, 4), i32(0, 2, 5), None, None, f(2, 1, 4, 4)]
_PACKED = [f(5, 4), f(5, 4), f(5, 4), None, i32([0, 1, 4], [2, 3, 5]), i32(0, 2, 5)]
_MOE = [f(2, 8), f(2, 3), f(3, 4, 8), None, f(3, 8, 4)]
_BIGRAMS = {"max_ngram_size": 2, "n_head_per_ngram": 1, "pad_id": 0}
_SIZES = {"GroupQueryAttention": (_ROTARY, 3, _HEADS | {"do_rotary": 1}), "PagedAttention": (_PAGES, 3, _ONE),
    "SparseAttention": (_SPARSE, 3, _HEADS | {"sparse_block_size": 4}), "GatedDeltaNet": (_DELTA, 2, {"update_rule": "linear"}),
    "DecoderMaskedMultiHeadAttention": (_MASKED, 3, {"num_heads": 1, "past_present_share_buffer": 1}),
    "VarlenCausalConvWithState": (_CONV, 2, {}), "PackedMultiHeadAttention": (_PACKED, 1, {"num_heads": 1}),
    "PackedAttention": ([f(5, 4), f(4, 12), f(12), _PACKED[4], _PACKED[5]], 1, {"num_heads": 1}),
    "RotaryEmbedding": ([f(1, 1, 2, 16), i64([0, 1]), f(8, 8), f(8, 8)], 1, {}),
    "MRotaryEmbedding": ([f(1, 1, 2, 16), np.zeros((3, 1, 2), np.int64), f(8, 8), f(8, 8)], 1, {"mrope_section": [2, 3, 3]}),
    "RemovePadding": ([f(2, 3, 4), i32(2, 3)], 4, {}), "RestorePadding": ([f(5, 4), _PACKED[4]], 1, {}),
    "NGramHashMapping": ([i32([1, 2, 3]), i32(3, 5), i32(7)], 2, _BIGRAMS),
    "VarlenNGramHashMapping": ([i32(1, 2, 3, 4, 0), i32(3, 5), i32(7), i32(0, 2, 5)], 2, _BIGRAMS),
    "WordConvEmbedding": ([i32([1, 2, 0]), f(2, 1, 2, 3), f(2), f(9, 3)], 1, {}),
}
_ORDER = [("VarlenNGramHashMapping", 3), ("VarlenCausalConvWithState", 2), ("GatedDeltaNet", 3), ("PackedMultiHeadAttention", 5), ("PackedAttention", 4)]
OF_ONNX: list[tuple[str, dict[int, np.ndarray], str]] = [
    ("GroupQueryAttention", {5: i32(-3, 3)}, "seqlens_k in range"),
    ("GroupQueryAttention", {5: i32(8, 3)}, "index 8 is out of range for a size of 8"),
    ("GroupQueryAttention", {6: i32(20)}, "total_sequence_length in range"),
    ("GroupQueryAttention", {6: i32(-3)}, "total_sequence_length in range"),
    ("GroupQueryAttention", {9: i64([8], [2])}, "positions in range"),
    ("GroupQueryAttention", {9: i64([4], [-1])}, "positions in range"),
    ("PagedAttention", {5: i32(0, 5, 4)}, "sequences in order"),
    ("PagedAttention", {5: i32(0, 1, 3)}, "sequences in order"),
    ("PagedAttention", {5: i32(1, 1, 4)}, "sequences in order"),
    ("PagedAttention", {6: i32(-2, 3)}, "past_seqlens in range"),
    ("PagedAttention", {6: i32(2, 6)}, "past_seqlens in range"),
    ("PagedAttention", {10: i32(6, 0, 12, -1)}, "slot_mapping in range"),
    ("PagedAttention", {10: i32(6, 0, 1, -2)}, "slot_mapping in range"),
    ("SparseAttention", {5: i32([0, 4, 3])}, "block_row_indices in order"),
    ("SparseAttention", {5: i32([0, 2, 1])}, "block_row_indices in order"),
    ("SparseAttention", {6: i32([2, 0, 1])}, "block_col_indices in range"),
    ("SparseAttention", {6: i32([0, -1, 1])}, "block_col_indices in range"),
    ("SparseAttention", {7: i32(9).reshape(())}, "key_total_sequence_lengths in range"),
    ("SparseAttention", {8: i32(6)}, "key_total_sequence_lengths in range"),
    ("SparseAttention", {8: i32(0)}, "key_total_sequence_lengths in range"),
    ("DecoderMaskedMultiHeadAttention", {7: i32(-2)}, "past_sequence_length in range"),
    ("DecoderMaskedMultiHeadAttention", {7: i32(4)}, "index 4 is out of range for a size of 4"),
    *[(name, {at: bad}, "sequences in order") for name, at in _ORDER for bad in (i32(0, 6, 5), i32(0, 2, 9), i32(-1, 2, 5), i32(0, 2, 4))],
    ("RotaryEmbedding", {1: i64([0, 8])}, "positions in range"),
    ("RotaryEmbedding", {1: i64([0, -1])}, "positions in range"),
    ("MRotaryEmbedding", {1: np.full((3, 1, 2), 8)}, "positions in range"),
    ("MRotaryEmbedding", {1: np.full((3, 1, 2), -1)}, "positions in range"),
    ("RemovePadding", {1: i32(2, 4)}, "sequence_token_count in range"),
    ("RemovePadding", {1: i32(-1, 3)}, "sequence_token_count in range"),
    ("RestorePadding", {1: i32([0, 1, 4], [2, 9, 5])}, "index 9 is out of range for a size of 6"),
    ("RestorePadding", {1: i32([0, 1, 4], [2, -9, 5])}, "index -9 is out of range"),
    ("NGramHashMapping", {2: i32(0)}, "vocab_sizes above 0"),
    ("VarlenNGramHashMapping", {2: i32(-1)}, "vocab_sizes above 0"),
    ("WordConvEmbedding", {0: i32([1, 9, 0])}, "characters in range"),
    ("WordConvEmbedding", {0: i32([1, -1, 0])}, "characters in range"),
]
NOT_CONVERTED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("MoE", [*_MOE[:1], f(2, 5), *_MOE[2:]], {"k": 2}, "the router has 5 experts, the weights of a layer have 3"),
    ("MoE", [*_MOE[:4], f(2, 8, 4)], {"k": 2}, "the router has 3 experts, the weights of a layer have 2"),
    ("MoE", _MOE, {"k": 4}, "k is 4, expected 1 to the number of experts, 3"),
    ("PagedAttention", [*_PAGES[:7], i32(1, 0), *_PAGES[8:]], _ONE, "has rank 1, expected 2"),
    ("PagedAttention", [*_PAGES[:3], f(3, 4, 16), *_PAGES[4:]], _ONE, "key_cache has rank 3, expected 4"),
    ("SparseAttention", [*_SPARSE[:5], i32(0, 1, 3), *_SPARSE[6:]], _HEADS | {"sparse_block_size": 4}, "has rank 1, expected 2"),
]
# fmt: on


def _refused(model: Path, given: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> str:
    """What a run of the model says; its exit code must be 3, and what it says one sentence."""
    np.savez(model.with_suffix(".npz"), **given)  # type: ignore[arg-type]
    assert run(["infer", str(model), "-i", str(model.with_suffix(".npz"))]) == 3
    said: str = capsys.readouterr().err
    assert "Traceback" not in said
    return " ".join(said.split())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "bad", "says"), OF_IR)
def test_an_operation_of_ir_refuses_it(
    name: str, bad: dict[int, np.ndarray], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = CASES[name]
    model, inputs = model_of(row, None, nothing)
    irexec.save_model(model, tmp_path / "m.xml")
    said = _refused(tmp_path / "m.xml", {f"input{i}": bad.get(i, x) for i, x in enumerate(inputs)}, capsys)
    assert says in said
    assert row.type in said


@functools.cache
def _converted(operator: str) -> tuple[Row, irexec.Model]:
    given, outputs, attributes = _SIZES[operator]
    row = node(operator, given, outputs, **attributes)
    return row, converters.convert(row.model())


@pytest.mark.parametrize(("operator", "bad", "says"), OF_ONNX)
@pytest.mark.sampled(8)
def test_a_converted_operator_refuses_it(
    operator: str, bad: dict[int, np.ndarray], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row, converted = _converted(operator)
    irexec.save_model(converted, tmp_path / "m.xml")
    said = _refused(tmp_path / "m.xml", row.feeds | {f"x{i}": x for i, x in bad.items()}, capsys)
    assert says in said
    assert "'node/" in said


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", _SIZES)
def test_what_the_rows_change_runs(operator: str) -> None:
    row, converted = _converted(operator)
    assert all(np.isfinite(np.asarray(x)).all() for x in irexec.compile_model(converted)(row.feeds).values())


@pytest.mark.parametrize(("operator", "given", "attributes", "says"), NOT_CONVERTED)
def test_it_is_not_converted(operator: str, given: list[Any], attributes: dict[str, Any], says: str) -> None:
    outputs = 1 if operator == "MoE" else 3
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(node(operator, given, outputs, **attributes).model())
    assert says in str(caught.value)
    assert f"node 'node' (com.microsoft.{operator}" in str(caught.value)


@pytest.mark.parametrize("page", some([-1, -7, 3, 1000], [-1, 3]))
def test_a_page_that_does_not_exist_is_not_another_page(page: int) -> None:
    """ONNX Runtime takes it for one that is not mapped: its keys are hidden, whatever another page holds."""
    table = i32([1, page], [2, 0])
    session = irexec.compile_model(converters.convert(node("PagedAttention", _PAGES[:10], 3, **_ONE).model()))
    row = node("PagedAttention", _PAGES[:10], 3, **_ONE).feeds | {"x7": table, "x6": i32(4, 1)}
    expected = session(row)[0]
    caches = {name: row[name].copy() for name in ("x3", "x4")}
    for cache in caches.values():
        # The first sequence has page 1, the second page 2 and its own tokens.
        cache[0] = np.nan
        cache[2, 1:] = np.nan
    found = session(row | caches)[0]
    np.testing.assert_array_equal(found[:1], expected[:1])
    assert np.isfinite(found).all()
