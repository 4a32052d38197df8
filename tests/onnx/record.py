"""Records the results of ONNX Runtime for the rows: ``python -m tests.onnx.record``."""

from __future__ import annotations

import numpy as np
import onnxruntime

from tests.onnx.rows import ROWS as NUMERIC_ROWS
from tests.onnx.rows import Row
from tests.onnx.string_rows import STRING_ROWS
from tests.support.paths import DATA

ROWS = [*NUMERIC_ROWS, *STRING_ROWS]
GOLDENS = DATA / "onnx_rows.npz"


def answers(row: Row) -> dict[str, np.ndarray]:
    """The results of ONNX Runtime by output name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(row.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, row.feeds), strict=True))


def main() -> None:
    results: dict[str, np.ndarray] = {}
    for row in ROWS:
        try:
            found = answers(row)
        except Exception as error:
            # ONNX Runtime raises classes of its own, which have no common base but Exception.
            print(f"{row.id}: {str(error).splitlines()[0]}")
            continue
        results |= {
            f"{row.id}|{name}": array.astype(str) if array.dtype == object else array
            for name, array in list(found.items())[: row.compared]
        }
    np.savez_compressed(GOLDENS, **results)
    print(f"{len(ROWS)} rows, {GOLDENS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
