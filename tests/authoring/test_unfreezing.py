"""Constants that keep an input from having another size are repaired, with the values of the model that never had them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.tools.validation import report
from tests.support.edited import Original, by_openvino, check_values, content, saved
from tests.support.tiers import some

NETWORKS = (
    "swin", "vit_sdpa", "segformer", "super_resolution", "diffusion_unet", "bert_sdpa", "deberta", "gemma2", "t5", "mamba", "wavlm", "rnn_tagger", "gru_tagger", "bilstm_tagger", "spectrogram",
    "gpt2_sdpa", "llama_sdpa", "qwen3", "deformable_detr",
)  # fmt: skip
"""Networks that do not take another batch after their shapes were set and folded."""


@pytest.mark.parametrize("name", some(NETWORKS, ("swin",)))
@pytest.mark.slow
def test_frozen_networks_take_another_batch(name: str, tmp_path: Path) -> None:
    """With twice the rows, all of them different, the values are those of the network that was never frozen."""
    original = Original(name, tmp_path)
    frozen = original.model()
    with frozen.edit() as g:
        g.reshape({port: array.shape for port, array in original.feed.items()})
        g.fold()
    feed = [np.concatenate([array, _other(array)]) for array in original.feed.values()]
    shapes = {port: array.shape for port, array in zip(original.feed, feed, strict=True)}
    before = content(frozen)
    with pytest.raises(irexec.NodeError), frozen.edit() as g:
        g.reshape(shapes)
    assert content(frozen) == before
    with frozen.edit() as g:
        g.unfreeze(list(original.feed))
    check_values(by_openvino(saved(frozen, tmp_path, "same"), list(original.feed.values())), original.values())
    with frozen.edit() as g:
        g.reshape(shapes)
    check_values(by_openvino(saved(frozen, tmp_path), feed), by_openvino(original.path, feed))


def _other(array: np.ndarray) -> np.ndarray:
    """Other rows of the same kind; masks end with a zero."""
    if array.ndim < 2:
        return array
    if array.dtype.kind in "iu" and array.max(initial=0) <= 1:
        ending = np.arange(array.shape[-1]) < array.shape[-1] - 1
        return array * ending.astype(array.dtype)
    return np.ascontiguousarray(array[..., ::-1])


def test_recurrent_networks_take_longer_sequences(tmp_path: Path) -> None:
    """The lengths of the sequences, which folding makes constant, follow the input."""
    original = Original("bilstm_tagger", tmp_path)
    model = original.model()
    (feed,) = (np.concatenate([array, array[:, ::-1]], 1) for array in original.feed.values())
    with model.edit() as g:
        g.reshape(next(array.shape for array in original.feed.values()))
        g.fold()
        g.unfreeze(0, 1)
        g.reshape(feed.shape)
    check_values(by_openvino(saved(model, tmp_path), [feed]), by_openvino(original.path, [feed]))


def test_what_a_longer_input_needs_may_be_lost(tmp_path: Path) -> None:
    """Folding left the embeddings of the positions that the frozen network has."""
    original = Original("bert_sdpa", tmp_path)
    model = original.model()
    with model.edit() as g:
        g.reshape({port: array.shape for port, array in original.feed.items()})
        g.fold()
    before = content(model)
    with (
        pytest.raises(irexec.NodeError, match=r"constants .*position_embeddings.* cannot be repaired"),
        model.edit() as g,
    ):
        g.unfreeze(list(original.feed), 1)
    first, *others = original.feed
    with pytest.raises(irexec.NodeError, match=f"unfreeze '{others[0]}'"), model.edit() as g:
        g.unfreeze(first, 1)
    assert content(model) == before


def _both(rows: int, columns: int) -> irexec.Model:
    """A mask that is flattened and read by constant indices, which have the rows in them."""
    mask = opset.parameter([rows, columns], "f32", name="mask")
    indices = np.arange(rows * columns).reshape(rows, 1, columns)
    flat = opset.reshape(mask, np.array([rows * columns]), special_zero=False)
    picked = opset.gather(flat, indices[..., ::-1].copy(), np.int64(0))
    return irexec.Model([opset.reshape(picked, np.array([rows, -1, columns]), special_zero=False)], [mask])


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (2, 5), (3, 1)])
def test_indices_into_rows_follow_the_number_of_rows(rows: int, columns: int, tmp_path: Path) -> None:
    model = _both(rows, columns)
    with model.edit() as g:
        g.unfreeze("mask")
        g.set_batch(7)
    mask = np.random.default_rng(0).uniform(-1, 1, (7, columns)).astype(np.float32)
    check_values(by_openvino(saved(model, tmp_path), [mask]), [mask[:, None, ::-1]])


def test_indices_that_do_not_follow_are_refused() -> None:
    mask = opset.parameter([2, 5], "f32", name="mask")
    flat = opset.reshape(mask, np.array([10]), special_zero=False)
    model = irexec.Model([opset.gather(flat, np.array([0, 7, 3]), np.int64(0))], [mask])
    text = "keeps the size and cannot be repaired: the outputs are the same whatever the size"
    with pytest.raises(irexec.NodeError, match=text), model.edit() as g:
        g.unfreeze("mask")


@pytest.mark.parametrize("rows", [1, 2])
def test_constants_of_which_indices_are_a_sum_follow_the_rows(rows: int, tmp_path: Path) -> None:
    """Rows begin at multiples of their length, to which columns are added when the model runs; the shape is read too."""
    mask, columns = opset.parameter([rows, 5], "f32", name="mask"), opset.parameter([1, "?"], "i64", name="columns")
    indices = opset.add(opset.convert(columns, destination_type="i32"), np.arange(rows, dtype=np.int32)[:, None] * 5)
    flat = opset.reshape(mask, np.array([rows * 5]), special_zero=False)
    picked = [opset.gather(flat, indices, np.int64(0)) for _ in range(2)]
    shape = opset.shape_of(indices)
    model = irexec.Model([opset.reshape(each, shape, special_zero=False) for each in picked], [mask, columns])
    with model.edit() as g:
        g.unfreeze("mask")
        g.reshape({"mask": [3, 5]})
    values = np.random.default_rng(0).uniform(-1, 1, (3, 5)).astype(np.float32)
    check_values(by_openvino(saved(model, tmp_path), [values, np.array([[4, 0, 2]])]), [values[:, [4, 0, 2]]] * 2)


@pytest.mark.parametrize("rows", [1, 2])
def test_elements_that_are_written_into_flattened_rows(rows: int, tmp_path: Path) -> None:
    x = opset.parameter([rows, 4], "f32", name="x")
    flat = opset.reshape(x, np.array([rows * 4]), special_zero=False)
    new = opset.reshape(opset.slice(x, [0], [2], [1], [1]) * 3, np.array([rows * 2]), special_zero=False)
    indices = (np.arange(rows)[:, None] * 4 + [1, 3]).reshape(-1, 1)
    written = opset.reshape(opset.scatter_nd_update(flat, indices, new), np.array([rows, 4]), special_zero=False)
    model = irexec.Model([written], [x])
    with model.edit() as g:
        g.unfreeze("x")
        g.set_batch(5)
    values = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
    expected = values.copy()
    expected[:, [1, 3]] = values[:, :2] * 3
    check_values(by_openvino(saved(model, tmp_path), [values]), [expected])


@pytest.mark.parametrize("length", [0, 2])
def test_initial_values_of_variables_follow_the_beams(length: int, tmp_path: Path) -> None:
    """OpenVINO ends the process where the initial value has fewer rows than are selected."""
    x, beams = opset.parameter([2, 1, 3], "f32", name="x"), opset.parameter([2], "i32", name="beams")
    initial = np.full((2, length, 3), 7, np.float32)
    past = opset.read_value(initial, variable_id="v", variable_type="f32", variable_shape="?,?,3")
    longer = opset.concat(opset.gather(past, beams, np.int64(0)), x, axis=1)
    pattern = opset.concat(np.array([2, 1]), opset.gather(opset.shape_of(longer), [1], np.int64(0)), [3], axis=0)
    wider = opset.broadcast(opset.unsqueeze(longer, [1]), pattern, mode="bidirectional")
    model = irexec.Model([wider], [x, beams], sinks=[opset.assign(longer, variable_id="v")])
    with model.edit() as g:
        g.unfreeze(["x", "beams"])
        g.set_batch(4)
    values = np.random.default_rng(0).uniform(-1, 1, (4, 1, 3)).astype(np.float32)
    expected = np.concatenate([np.full((4, length, 3), 7, np.float32), values], 1)[:, None]
    check_values(by_openvino(saved(model, tmp_path), [values, np.arange(4, dtype=np.int32)]), [expected])


def test_layers_that_keep_their_shapes_are_named() -> None:
    """The constant size of an Interpolate may have followed from the input's, or not: it is said."""
    x = opset.parameter([1, 2, 4, 4], "f32", name="x")
    flat = opset.reshape(x, np.array([1, 2, 16]), special_zero=False)
    resized = opset.interpolate(
        x, np.array([8, 8]), np.array([2, 3]), mode="nearest", shape_calculation_mode="sizes", name="up"
    )
    model = irexec.Model([flat, resized], [x])
    with model.edit() as g:
        g.unfreeze("x", 2)
    note = "layer 'up' (Interpolate) keeps the shape [1,2,8,8], whatever the size of axis 2 of input 'x' is"
    assert g.notes == [note]
    g.undo()
    assert g.notes == []
    alone = irexec.Model([resized], [x])
    with pytest.raises(irexec.InputError, match=r"no constant blocks .*; layer 'up' .* keeps"), alone.edit() as g:
        g.unfreeze("x", 2)


def test_two_axes_of_one_pattern_are_unfrozen(tmp_path: Path) -> None:
    """The second is the size that a ShapeOf returns, since a pattern has one -1."""
    x = opset.parameter([2, 3, 4], "f32", name="x")
    model = irexec.Model([opset.reshape(x, np.array([2, 6, 2]), special_zero=False)], [x])
    with model.edit() as g:
        g.unfreeze("x", 0)
        g.unfreeze("x", 1)
        g.reshape([5, 7, 4])
    values = np.random.default_rng(0).uniform(-1, 1, (5, 7, 4)).astype(np.float32)
    check_values(by_openvino(saved(model, tmp_path), [values]), [values.reshape(5, 14, 2)])
    assert [node.type for node in model.nodes if node.type in ("ShapeOf", "Gather", "Multiply")]


def _frozen(batch: int = 1) -> irexec.Model:
    """A convolution whose output is flattened by a pattern that has the batch in it, as old exporters write it."""
    x = opset.parameter([batch, 3, 4, 4], "f32", name="x")
    flat = opset.reshape(opset.relu(x), np.array([batch, 48], np.int64), special_zero=False, name="flatten")
    heads = opset.reshape(flat @ np.ones((48, 6), np.float32), np.array([batch * 2, 3], np.int64), special_zero=False)
    back = opset.reshape(heads, np.array([batch, 2, 3], np.int64), special_zero=True, name="back")
    return irexec.Model([back], [x])


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_frozen_batch_is_unfrozen(batch: int, tmp_path: Path) -> None:
    model = _frozen(batch)
    with pytest.raises(irexec.NodeError, match=r"pattern is the constant .* unfreeze"), model.edit() as g:
        g.set_batch(4)
    with pytest.raises(irexec.NodeError, match=r"pattern is the constant .* unfreeze"):
        model.reshape([4, 3, 4, 4])
    model.save(tmp_path / "frozen.xml")
    found = report(str(tmp_path / "frozen.xml"), shapes={None: (4, 3, 4, 4)}).findings
    assert [finding.layer_name for finding in found if "which unfreeze may repair" in finding.message] == ["flatten"]
    with model.edit() as g:
        g.unfreeze("x")
        g.set_batch(4)
    image = np.random.default_rng(0).uniform(-1, 1, (4, 3, 4, 4)).astype(np.float32)
    expected = (np.maximum(image, 0).reshape(4, 48) @ np.ones((48, 6), np.float32)).reshape(4, 2, 3)
    check_values(by_openvino(saved(model, tmp_path), [image]), [expected])
    with pytest.raises(irexec.InputError, match="no constant blocks another size of axis 0"), model.edit() as g:
        g.unfreeze("x")
    with pytest.raises(irexec.NodeError, match="keeps the size"), _frozen(batch).edit() as g:
        g.unfreeze("x", 2)
