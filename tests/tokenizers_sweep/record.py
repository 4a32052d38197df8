"""Record small tokenizers with the answers of OpenVINO: ``python -m tests.tokenizers_sweep.record``."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import openvino
from openvino_tokenizers import convert_tokenizer

from tests.support.paths import ROOT
from tests.tokenizers_sweep import families
from tests.tokenizers_sweep.corpus import lines

FILE = ROOT / "tests" / "data" / "tokenizers.zip"
RECORDED = ("bert_uncased", "roberta", "llama3", "clip", "llama2", "t5", "albert", "word_level")
SIZE, COUNT = 1500, 150
"""Number of tokens of a vocabulary, and of lines, of which the short ones are recorded."""


def main() -> None:
    """Write the IRs, the lines, and for each tokenizer its results and the texts of the token ids."""
    families.SIZE = SIZE
    # Lines of one batch are padded to the longest.
    texts = [line for line in lines(COUNT) if len(line) < 80]
    answers: dict[str, object] = {"lines": texts}
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file,
    ):
        for name in RECORDED:
            made = convert_tokenizer(families.FAMILIES[name](lines(600, seed=1)), with_detokenizer=True)
            paths = [Path(folder, f"{name}.{kind}.xml") for kind in ("tokenizer", "detokenizer")]
            for model, path in zip(made, paths, strict=True):
                openvino.save_model(model, path)
                for one in (path, path.with_suffix(".bin")):
                    file.write(one, one.name)
            tokenizer, detokenizer = (openvino.Core().compile_model(path, "CPU") for path in paths)
            results = list(tokenizer(texts).values())
            answers[name] = {
                "tokens": [result.tolist() for result in results],
                "texts": next(iter(detokenizer(results[0]).values())).tolist(),
            }
        file.writestr("answers.json", json.dumps(answers))
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
