"""Manifests: whether the items of a job that is resumed are those it was begun with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from irexec.tools.batch.items import Items
from irexec.tools.batch.manifest import Manifest

_BEGUN = Items([("a.npy", "arrays", 3), ("b.png", "image", 1)])


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    """That of a job of four items."""
    opened = Manifest(tmp_path / "out.sqlite")
    opened.begin({}, _BEGUN, 2)
    yield opened
    opened.close()


def test_the_same_items(manifest: Manifest) -> None:
    assert manifest.same_items(_BEGUN) == ""


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([("a.npy", "arrays", 3), ("b.png", "image", 1), ("c.png", "image", 1)], "there were 4 items, and are 5"),
        ([("a.npy", "arrays", 4), ("b.png", "image", 1)], "item 3 was b.png, and is a.npy[3]"),
        ([("a.npy", "arrays", 3)], "item 3 was b.png, and is nothing"),
        ([("b.png", "image", 1), ("a.npy", "arrays", 3)], "item 0 was a.npy[0], and is b.png"),
        ([], "item 0 was a.npy[0], and is nothing"),
    ],
    ids=["one more at the end", "one more in the middle", "one less", "another order", "none"],
)
def test_other_items(items: list, says: str, manifest: Manifest) -> None:
    assert manifest.same_items(Items(items)) == says
