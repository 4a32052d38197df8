"""The test of the examples of many items sees results that differ from a loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.batch import examples


def _written(path: Path, shift: int, count: int = 12) -> Path:
    digits = {f"digit_{i}.png": i for i in range(10)} | {"noisy_3.png": 3, "noisy_8.png": 8}
    rows = [
        {"item": f"samples/digits/{name}", "probabilities.class": [digit + shift]} for name, digit in digits.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
    return path


@pytest.mark.parametrize(("shift", "count", "problems"), [(0, 12, 0), (1, 12, 12), (0, 11, 1)])
def test_results_are_compared_with_a_loop(shift: int, count: int, problems: int, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    assert len(examples._compared(_written(tmp_path / "classes.jsonl", shift, count), 12)) == problems
