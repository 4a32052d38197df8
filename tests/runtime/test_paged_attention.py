"""A Llama with its cache in blocks gives the logits of the stateful original, step by step; wrong tables are refused in words."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.support.paths import DATA, NETWORKS

BLOCKS, TOKENS = 6, 45
IDS = np.random.default_rng(3).integers(0, 60, (2, TOKENS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("llama")
    for file in (DATA / "llama_paged.zip", NETWORKS / "llama_sdpa.zip"):
        with zipfile.ZipFile(file) as archive:
            archive.extractall(path)
    return path


def paged(spans: list[tuple[int, int]], blocks: list[list[int]]) -> dict[str, Any]:
    """The inputs of a run: for each sequence the tokens of earlier runs and those after this one, and its blocks."""
    new = [IDS[i, begin:end] for i, (begin, end) in enumerate(spans)]
    caches = {
        f"{name}_cache.{i}": np.zeros((BLOCKS, 2, 32, 6), np.float32) for i in range(2) for name in ("key", "value")
    }
    return caches | {
        "input_ids": np.concatenate(new).astype(np.int64),
        "position_ids": np.concatenate([np.arange(begin, end) for begin, end in spans]).astype(np.int64),
        "max_context_len": np.int32(64),
        "past_lens": np.int32([begin for begin, _ in spans]),
        "subsequence_begins": np.int32(np.cumsum([0, *map(len, new)])),
        "block_indices": np.int32([*itertools.chain(*blocks)]),
        "block_indices_begins": np.int32(np.cumsum([0, *map(len, blocks)])),
    }


def test_the_only_finding_is_that_openvino_does_not_read_it(folder: Path) -> None:
    assert [one.code for one in irexec.validate(irexec.read_model(folder / "llama_paged.xml"))] == ["IR110"]


@pytest.mark.slow
def test_steps_are_those_of_the_stateful_original(folder: Path) -> None:
    """Two sequences of unequal lengths, one of them in two blocks that are not neighbours, beside one by one."""
    session = irexec.compile_model(irexec.read_model(folder / "llama_paged.xml"))
    originals = [irexec.compile_model(irexec.read_model(folder / "llama_sdpa.xml")) for _ in range(2)]
    begins = [0, 0]
    for ends in ([33, 5], [34, 6], [37, 20], [38, 20], [TOKENS, 41]):
        expected = []
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if begin < end:
                tokens, places = IDS[i, begin:end].astype(np.int64), np.arange(begin, end, dtype=np.int64)
                given = [tokens[None], np.ones((1, end), np.int64), places[None], np.int32([0])]
                expected.append(
                    originals[i](dict(zip((port.name for port in originals[i].inputs), given, strict=True)))[0][0]
                )
        found = session(paged([*zip(begins, ends, strict=True)], [[4, 1], [0, 5]]))[0]
        np.testing.assert_allclose(found[:, 0], np.concatenate(expected), rtol=1e-4, atol=2e-5)
        begins = ends
    assert sorted(session.variables) == ["key_cache.0", "key_cache.1", "value_cache.0", "value_cache.1"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("spans", "blocks", "says"),
    [
        ([(0, 33)], [[2, 6]], "block 6 of sequence 0 is out of range for 6 blocks"),
        ([(0, 33)], [[2, -1]], "block -1 of sequence 0 is out of range for 6 blocks"),
        ([(32, 33)], [[2]], "sequence 0 needs 2 blocks, block_indices has 1"),
        ([(-3, 0)], [[2]], "past_lens has -3, expected 0 or more"),
    ],
)
def test_a_wrong_table_is_refused_with_its_layer(
    spans: list[tuple[int, int]], blocks: list[list[int]], says: str, folder: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    inputs = paged([(max(begin, 0), end or 3) for begin, end in spans], blocks) | {
        "past_lens": np.int32([begin for begin, _ in spans])
    }
    np.savez(tmp_path / "x.npz", **inputs)
    assert run(["infer", str(folder / "llama_paged.xml"), "-i", str(tmp_path / "x.npz")]) == 3
    err = capsys.readouterr().err
    assert says in err
    assert "(PagedAttentionExtension)" in err or "PagedAttentionExtension_" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_saved_state_continues(folder: Path, tmp_path: Path) -> None:
    """A run that begins with the caches of another gives what the second run of a session gives."""
    model, state = str(folder / "llama_paged.xml"), str(tmp_path / "state.npz")
    session = irexec.compile_model(irexec.read_model(model))
    for i, span in enumerate(((0, 5), (5, 7))):
        inputs = paged([span], [[2]])
        expected = session(inputs)[0]
        np.savez(tmp_path / "x.npz", **inputs)
        begin = ["--load-state", state] if i else []
        files = ["-i", str(tmp_path / "x.npz"), "-o", str(tmp_path / "y.npz"), "--save-state", state]
        assert run(["infer", model, *files, *begin]) == 0
    with np.load(tmp_path / "y.npz") as found:
        np.testing.assert_allclose(found[found.files[0]], expected, rtol=1e-4, atol=2e-5)


def test_offsets_must_ascend(folder: Path) -> None:
    session = irexec.compile_model(irexec.read_model(folder / "llama_paged.xml"))
    with pytest.raises(
        irexec.IrexecError, match=r"subsequence_begins is \[0, 4\], expected 2 numbers that ascend from 0 to 3"
    ):
        session(paged([(0, 3)], [[1]]) | {"subsequence_begins": np.int32([0, 4])})
