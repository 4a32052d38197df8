"""The binary search, with verdicts by hand."""

from __future__ import annotations

import pytest

from irexec.errors import InputError
from irexec.tools.bisecting import BisectOptions, Boundary, boundary, ends
from irexec.tools.bisecting.releases import parse_range, range_of
from irexec.tools.engines.releases import Release


def _verdict(text: str, asked: list[int] | None = None):
    def verdict(i: int) -> str | None:
        if asked is not None and i not in asked:
            asked.append(i)
        return None if text[i] == "-" else text[i]

    return verdict


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("gb", 0, 1), ("gggbb", 2, 3), ("gbbbb", 0, 1), ("ggggb", 3, 4), ("gg--b", 1, 4), ("g---b", 0, 4),
        ("g-g-b-b", 2, 4),
    ],
)  # fmt: skip
def test_the_first_with_another_verdict(text: str, before: int, after: int) -> None:
    assert boundary(0, len(text) - 1, _verdict(text)) == Boundary(before, after)


def test_a_search_among_64_asks_for_8() -> None:
    asked: list[int] = []
    assert boundary(0, 63, _verdict("g" * 41 + "b" * 23, asked)) == Boundary(40, 41)
    assert len(asked) <= 8


def test_ends_are_those_with_a_verdict() -> None:
    assert ends("-gb-", _verdict("-gb-")) == (1, 2)
    assert ends("--", _verdict("--")) is None


def test_a_range_includes_the_patches_of_its_last_release() -> None:
    wanted = parse_range("openvino", "2023.1..2024.0")
    inside = ("2023.1", "2023.1.0", "2023.3.0", "2024.0.0", "2024.0.2")
    outside = ("2023.0.2", "2024.1.0", "2025.0.0")
    assert all(Release("openvino", version) in wanted for version in inside)
    assert not any(Release("openvino", version) in wanted for version in outside)
    assert Release("onnxruntime", "2023.3.0") not in wanted
    assert Release("openvino", "2024.1.2") in parse_range("openvino", "2024.1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2024.1..2023.0", "ends before it begins"),
        ("a..b", "not a range of releases"),
        ("2021.4..2024.0", "reads no IR of version 11"),
    ],
)
def test_ranges_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_range("openvino", text)


@pytest.mark.parametrize("given", [{}, {"openvino": "2024.0", "onnxruntime": "1.16"}])
def test_one_range_is_needed(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"either of openvino or of onnxruntime, such as --openvino 2023.0\.\."):
        range_of(BisectOptions(**given))
