"""Rows of operators on strings, labels and categories; see tests.onnx.rows."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.onnx.rows import MICROSOFT, ML, Row, f32, i64, row


def strings(*values: object) -> np.ndarray:
    return np.array(list(values), object)


_WORDS = strings(["a", "b", "a", "c"], ["c", "é", "b", "a"])
_POOL = {
    "min_gram_length": 1, "max_gram_length": 2, "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 4, 3],
    "pool_strings": ["a", "é", "c", "a", "b", "b", "a"],
}  # fmt: skip
_TOKENS = {"pad_value": "#", "mincharnum": 1}


def _tensor(kind: int, *values: object) -> TensorProto:
    return helper.make_tensor("t", kind, [len(values)], list(values))


# fmt: off
STRING_ROWS: list[Row] = [
    row("StringConcat", strings("a", "é", ""), strings(["x"], ["ö"]), domain="", id="broadcast"),
    row("StringSplit", strings("a b c", "x", "d  e"), domain="", outputs=(True, True), delimiter=" "),
    row("StringSplit", strings(["a--b-c--d", "--x"]), domain="", id="one split", outputs=(True, True), delimiter="--", maxsplit=1),
    row("RegexFullMatch", strings(["abc", "ABC1"], ["", "é"]), domain="", pattern="(?i)[a-c]*|\\pL"),
    *[row("StringNormalizer", strings("Monday", "tuesday", "TUESDAY", "Straße", "éÀ"), domain="", id=f"{case}, {sensitive}",
          case_change_action=case, is_case_sensitive=sensitive, stopwords=["tuesday"], locale="C.UTF-8")
      for case in ("NONE", "LOWER", "UPPER") for sensitive in (0, 1)],
    row("StringNormalizer", strings(["monday", "Monday"]), domain="", id="nothing is left", case_change_action="LOWER", stopwords=["monday"],
        locale="C.UTF-8"),
    *[row("TfIdfVectorizer", _WORDS, domain="", id=f"strings, {mode}", mode=mode, max_skip_count=1, weights=[0.5, 2.0, 1.0, 1.5, 3.0], **_POOL)
      for mode in ("TF", "IDF", "TFIDF")],
    row("TfIdfVectorizer", _WORDS[0], domain="", id="a vector of strings", mode="TF", max_skip_count=0, **_POOL),
    row("Cast", strings("1.5", "-2e3", "NaN", "INF", "-INF"), domain="", id="strings to floats", to=TensorProto.FLOAT),
    row("Cast", strings("12", "-7"), domain="", id="strings to integers", to=TensorProto.INT64),
    row("Cast", strings("1", "0"), domain="", id="strings to booleans", to=TensorProto.BOOL),
    row("Cast", np.array([1, 1 / 3, 1e10, 1e-7, 123456.789, np.nan, -np.inf, -0.0], np.float32), domain="", id="floats to strings",
        to=TensorProto.STRING),
    row("Cast", np.array([1 / 3, 1e300]), domain="", id="doubles to strings", to=TensorProto.STRING),
    row("Cast", np.array([1 / 3, 65504], np.float16), domain="", id="halves to strings", to=TensorProto.STRING),
    row("Cast", i64(7, -2**40), domain="", id="integers to strings", to=TensorProto.STRING),
    row("Cast", np.array([True, False]), domain="", id="booleans to strings", to=TensorProto.STRING),
    row("LabelEncoder", strings(["a", "b"], ["z", "a"]), domain=ML, id="strings to strings", keys_strings=["a", "b"], values_strings=["x", "y"],
        default_string="none"),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="strings to floats", keys_strings=["a", "b"], values_floats=[0.5, 0.25],
        default_float=7.0),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="the first of equal strings", keys_strings=["a", "b", "a"],
        values_int64s=[10, 20, 30]),
    row("LabelEncoder", i64(1, 2, 9), domain=ML, id="the first of equal integers", keys_int64s=[1, 2, 1], values_int64s=[10, 20, 30]),
    row("LabelEncoder", np.array([1, np.nan, 3], np.float32), domain=ML, id="NaN before opset 4", ml=2, keys_floats=[1.0, float("nan")],
        values_int64s=[10, 20]),
    row("LabelEncoder", np.array([1, np.nan, -0.0], np.float32), domain=ML, id="NaN and -0", keys_floats=[0.0, float("nan")],
        values_strings=["zero", "nan"]),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="tensors", keys_tensor=_tensor(8, b"a", b"b"),
        values_tensor=_tensor(11, 0.5, 1.5), default_tensor=_tensor(11, -1.0)),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="version 1, strings", ml=1, classes_strings=["b", "a"], default_int64=-5),
    row("LabelEncoder", i64(0, 1, 2, -1), domain=ML, id="version 1, integers", ml=1, classes_strings=["b", "a"], default_string="none"),
    row("CategoryMapper", strings(["a", "b", "z"]), domain=ML, id="strings", cats_strings=["a", "b", "a"], cats_int64s=[5, 6, 7], default_int64=-5),
    row("CategoryMapper", i64(5, 6, 9), domain=ML, id="integers", cats_strings=["a", "b", "c"], cats_int64s=[5, 6, 5], default_string="none"),
    row("OneHotEncoder", strings("a", "b", "z"), domain=ML, id="strings", cats_strings=["b", "a"]),
    row("OneHotEncoder", strings(["a", "b"]), domain=ML, id="the last of equal strings", cats_strings=["a", "b", "a"]),
    row("OneHotEncoder", f32(2, 2, low=0, high=3), domain=ML, id="floats", cats_int64s=[0, 1, 2]),
    row("Tokenizer", strings("ab c,d", "", "xyz"), domain=MICROSOFT, id="separators", mark=0, separators=[" ", ","], **_TOKENS),
    row("Tokenizer", strings("ab c,d", "", "xyz"), domain=MICROSOFT, id="marks", mark=1, separators=[" ", ","], **_TOKENS),
    row("Tokenizer", strings("ab é", ""), domain=MICROSOFT, id="characters", mark=1, separators=[""], **_TOKENS),
    row("Tokenizer", strings(["ab c,d", "q"], ["xyz", "é ö"]), domain=MICROSOFT, id="long tokens", mark=0, separators=[" "], pad_value="", mincharnum=2),
    row("Tokenizer", strings("a1b22c", "x"), domain=MICROSOFT, id="expressions", mark=0, separators=["[0-9]", "[0-9]+"], **_TOKENS),
    row("Tokenizer", strings("abcbcd"), domain=MICROSOFT, id="the first separator first", mark=0, separators=["cb", "bc"], **_TOKENS),
    row("Tokenizer", strings("ab c,d", "xyz"), domain=MICROSOFT, id="tokens", mark=1, tokenexp="[a-z]+|,", **_TOKENS),
    row("Tokenizer", strings("", " "), domain=MICROSOFT, id="no tokens", mark=1, separators=[" "], **_TOKENS),
]
