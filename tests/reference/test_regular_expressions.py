"""Regular expressions of RE2: by hand, against Python's re where both mean the same, and as ONNX Runtime matches them."""

from __future__ import annotations

import random
import re
import time

import pytest

from irexec.errors import OpError
from irexec.reference.regular_expressions import RegularExpression

# Expression, texts that match, texts that do not.
ROWS = [
    ("", [""], ["a", "\n"]),
    ("a|bc*", ["a", "b", "bcc"], ["ac", "", "ab"]),
    ("(a|b){2,3}", ["ab", "bba"], ["a", "abab"]),
    ("a{,2}", ["a{,2}"], ["aa"]),
    ("x{", ["x{"], ["x"]),
    (".", ["é", "\t"], ["\n", ""]),
    ("(?s).", ["\n"], [""]),
    ("a.(?s:.)", ["a1\n"], ["a\n1"]),
    ("^a$", ["a"], ["a\n"]),
    ("(?m)^a$\n^b$", ["a\nb"], ["ab"]),
    (r"\Aa\z", ["a"], ["a\n"]),
    (r"\d+\D", ["12a", "1é"], ["٣a", "11"]),
    (r"\w+", ["a_9"], ["é", "a b"]),
    (r"\s\S", [" a", "\fa"], ["\va", "\u00a0a"]),
    (r".*\bb\b.*", ["a b c", "b"], ["abc", "éab"]),
    (r"a\Bb", ["ab"], ["a b"]),
    ("[]a]", ["]", "a"], ["b"]),
    ("[^]a]", ["b"], ["]", "a"]),
    ("[a-c-]", ["b", "-"], ["d"]),
    ("[[:alpha:][:digit:]_]+", ["aZ9_"], ["é", "-"]),
    ("[[:^alpha:]]", ["1", "é"], ["a"]),
    (r"\pL\p{Lu}\PL", ["éÉ1"], ["1É1", "ééa"]),
    (r"[\d\p{Ll}]+", ["1é"], ["É"]),
    ("(?i)straSSe", ["STRASSE", "ſtrasse"], ["straße"]),
    ("(?i)[k]σ", ["Kς", "KΣ"], ["a"]),
    (r"(?i)\p{Lu}", ["a"], ["1"]),
    ("a(?i)b|c", ["aB", "C"], ["Ab"]),
    ("(a(?i)b)c", ["aBc"], ["aBC"]),
    ("(?P<n>a)(?<m>b)(?:c)", ["abc"], ["ab"]),
    (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
    (r"\x41\x{e9}\101\n", ["AéA\n"], ["AéA"]),
    (r"\.\[\_\-", [".[_-"], ["a[_-"]),
    ("(?U)a+b*?", ["aab"], ["b"]),
    ("(a*)*b(|c)+", ["aab", "bcc"], ["aa"]),
    ("a{0}", [""], ["a"]),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), ROWS, ids=[row[0] for row in ROWS])
def test_texts(pattern: str, matching: list[str], others: list[str]) -> None:
    expression = RegularExpression(pattern)
    assert [text for text in [*matching, *others] if expression.matches(text)] == matching


REFUSED = [
    "(", "a)", "[a", "*a", "a**", "a++", "a{2}{3}", "a{1001}", "a{3,2}", "[z-a]", r"[a-\d]", "\\", r"\1", r"(a)\1", r"\Z", r"\C", r"\e",
    "a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", "(?P=n)", "(?#c)a", "(?>a)", "(?x)a", "[[:foo:]]", r"\p", r"\p{", r"\p{Greek}", r"\x",
    r"\x{110000}", "(?P<>a)", "(" * 150 + ")" * 150, "((((a{100}){100}){100}){100}){100}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_refused(pattern: str) -> None:
    with pytest.raises(OpError):
        RegularExpression(pattern)


def test_as_in_python() -> None:
    """Random expressions of operators that mean the same in both."""
    rng = random.Random(1)
    pieces = [
        "a", "b", ".", "[ab]", "[^a]", "(a|b)", "(?:ab)", "a*", "b+", "a?", "(ab){2}", "(a|b*)", r"\b", "^", "$", "|",
    ]  # fmt: skip
    for _ in range(400):
        pattern = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 6)))
        text = "".join(rng.choice("ab ") for _ in range(rng.randint(0, 6)))
        expected = re.fullmatch(pattern, text) is not None
        assert RegularExpression(pattern).matches(text) == expected, (pattern, text)


def test_longest_matches() -> None:
    text = "ab1abc22"
    assert [text[a:b] for a, b in RegularExpression("a|ab|abc|[0-9]*").find_all(text)] == ["ab", "1", "abc", "22"]


def test_time_is_linear() -> None:
    """Python's own engine takes longer than the age of the universe."""
    start = time.monotonic()
    assert not RegularExpression("(a*)*(a|aa)+b").matches("a" * 2000)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(("pattern", "matching", "others"), ROWS, ids=[row[0] for row in ROWS])
def test_onnx_runtime_agrees(pattern: str, matching: list[str], others: list[str]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    import numpy as np
    from onnx import helper

    texts = [*matching, *others]
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 8, [len(texts)])],
        [helper.make_tensor_value_info("y", 9, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.array(texts, object)})
    assert found.tolist() == [True] * len(matching) + [False] * len(others)
