"""Keep networks for the ordinary tests: ``python -m tests.networks.record DIR [names]``.

Each becomes tests/data/networks/NAME.zip: the .xml and .bin as OpenVINO wrote them, the random the
inputs, and OpenVINO's outputs of every run. Needs openvino.
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np

import irexec
from tests.networks.check import oracle
from tests.support.networks import feeds
from tests.support.paths import NETWORKS

MAX_SIZE = 200_000
# Networks that show the same as another one: attention written out becomes one operation on the way.
LEFT_OUT = (
    "gpt2_eager", "llama_eager", "vit_eager", "bert_eager", "t5_half", "llama_int8_asym", "llama_int4_sym",
    "mobilenet_v2", "efficientnet", "clip", "detr", "bigru_tagger", "lstm_tagger",
    "albert", "beit", "bloom", "dpt", "fnet", "gpt_neox", "mistral", "mobilevit", "mpnet", "phi3", "poolformer", "regnet", "roformer",
    "upernet", "wav2vec2", "xlm_roberta", "xlnet", "unet_exported", "swin_exported", "convnext_exported", "bert_exported", "gru_exported",
)  # fmt: skip


def record(path: Path) -> Path:
    """Write the archive of one network."""
    run = oracle(path, 1)
    answers = [run(inputs) for inputs in feeds(path, irexec.read_model(path).inputs)]
    arrays = io.BytesIO()
    np.savez(arrays, **{f"{i}.{j}": array for i, outputs in enumerate(answers) for j, array in enumerate(outputs)})
    NETWORKS.mkdir(exist_ok=True)
    kept = NETWORKS / f"{path.stem}.zip"
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for suffix, data in [(s, path.with_suffix(s).read_bytes()) for s in (".xml", ".bin", ".json")] + [
            (".npz", arrays.getvalue())
        ]:
            archive.writestr(zipfile.ZipInfo(f"{path.stem}{suffix}"), data, zipfile.ZIP_DEFLATED)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="networks; all but LEFT_OUT unless given")
    arguments = parser.parse_args()
    names = arguments.names or [path.stem for path in arguments.folder.glob("*.xml") if path.stem not in LEFT_OUT]
    for path in sorted(arguments.folder.glob("*.xml")):
        if path.stem in names:
            kept = record(path)
            size = kept.stat().st_size
            print(f"{path.stem}: {size / 1000:.0f} kB{'' if size < MAX_SIZE else ', too large: not kept'}")
            if size >= MAX_SIZE:
                kept.unlink()


if __name__ == "__main__":
    main()
