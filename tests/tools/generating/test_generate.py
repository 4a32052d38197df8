"""Tokens of a language model: those of OpenVINO, and the first one at which a runtime parts."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.errors import InputError, ModelError
from irexec.runtime.session import Session
from irexec.tools import generating
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.generating import GenerateOptions, generate, next_token
from tests.support.language_model import language_model
from tests.support.paths import DATA, NETWORKS

PROMPT = "Once upon a time"
# Recorded from OpenVINO 2026.4: tokenizer, model in f32 and detokenizer, step by step.
PROMPT_IDS = [0, 49, 80, 69, 71, 223, 87, 82, 788, 394, 312, 75, 315]
STEPS = [
    (126, 0.9093, 646, 0.0766), (784, 0.9982, 1436, 0.0018), (784, 0.9985, 1436, 0.0014), (1036, 0.9733, 383, 0.0267),
    (1178, 0.5954, 726, 0.2318), (126, 0.9975, 31, 0.0025),
]  # fmt: skip
TEXT = "\ufffd。東京は日本の首都です。東京は日本の首都ですפ\ufffd我能吞下玻璃而不伤身体\ufffd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(language_model(tmp_path_factory.mktemp("language"), 1500))


@pytest.mark.slow
def test_tokens_probabilities_and_text_are_those_of_openvino(folder: str) -> None:
    found = generate(folder, PROMPT, GenerateOptions(max_new_tokens=6))
    assert (list(found.prompt), found.text, found.ended) == (PROMPT_IDS, TEXT, False)
    for token, (chosen, probability, second, next_probability) in zip(found.tokens, STEPS, strict=True):
        assert token.runner_up is not None
        assert (token.choice.id, token.runner_up.id) == (chosen, second)
        assert token.choice.probability == pytest.approx(probability, abs=6e-5)
        assert token.runner_up.probability == pytest.approx(next_probability, abs=6e-5)
    assert "".join(token.choice.text for token in found.tokens) == TEXT


def test_openvino_beside_irexec(folder: str) -> None:
    pytest.importorskip("openvino")
    found = generate(folder, PROMPT, GenerateOptions(max_new_tokens=4, runtime="openvino", temperature=5.0, seed=1))
    assert found.agrees
    assert all(token.beside is not None and token.beside.difference < 1e-3 for token in found.tokens)


def test_caches_of_inputs_go_from_step_to_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The steps are those of the variables; each runtime has its own caches."""
    folder = language_model(tmp_path, 1500, caches=True)
    found = generate(str(folder), PROMPT, GenerateOptions(max_new_tokens=6, runtime="reference"))
    assert [token.choice.id for token in found.tokens] == [step[0] for step in STEPS]
    for token in found.tokens:
        assert token.beside is not None
        assert token.beside.cache in ("past_key_values.0.key", "past_key_values.0.value")
        assert token.beside.cache_difference is not None
        assert token.beside.cache_difference < 1e-4
    words = ["-p", PROMPT, "--max-new-tokens", "2", "--trace", "--runtime", "reference", "--precision", "as-written"]
    assert run(["generate", str(folder / "openvino_model.xml"), *words]) == 0
    assert capsys.readouterr().out.count("caches differ by") == 2


def test_caches_are_read_only_where_they_are_compared(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that reads them copies as much as there are tokens, and nothing else would free them."""
    asked, values = list[int](), Session.values

    def counted(self: Session, inputs: Any, names: Sequence[Any], **options: Any) -> list[np.ndarray]:
        asked.append(len(names))
        return values(self, inputs, names, **options)

    monkeypatch.setattr(Session, "values", counted)
    generate(folder, PROMPT, GenerateOptions(max_new_tokens=2))
    assert asked == [1, 1]
    generate(folder, PROMPT, GenerateOptions(max_new_tokens=1, precision="as-written"))
    assert asked[2:] == [3, 3]


@pytest.mark.slow
def test_caches_in_blocks_give_the_tokens_of_the_stateful_original(tmp_path: Path) -> None:
    """The prompt fills a block, and new tokens begin the next one."""
    for file in (DATA / "llama_paged.zip", NETWORKS / "llama_sdpa.zip"):
        with zipfile.ZipFile(file) as archive:
            archive.extractall(tmp_path)
    prompt = np.random.default_rng(3).integers(0, 60, 30).tolist()
    found = generate(str(tmp_path / "llama_paged.xml"), prompt, GenerateOptions(max_new_tokens=5, runtime="reference"))
    assert found.agrees
    session, begin = irexec.compile_model(irexec.read_model(tmp_path / "llama_sdpa.xml")), 0
    tokens = list(prompt)
    for _ in range(5):
        end = len(tokens)
        places = np.arange(begin, end, dtype=np.int64)[None]
        given = [np.int64([tokens[begin:]]), np.ones((1, end), np.int64), places, np.int32([0])]
        tokens.append(int(session(given)[0][0, -1].argmax()))
        begin = end
    assert [token.choice.id for token in found.tokens] == tokens[len(prompt) :]


@pytest.mark.parametrize(("ends", "count"), [([784], 2), ([5, 1036], 4)])
def test_an_end_token_ends_the_text(tmp_path: Path, ends: list[int], count: int) -> None:
    found = generate(str(language_model(tmp_path, 1500, ends=ends)), PROMPT)
    assert (len(found.tokens), found.ended) == (count, True)


def test_the_step_in_which_a_runtime_parts(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(name: str, model: Any, **settings: Any) -> Any:
        runtime = open_runtime("reference", model)
        plain = runtime.run_all

        def run_all(runs: Sequence[Any], values: Sequence[Any]) -> list[list[np.ndarray]]:
            found = plain(runs, values)
            # In the third step its token is the runner-up.
            found[2][0][0, -1, STEPS[2][2]] += 20
            return found

        monkeypatch.setattr(runtime, "run_all", run_all)
        return runtime

    monkeypatch.setattr(generating, "open_runtime", opened)
    monkeypatch.chdir(tmp_path)
    words = ["--max-new-tokens", "5", "--trace", "--runtime", "reference", "--save-inputs", "s{}.npz"]
    assert run(["generate", folder, "-p", PROMPT, *words]) == 1
    shown = capsys.readouterr()
    assert "reference parts in step 3: " in " ".join(shown.out.split())
    assert f"compare {folder}/openvino_model.xml --b-runtime reference -i 's{{}}.npz' --steps=3" in shown.err
    assert np.load("s1.npz")["input_ids"].tolist() == [PROMPT_IDS]
    third = np.load("s3.npz")
    # The third step has the second new token, after 13 tokens of the prompt and the first one.
    assert (third["input_ids"].tolist(), third["position_ids"].tolist()) == ([[784]], [[14]])
    assert third["attention_mask"].tolist() == [[1] * 15]


LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3]))


@pytest.mark.parametrize(
    ("options", "draw", "token"),
    [
        ({}, 0.9, 1),
        # By decreasing probability: 1 up to 0.4, 3 up to 0.7, 2 up to 0.9, 0.
        ({"temperature": 1.0}, 0.39, 1),
        ({"temperature": 1.0}, 0.41, 3),
        ({"temperature": 1.0}, 0.89, 2),
        ({"temperature": 1.0}, 0.91, 0),
        # 4/7 and 3/7.
        ({"top_k": 2}, 0.56, 1),
        ({"top_k": 2}, 0.99, 3),
        # 0.4 and 0.3 reach 0.6.
        ({"top_p": 0.6}, 0.99, 3),
        ({"top_p": 0.3}, 0.99, 1),
        # Squares: 16, 9, 4 and 1 of 30.
        ({"temperature": 0.5}, 0.53, 1),
        ({"temperature": 0.5}, 0.54, 3),
    ],
)
def test_sampling(options: dict[str, Any], draw: float, token: int) -> None:
    assert next_token(LOGITS, GenerateOptions(**options), draw) == token


def test_equal_logits_give_the_smaller_id() -> None:
    assert next_token(np.float32([1, 3, 3]), GenerateOptions(), 0.5) == 1


def test_refusals(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match="has no openvino_model"):
        generate(str(tmp_path), PROMPT)
    with pytest.raises(InputError, match="the prompt has no tokens"):
        generate(folder, [])
    assert run(["generate", folder]) == 2
    assert "either as text with -p or as token ids with --ids" in capsys.readouterr().err
    assert run(["generate", folder, "--ids", "1", "--save-inputs", "x.npz"]) == 2
