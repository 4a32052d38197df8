"""The sweep: see tests.tokenizers_sweep."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino
from openvino_tokenizers import convert_tokenizer

import irexec
from tests.tokenizers_sweep.corpus import lines
from tests.tokenizers_sweep.families import FAMILIES

TRAINING = 4000
"""Number of lines of another seed that vocabularies are trained on."""
BATCH = 100


def main() -> int:
    """Print a line for each family; 1 if a token or a text differs."""
    parser = argparse.ArgumentParser(description="tokenizer IRs by irexec and by OpenVINO, token for token")
    parser.add_argument("--families", help="names, with commas between them")
    parser.add_argument("--lines", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder in which the IRs are kept")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        kept = arguments.keep or Path(folder)
        for name in arguments.families.split(",") if arguments.families else FAMILIES:
            wrong += sweep(name, lines(arguments.lines, arguments.seed), kept)
    print(f"{wrong} lines differ")
    return 1 if wrong else 0


def sweep(name: str, texts: list[str], folder: Path) -> int:
    """The number of lines of which the tokens, or the text of the tokens, differ."""
    files = [folder / f"{name}.{kind}.xml" for kind in ("tokenizer", "detokenizer")]
    made = convert_tokenizer(FAMILIES[name](lines(TRAINING, seed=1)), with_detokenizer=True)
    for model, file in zip(made, files, strict=True):
        openvino.save_model(model, file)
    findings = [str(finding) for file in files for finding in irexec.validate(str(file))]
    tokenizer, detokenizer = (Pair(file) for file in files)
    differ: list[str] = []
    ids = []
    for batch in _batches(texts):
        differ += tokenizer.differing(batch, batch)
        ids.append(next(iter(tokenizer.answers[0])))
    generator = np.random.default_rng(0)
    # Random tokens too: they make bytes that are not UTF-8, and texts that no tokenizer has made.
    # SentencePiece refuses negative ones.
    lowest = 0 if name.startswith("sentencepiece") else -1
    ids += [generator.integers(lowest, 3100, (BATCH, 20)) for _ in range(len(texts) // BATCH // 4)]
    for number, matrix in enumerate(ids):
        differ += detokenizer.differing(
            matrix.astype(detokenizer.dtype), [f"{number}:{row}" for row in range(len(matrix))]
        )
    tokens = sum(matrix.size for matrix in ids)
    seconds = [pair.seconds for pair in (tokenizer, detokenizer)]
    print(
        f"{name}: {len(texts)} lines, {tokens} tokens with padding, {len(differ)} differ, {len(findings)} findings, "
        f"irexec {seconds[0][1] + seconds[1][1]:.1f} s, OpenVINO {seconds[0][0] + seconds[1][0]:.1f} s",
        flush=True,
    )
    for text in [*findings[:3], *map(repr, differ[:5])]:
        print("   ", text)
    return len(differ) + len(findings)


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


if __name__ == "__main__":
    sys.exit(main())
