"""A folder in which the command runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.infer.running import CLASSIFIER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, an input, a reference, and what is in the way of an output."""
    for suffix in (".xml", ".bin"):
        shutil.copy(CLASSIFIER.with_suffix(suffix), tmp_path / f"model{suffix}")
    np.savez(tmp_path / "input.npz", image=np.zeros((1, 1, 8, 8), np.float32))
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "model.bin")
    (tmp_path / "device.npz").symlink_to("/dev/null")
    np.savez(tmp_path / "reference.npz", probabilities=np.full((1, 10), 0.1, np.float32))
    return tmp_path
