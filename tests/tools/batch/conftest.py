"""The model and the items of jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tools.batch import models
from tests.tools.batch.models import ITEMS


@pytest.fixture
def model(tmp_path: Path) -> str:
    return models.twice_plus_one(tmp_path, [-1, 3])


@pytest.fixture
def source(tmp_path: Path) -> str:
    np.save(tmp_path / "items.npy", ITEMS)
    return str(tmp_path / "items.npy")
