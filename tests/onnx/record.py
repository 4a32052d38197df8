"""Records the results of ONNX Runtime, or of OpenVINO for operators of its own domain, for rows that have none yet.

``python -m tests.onnx.record`` records new rows, ``python -m tests.onnx.record --all`` all of them again.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnxruntime

from tests.onnx.rows import ROWS as NUMERIC_ROWS
from tests.onnx.rows import STRING_ROWS, Row
from tests.onnx.runtime_rows import OPENVINO, RUNTIME_ROWS
from tests.support.paths import DATA

ROWS = [*NUMERIC_ROWS, *STRING_ROWS, *RUNTIME_ROWS]
GOLDENS = DATA / "onnx_rows.npz"


def answers(row: Row) -> dict[str, np.ndarray]:
    """The results of the runtime by output name."""
    if row.domain == OPENVINO:
        return _answers_of_openvino(row)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Several threads quantize the states of parts of a batch separately.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(row.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, row.feeds), strict=True))


def _answers_of_openvino(row: Row) -> dict[str, np.ndarray]:
    import openvino

    model = openvino.Core().read_model(row.model().SerializeToString())
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(row.feeds)
    return {f"y{i}": np.array(results[output]) for i, output in enumerate(compiled.outputs)}


def main() -> None:
    known: dict[str, np.ndarray] = {} if "--all" in sys.argv else dict(np.load(GOLDENS))
    results: dict[str, Any] = {
        key: value for key, value in known.items() if key.rpartition("|")[0] in {row.id for row in ROWS}
    }
    recorded = {key.rpartition("|")[0] for key in results}
    for row in ROWS:
        if row.id in recorded:
            continue
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
