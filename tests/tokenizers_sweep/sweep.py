"""Tokenizer IRs by irexec and by OpenVINO, token for token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from openvino_tokenizers import convert_tokenizer

import irexec
from tests.sweep.kind import Case, Kind, Outcome, temporary
from tests.tokenizers_sweep.corpus import lines
from tests.tokenizers_sweep.families import FAMILIES

TRAINING = 4000
"""Number of lines of another seed that vocabularies are trained on."""
BATCH = 100


class Sweep(Kind):
    """The configurations of tokenizers."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--lines", type=int, default=10000)
        add("--keep", type=Path, help="folder in which the IRs are kept")

    def names(self) -> list[str]:
        return list(FAMILIES)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The lines of a number."""
        with temporary() as folder:
            files = written(name, self.options.keep or folder)
            yield lambda number: compared(name, files, lines(self.options.lines, number))


def written(name: str, folder: Path) -> list[Path]:
    """The IRs of the tokenizer and the detokenizer of a family."""
    files = [folder / f"{name}.{kind}.xml" for kind in ("tokenizer", "detokenizer")]
    made = convert_tokenizer(FAMILIES[name](lines(TRAINING, seed=1)), with_detokenizer=True)
    for model, file in zip(made, files, strict=True):
        openvino.save_model(model, file)
    return files


def compared(name: str, files: list[Path], texts: list[str]) -> Iterator[Outcome]:
    """The findings in the IRs, the lines of which the tokens, or the text of the tokens, differ, and the time."""
    yield from (
        Outcome("finding", str(finding), fails=True) for file in files for finding in irexec.validate(str(file))
    )
    tokenizer, detokenizer = (Pair(file) for file in files)
    ids = []
    for batch in _batches(texts):
        yield from _differing(tokenizer, batch, batch)
        ids.append(next(iter(tokenizer.answers[0])))
    generator = np.random.default_rng(0)
    # Random tokens too: they make bytes that are not UTF-8, and texts that no tokenizer has made.
    # SentencePiece refuses negative ones.
    lowest = 0 if name.startswith("sentencepiece") else -1
    ids += [generator.integers(lowest, 3100, (BATCH, 20)) for _ in range(len(texts) // BATCH // 4)]
    for number, matrix in enumerate(ids):
        rows = [f"{number}:{row}" for row in range(len(matrix))]
        yield from _differing(detokenizer, matrix.astype(detokenizer.dtype), rows)
    seconds = [sum(pair.seconds[i] for pair in (tokenizer, detokenizer)) for i in (1, 0)]
    tokens = sum(matrix.size for matrix in ids)
    yield Outcome("time", f"{tokens} tokens with padding, irexec {seconds[0]:.1f} s, OpenVINO {seconds[1]:.1f} s")


def _differing(pair: Pair, batch: list[str] | np.ndarray, names: list[str]) -> Iterator[Outcome]:
    differ = pair.differing(batch, names)
    yield from (Outcome("differs", repr(name), fails=True) for name in differ)
    yield from (Outcome("agrees") for _ in range(len(names) - len(differ)))


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Batches of many lines, then of the first lines one by one."""
    for at in range(0, len(texts), BATCH):
        yield texts[at : at + BATCH]
    for text in texts[:BATCH]:
        yield [text]


class Pair:
    """One IR in both implementations.

    Attributes:
        answers: the last results, OpenVINO's first.
        seconds: the time that each took.
        dtype: the type of the first input.
    """

    def __init__(self, file: Path) -> None:
        # With openvino_tokenizers imported every Core has the extension.
        self._oracle = openvino.Core().compile_model(file, "CPU")
        self._own = irexec.compile_model(str(file))
        self.dtype = self._own.inputs[0].element.carrier
        self.answers: list[list[np.ndarray]] = []
        self.seconds = [0.0, 0.0]

    def differing(self, batch: list[str] | np.ndarray, names: list[str]) -> list[str]:
        """The names of the rows whose results differ; all of them if a shape does."""
        start = time.monotonic()
        theirs = list(self._oracle(batch).values())
        middle = time.monotonic()
        ours = list(self._own([np.array(batch, object) if isinstance(batch, list) else batch]).values())
        end = time.monotonic()
        self.answers = [theirs, ours]
        self.seconds = [self.seconds[0] + middle - start, self.seconds[1] + end - middle]
        if [x.shape for x in theirs] != [x.shape for x in ours]:
            return names
        same = [[_plain(a) == _plain(b) for a, b in zip(*pair, strict=True)] for pair in zip(theirs, ours, strict=True)]
        return [name for name, *row in zip(names, *same, strict=True) if not all(row)]


def _plain(value: np.ndarray | str) -> list[int] | str:
    """A row of results; of a text without the NULs at its end, which OpenVINO's Python API drops."""
    return value.rstrip("\0") if isinstance(value, str) else value.tolist()
