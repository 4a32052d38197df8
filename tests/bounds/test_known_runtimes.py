"""Values of runtimes that compute rightly in f32 are inside of the bounds, however they compute; others are not."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval
from irexec.testing import Case, case
from tests.bounds.rows import row_bounds

# The results of OpenVINO (CPU plugin in f32, 2026.4 unless named) and ONNX Runtime 1.32 at arguments where their approximations are
# worst, or overflow.
_INSIDE = (
    (case("Sigmoid", 1, np.float32([-17.01365, -9, -15.5]), id="ONNX Runtime"), [1.7881393e-07, 1.2338161e-04, 2.0861626e-07]),
    (case("Erf", 1, np.float32([0.028455092, -0.05186925]), id="OpenVINO"), [0.032099962, -0.058475655]),
    (case("Exp", 1, np.float32([88.4, 88.3]), id="OpenVINO"), [np.inf, 2.2294822e38]),
    (case("Softmax", 8, np.float32([[-8.214947, 8.956656, -5.469995, 4.012068]]), id="OpenVINO 2023.1"),
     [[2.0360233e-07, 0.99292773, 5.388932e-07, 0.0070714755]]),
    (case("Cosh", 1, np.float32([89.0]), id="overflow"), [np.inf]),
    (case("Power", 1, np.float32([1.8e19]), np.float32([2.0]), id="overflow"), [np.inf]),
)  # fmt: skip
_OUTSIDE = (
    (case("Sigmoid", 1, np.float32([-9]), id="relative"), [1.25e-4]),
    (case("Erf", 1, np.float32([0.028455092]), id="rounding"), [0.0321010]),
    (case("Exp", 1, np.float32([88.0]), id="too early"), [np.inf]),
    (case("Softmax", 8, np.float32([[0, -np.inf]]), id="masked"), [[0.5, 1e-7]]),
    (case("SoftPlus", 4, np.float32([-29.100761]), id="negative"), [-1.9073486e-06]),
)


def _bound(row: Case) -> Interval:
    found = row_bounds(row, ARITHMETICS["f32"])[0]
    assert isinstance(found, Interval)
    return found


@pytest.mark.parametrize(("row", "given"), _INSIDE, ids=lambda part: getattr(part, "type", ""))
def test_values_of_runtimes_are_inside(row: Case, given: list[float]) -> None:
    assert not _bound(row).outside(np.float32(given)).any()


@pytest.mark.parametrize(("row", "given"), _OUTSIDE, ids=lambda part: getattr(part, "type", ""))
def test_wrong_values_are_outside(row: Case, given: list[float]) -> None:
    assert _bound(row).outside(np.float32(given)).all()
