"""Tokenizers: models of SentencePiece with changed bytes, patterns of random structure, and charsmaps."""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import irexec
from irexec import opset
from tests.cases.tokenizers import SP
from tests.fuzz import mutate_bytes
from tests.fuzz.case import Case
from tests.fuzz.findings import Observer
from tests.fuzz.shrink import parts, smaller_bytes, smaller_files

QUICK = 1000
_KINDS = ("bpe", "unigram", "char", "word")
_LINES = ["hello world this is a test", "the quick brown fox jumps", "Ünïcode ½ ﬁ 漢字 かな", "a b c 1 2 3"] * 10
_ATOMS = ("a", "b", ".", r"\s", r"\p{L}", r"\d", "[^a]", "[a-c]", r"\b", "^", "$", "", r"\1", "é", "😀", r"\R")
_TEXTS = ("a", "b", "ab", " ", "é", "漢", "😀", "!", "\n", "\ufffd", "a" * 30, "ab" * 100)


@functools.cache
def _trained(kind: str) -> bytes:
    """A small model; without the library, one of a few pieces."""
    if find_spec("sentencepiece") is None:
        return SP.array.tobytes()
    import sentencepiece

    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_LINES), model_writer=out, vocab_size=40, model_type=kind, minloglevel=2,
        hard_vocab_limit=False, normalization_rule_name="identity",
    )  # fmt: skip
    return out.getvalue()


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes of a message of protobuf."""
    size, count = bytearray(), len(data)
    while count > 127:
        size.append(count & 127 | 128)
        count >>= 7
    return bytes([8 * number + 2, *size, count]) + data


def _charsmap(rng: random.Random) -> bytes:
    """A double array whose units have plausible and other offsets, and replacements."""
    units = np.array([rng.choice([0, 1 << 31, rng.getrandbits(32), rng.randrange(1024) << 10 | rng.randrange(512)]) for _ in range(rng.choice([1, 256, 512]))], np.uint32)  # fmt: skip
    size = rng.choice([4 * len(units), 4 * len(units), 4, 0, 1 << 31, 7])
    return size.to_bytes(4, "little") + units.tobytes() + rng.choice([b"a\0bc\0", b"", b"a"])


def _pattern(rng: random.Random, depth: int = 0) -> str:
    choice = rng.random()
    if depth > 3 or choice < 0.35:
        return rng.choice(_ATOMS)
    if choice < 0.6:
        return _pattern(rng, depth + 1) + _pattern(rng, depth + 1)
    if choice < 0.7:
        return f"{_pattern(rng, depth + 1)}|{_pattern(rng, depth + 1)}"
    opening = rng.choice(["(", "(?:", "(?=", "(?!", "(?>", "(?i:", "(?|", "(?<=", "(?<x>"])
    count = rng.choice(["", "*", "+", "?", "*?", "+?", "{2,5}", "{0,1000}", "{3}", "{,2}", "*+"])
    return f"{opening}{_pattern(rng, depth + 1)}){count}"


def generate(rng: random.Random, number: int) -> Case:
    """A model or pattern, and texts or token ids for it."""
    texts = ["".join(rng.choices(_TEXTS, k=rng.randrange(8))) for _ in range(rng.randint(1, 3))]
    ids = [rng.choice([0, 1, 2, 5, 39, 40, 1 << 30, rng.randrange(50)]) for _ in range(rng.randrange(6))]
    arguments: dict[str, Any] = {"texts": texts, "ids": ids}
    choice = rng.random()
    if choice < 0.6:
        model = _trained(rng.choice(_KINDS))
        if rng.random() < 0.3:
            model += _field(3, _field(2, _charsmap(rng)))
        if rng.random() < 0.9:
            model = mutate_bytes.mutate(model, rng)
        does = rng.choice(["sentencepiece_tokenizer", "sentencepiece_tokenizer", "sentencepiece_detokenizer", "sentencepiece_stream_detokenizer"])  # fmt: skip
        return Case("tokenizers", {"model": model}, {**arguments, "does": does, "special": rng.random() < 0.2})
    if choice < 0.7:
        return Case("tokenizers", {"model": _charsmap(rng)}, {**arguments, "does": "chars_map_normalization"})
    does = rng.choice(["regex_split", "regex_normalization", "special_tokens_split"])
    return Case("tokenizers", {"model": _pattern(rng).encode()}, {**arguments, "does": does})


def run(case: Case, observer: Observer) -> None:
    """Build the model, validate, compile and run it."""
    model = observer.step("build", lambda: _model(case))
    if model is None:
        return
    observer.step("validate", lambda: irexec.validate(model), allowed=())
    compiled = observer.step("compile", lambda: irexec.compile_model(model, threads=1))
    if compiled is not None:
        ids, texts = np.array([case.arguments["ids"]], np.int32), np.array(case.arguments["texts"], object)
        feed = ids if "detokenizer" in case.arguments["does"] else texts
        observer.step("run", lambda: compiled.run([feed], timeout=2))


def _bytes(data: bytes) -> Any:
    return opset.constant(np.frombuffer(data, np.uint8).copy())


def _model(case: Case) -> irexec.Model:
    made: Any = opset.extension("extension")
    does, data = case.arguments["does"], _bytes(case.files.get("model", b""))
    if "detokenizer" in does:
        ids = opset.parameter([-1, -1], "i32", "ids")
        return irexec.Model(list(getattr(made, does)(data, ids)), [ids])
    text = opset.parameter([-1], "string", "text")
    strings = made.string_tensor_unpack(text)
    if does == "sentencepiece_tokenizer":
        begins, ends = (opset.constant(np.array(numbers, np.int32)) for numbers in ([0, 1], [1, 3]))
        special = [begins, ends, _bytes(b"ahe"), begins] if case.arguments["special"] else []
        return irexec.Model(list(made.sentencepiece_tokenizer(data, *strings, *special)), [text])
    if does == "chars_map_normalization":
        return irexec.Model(list(made.chars_map_normalization(*strings, data)), [text])
    if does == "regex_normalization":
        return irexec.Model(list(made.regex_normalization(*strings, data, _bytes(b"x$1"))), [text])
    count = len(case.arguments["texts"])
    rows = [opset.constant(np.arange(count, dtype=np.int32) + i) for i in range(2)]
    options = {"behaviour": "isolate", "invert": False} if does == "regex_split" else {}
    return irexec.Model(list(getattr(made, does)(*rows, *strings, data, **options)), [text])


def smaller(case: Case) -> Iterator[Case]:
    """Fewer texts and ids, fewer bytes."""
    for name in ("texts", "ids"):
        for less in parts(case.arguments[name], minimum=1):
            yield case.replaced(**{name: less})
    yield from smaller_files(case, lambda name, data: smaller_bytes(data))
