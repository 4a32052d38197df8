"""Tokenizer IRs of eight model families give the token ids and texts that OpenVINO gives."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import irexec
from tests.cli.calling import Capture, stderr, stdout
from tests.support.paths import ROOT

ARCHIVE = ROOT / "tests" / "data" / "tokenizers.zip"
FAMILIES = ("bert_uncased", "roberta", "llama3", "clip", "llama2", "t5", "albert", "word_level")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizers")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(made)
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict:
    return json.loads((folder / "answers.json").read_text("utf-8"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_and_texts_are_those_of_openvino(family: str, folder: Path, answers: dict) -> None:
    paths = [str(folder / f"{family}.{kind}.xml") for kind in ("tokenizer", "detokenizer")]
    assert [finding for path in paths for finding in irexec.validate(path)] == []
    tokenizer, detokenizer = map(irexec.compile_model, paths)
    results = list(tokenizer([np.array(answers["lines"], object)]).values())
    assert [result.tolist() for result in results] == answers[family]["tokens"]
    texts = next(iter(detokenizer([results[0]]).values()))
    assert texts.tolist() == answers[family]["texts"]


@pytest.mark.parametrize("family", ("bert_uncased", "llama3"))
def test_a_line_alone_has_the_tokens_that_it_has_in_a_batch(family: str, folder: Path, answers: dict) -> None:
    tokenizer = irexec.compile_model(str(folder / f"{family}.tokenizer.xml"))
    for line, row, mask in list(zip(answers["lines"], *(answers[family]["tokens"][i] for i in (0, -1)), strict=True))[
        :20
    ]:
        ids = next(iter(tokenizer([np.array([line], object)]).values()))
        assert ids[0].tolist() == [token for token, is_token in zip(row, mask, strict=True) if is_token]


@pytest.mark.slow
def test_commands(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    model = folder / "bert_uncased.tokenizer.xml"
    (tmp_path / "lines.txt").write_text("Hello, wörld\nПривет\n", "utf-8")
    ids = irexec.compile_model(str(model))([np.array(["Hello, wörld = 1"], object)])["input_ids"][0]
    assert " ".join(map(str, ids.tolist())) in stdout(capsys, "infer", model, "-i", "text:Hello, wörld = 1")
    assert "[2," in stdout(capsys, "infer", model, "-i", tmp_path / "lines.txt", "-o", tmp_path / "ids.npz")
    with np.load(tmp_path / "ids.npz") as results:
        np.save(tmp_path / "ids.npy", results["input_ids"])
    assert "hello, world" in stdout(
        capsys, "infer", folder / "bert_uncased.detokenizer.xml", "-i", tmp_path / "ids.npy"
    )
    assert "no findings" in stdout(capsys, "validate", model)
    assert "WordpieceTokenizer" in stdout(capsys, "inspect", model, "--layers")
    stdout(capsys, "edit", model, "--rename", "input_ids=ids", "-o", tmp_path / "renamed.xml")
    stdout(capsys, "compare", model, tmp_path / "renamed.xml", "-i", "text:Hello")
    stdout(capsys, "script", model, "-o", tmp_path / "model.py")
    assert "wordpiece_tokenizer" in (tmp_path / "model.py").read_text("utf-8")


def test_a_string_for_an_input_of_numbers(folder: Path, capsys: Capture) -> None:
    output = stderr(capsys, "infer", folder / "bert_uncased.detokenizer.xml", "-i", "text:1 2")
    assert "'text:1 2' is a string" in output
