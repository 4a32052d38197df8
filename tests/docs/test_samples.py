"""The programs of samples/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.batch import examples
from tests.support.paths import DIGITS, SAMPLES
from tests.support.processes import python


@pytest.mark.slow
def test_the_irs_of_the_digits_are_made_in_a_folder_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    tracked = {path: path.stat().st_mtime_ns for path in DIGITS.iterdir() if path.is_file()}
    done = python(str(DIGITS / "make_ir.py"), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in DIGITS.iterdir() if path.is_file()} == tracked
    made = sorted(path.name for path in (tmp_path / "build/digits").iterdir())
    assert made == sorted(
        f"{name}.{end}" for name in ("classifier", "damaged", "denoiser", "denoiser_onednn") for end in ("bin", "xml")
    )


@pytest.mark.parametrize("given", [[], ["images"], ["images", "classes", "more"]])
def test_the_pipeline_of_ray_wants_two_arguments_before_it_starts_ray(tmp_path: Path, given: list[str]) -> None:
    (tmp_path / "ray.py").write_text("raise AssertionError('Ray was imported')")
    (tmp_path / "classify.py").write_text((SAMPLES / "ray/classify.py").read_text())
    done = python("classify.py", *given, folder=tmp_path)
    assert done.returncode == 2
    assert (
        done.stderr == "usage: python classify.py IMAGES TABLE, two folders or addresses such as s3://bucket/images\n"
    )


# The test of the examples of many items sees results that differ from a loop.


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
