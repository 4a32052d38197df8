"""The programs of samples/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import DIGITS, ROOT, SAMPLES


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_irs_of_the_digits_are_made_in_a_folder_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    tracked = {path: path.stat().st_mtime_ns for path in DIGITS.iterdir() if path.is_file()}
    done = _run(tmp_path, str(DIGITS / "make_ir.py"))
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
    done = _run(tmp_path, "classify.py", *given)
    assert done.returncode == 2
    assert (
        done.stderr == "usage: python classify.py IMAGES TABLE, two folders or addresses such as s3://bucket/images\n"
    )
