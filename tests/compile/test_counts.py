"""How many steps and copies of tensors the recorded networks take: numbers that may only get smaller."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import pytest

import irexec
from irexec.compile.steps import Plan
from tests.support.networks import feeds

KEPT = Path(__file__).parents[1] / "data" / "networks"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plan]:
    """The plan of each network for the shapes of its first run."""
    folder, found = tmp_path_factory.mktemp("networks"), {}
    for path in sorted(KEPT.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        compiled = irexec.compile_model(irexec.read_model(folder / f"{path.stem}.xml"), threads=1)
        inputs = feeds(folder / f"{path.stem}.xml", compiled.inputs)[0]
        found[path.stem] = compiled._plan(tuple(array.shape for array in inputs), None)
    return found


def test_steps(plans: dict[str, Plan]) -> None:
    """Without any pass there are 5,152; half of them is the aim."""
    assert sum(len(plan.steps) for plan in plans.values()) <= 2010


def test_copies_of_tensors_in_another_order_or_shape(plans: dict[str, Plan]) -> None:
    """A Transpose of known shape is a view. A Reshape that is a step copies what a Transpose before it left in another order:
    heads of attention, windows of images. The others are of shapes that are known only when they run."""
    types = Counter(step.type for plan in plans.values() for step in plan.steps if step.check is None)
    assert types["Transpose"] == 0
    assert sum(types[name] for name in ("Reshape", "Squeeze", "Unsqueeze")) <= 25
    everything = Counter(step.type for plan in plans.values() for step in plan.steps)
    assert everything["Transpose"] <= 2
