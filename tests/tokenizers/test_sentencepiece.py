"""Operations of SentencePiece: refusals of a run, with the library and without it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.errors import NodeError, UnsupportedError
from tests.cases.tokenizers import SP, WITHOUT_ENDS


def _tokens(model: np.ndarray, **attributes: Any) -> np.ndarray:
    text = opset.parameter([-1], "string", "text")
    made = opset.extension("extension").sentencepiece_tokenizer(opset.constant(model), text, **attributes)
    compiled = irexec.compile_model(irexec.Model(list(made), [text]))
    return list(compiled([np.array(["ab"], object)]).values())[1]


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(
        UnsupportedError, match=r"needs sentencepiece.*pip install 'irexec\[tokenizers-sentencepiece\]'"
    ):
        _tokens(SP.array)


def test_random_tokens_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="nbest_size is -1"):
        _tokens(SP.array, nbest_size=-1)


@pytest.mark.parametrize(
    ("model", "attributes", "says"),
    [
        (np.array([9, 9], np.uint8), {}, "the first input is not a model of SentencePiece"),
        (np.array([], np.uint8), {}, "the first input is not a model of SentencePiece"),
        (WITHOUT_ENDS.array, {"add_bos": True}, "the model has no token for the begin of a sequence"),
        (WITHOUT_ENDS.array, {"add_eos": True}, "the model has no token for the end of a sequence"),
    ],
)
def test_models_that_are_refused(model: np.ndarray, attributes: dict[str, Any], says: str) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(NodeError, match=says):
        _tokens(model, **attributes)


def test_negative_token_ids_are_refused() -> None:
    pytest.importorskip("sentencepiece")
    ids = opset.parameter([1, 2], "i32", "ids")
    made = opset.extension("extension").sentencepiece_detokenizer(opset.constant(SP.array), ids)
    compiled = irexec.compile_model(irexec.Model(list(made), [ids]))
    with pytest.raises(NodeError, match="negative token id: -3"):
        compiled([np.array([[4, -3]], np.int32)])
