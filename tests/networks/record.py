"""Keep networks for the ordinary tests: ``python -m tests.networks.record DIR [names]``.

Each becomes tests/data/networks/NAME.zip: the .xml and .bin as OpenVINO wrote them, the draws of the
inputs, and OpenVINO's outputs of every run. Needs openvino.
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np

import irexec
from tests.networks.check import feeds, oracle

KEPT = Path(__file__).parents[1] / "data" / "networks"
MOST = 300_000


def record(path: Path) -> Path:
    """Write the archive of one network."""
    run = oracle(path, 1)
    answers = [run(inputs) for inputs in feeds(path, irexec.read_model(path).inputs)]
    arrays = io.BytesIO()
    np.savez(arrays, **{f"{i}.{j}": array for i, outputs in enumerate(answers) for j, array in enumerate(outputs)})
    KEPT.mkdir(exist_ok=True)
    kept = KEPT / f"{path.stem}.zip"
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for suffix, data in [(s, path.with_suffix(s).read_bytes()) for s in (".xml", ".bin", ".json")] + [(".npz", arrays.getvalue())]:
            archive.writestr(zipfile.ZipInfo(f"{path.stem}{suffix}"), data, zipfile.ZIP_DEFLATED)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="networks; all unless given")
    arguments = parser.parse_args()
    for path in sorted(arguments.folder.glob("*.xml")):
        if not arguments.names or path.stem in arguments.names:
            kept = record(path)
            size = kept.stat().st_size
            print(f"{path.stem}: {size / 1000:.0f} kB{'' if size < MOST else ', too large: not kept'}")
            if size >= MOST:
                kept.unlink()


if __name__ == "__main__":
    main()
