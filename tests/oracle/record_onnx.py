"""Record what ONNX Runtime answers to the recurrent rows: python -m tests.oracle.record_onnx"""

from __future__ import annotations

import numpy as np

from tests.onnx.recurrent_rows import RECORDED, ROWS, Row
from tests.support.goldens import write


def answer(row: Row) -> list[np.ndarray]:
    """What ONNX Runtime gives, in the layout of the row, which it does not have itself."""
    import onnxruntime

    model, fed = row.model(layout_0=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([output.name for output in session.get_outputs()], session.run(None, fed), strict=True))
    if not row.layout:
        return list(outputs.values())
    return [array.transpose(2, 0, 1, 3) if name == "y" else array.swapaxes(0, 1) for name, array in outputs.items()]


def main() -> None:
    RECORDED.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f"{name}|{i}": array for name, row in ROWS.items() for i, array in enumerate(answer(row))}
    write(RECORDED, arrays)
    print(f"{len(ROWS)} rows, {len(arrays)} arrays")


if __name__ == "__main__":
    main()
