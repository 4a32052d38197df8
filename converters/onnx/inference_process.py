"""Process that infers the shapes of ONNX models: one request per line of its input, one answer per line of output."""

from __future__ import annotations

import json
import sys
from typing import Any

import onnx
from onnx import shape_inference


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        print(json.dumps({"refusal": _refusal(json.loads(line))}), flush=True)


def _refusal(request: dict[str, Any]) -> str | None:
    """Write the model with its shapes, or return the reason of a failure."""
    model = onnx.load(request["model"], load_external_data=False)
    strict = request["strict"]
    try:
        found = shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict)
    except Exception as error:
        # The package is C++; its own exception classes have no common base but Exception.
        return str(error) or type(error).__name__
    with open(request["result"], "xb") as file:
        file.write(found.SerializeToString())
    return None
