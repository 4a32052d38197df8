"""Bisections over fake releases."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import InputError, UnsupportedError
from irexec.opset import add, parameter, relu
from irexec.tools.bisecting import BisectOptions, bisect, bisecting
from irexec.tools.bisecting.releases import InstalledReleases
from irexec.tools.engines.releases import Release
from tests.support.fake_releases import fake_releases
from tests.support.tiers import some

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake releases are shell scripts")

X = {"x": np.array([[-1.0, 2.0]], np.float32)}
SIX = ("2023.0.0", "2023.1.0", "2024.0.0", "2024.1.0", "2025.0.0", "2026.0.0")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    x = parameter((1, 2), "f32", "x")
    path = tmp_path / "m.xml"
    irexec.save_model(irexec.Model([relu(add(x, x, name="twice"), name="positive", names=["y"])], [x]), path)
    return path


def _of(tmp_path: Path, *faults: str) -> str:
    return str(fake_releases(tmp_path / "releases", dict(zip(SIX, faults, strict=True))))


def _options(folder: str, **more: object) -> BisectOptions:
    return BisectOptions(openvino="2023.0..2026.0", environments=folder, installed=True, **more)  # type: ignore[arg-type]


def test_the_first_release_that_differs_and_its_layer(tmp_path: Path, model: Path) -> None:
    folder = _of(tmp_path, "", "", "", "relu", "relu", "relu")
    done: list[float] = []
    found = bisect(model, X, _options(folder), advance=done.append)
    assert found.change is not None
    assert (found.change.before.version, found.change.after.version) == ("2024.0.0", "2024.1.0")
    assert "'positive' (Relu" in found.change.after.layer
    assert "2024.1.0 is the first release that differs from irexec, first in 'positive'" in found.summary
    assert [(one.version, one.verdict, one.is_wrong) for one in found.judged] == [
        ("2024.0.0", "agrees", False),
        ("2024.1.0", "bug", True),
    ]
    assert [layer.name for layer in found.judged[1].layers] == ["positive"]
    assert "judge: openvino 2024.1.0 is wrong" in str(found)
    # Both ends, and log2 of those between.
    assert len(found.runs) == 4
    assert not found.agrees
    assert 0 < sum(done) <= 1 + 1e-9


@pytest.mark.slow
def test_a_fault_that_vanishes(tmp_path: Path, model: Path) -> None:
    found = bisect(model, X, _options(_of(tmp_path, "relu", "relu", "", "", "", "")))
    assert found.change is not None
    assert found.change.after.version == "2024.0.0"
    assert "is the first release that agrees with irexec; 2023.1.0 differed first in 'positive'" in found.summary
    assert [one.version for one in found.judged if one.is_wrong] == ["2023.1.0"]


@pytest.mark.slow
def test_the_last_release_is_judged_if_all_differ(tmp_path: Path, model: Path) -> None:
    found = bisect(model, X, _options(_of(tmp_path, *["relu"] * 6)))
    assert found.change is None
    assert [(one.version, one.is_wrong) for one in found.judged] == [("2026.0.0", True)]


@pytest.mark.slow
def test_a_change_within_the_bounds_is_not_a_fault(tmp_path: Path, model: Path) -> None:
    """The results of the releases differ by more than the tolerance, and neither is wrong."""
    x = {"x": np.array([[np.nan, 2.0]], np.float32)}
    found = bisect(model, x, _options(_of(tmp_path, *[""] * 5, "drops"), against="first"))
    assert found.change is not None
    assert not any(one.is_wrong for one in found.judged)
    assert "judge finds no fault in either" in str(found)


@pytest.mark.slow
def test_all_agree(tmp_path: Path, model: Path) -> None:
    found = bisect(model, X, _options(_of(tmp_path, *[""] * 6), all=True))
    assert found.agrees
    assert found.change is None
    assert found.summary == "all 6 releases that were run agree with irexec"


@pytest.mark.parametrize("fault", some(["refuses", "no ReLU", "ends"], ["refuses"]))
@pytest.mark.slow
def test_releases_before_the_model_can_be_run(tmp_path: Path, model: Path, fault: str) -> None:
    found = bisect(model, X, _options(_of(tmp_path, fault, fault, "", "", "relu", "relu")))
    assert found.change is not None
    assert (found.change.before.version, found.change.after.version) == ("2024.1.0", "2025.0.0")
    assert found.runs[0].verdict == "refused"


@pytest.mark.slow
def test_against_the_first_release(tmp_path: Path, model: Path) -> None:
    found = bisect(model, X, _options(_of(tmp_path, "refuses", "relu", "relu", "relu", "", ""), against="first"))
    assert found.against == "openvino 2023.1.0"
    assert found.change is not None
    assert found.change.after.version == "2025.0.0"
    assert found.summary.startswith("openvino 2025.0.0 is the first release that differs from openvino 2023.1.0")


class Skipping(InstalledReleases):
    """Releases of which some cannot be installed."""

    def __init__(self, folder: Path, *skipped: str) -> None:
        super().__init__(folder)
        self.skipped = skipped

    def why_not(self, release: Release) -> str:
        return "needs Python 3.8" if release.version in self.skipped else ""


@pytest.mark.slow
def test_releases_that_cannot_be_installed_are_passed_over(tmp_path: Path, model: Path) -> None:
    folder = _of(tmp_path, "", "", "", "relu", "relu", "relu")
    releases = Skipping(Path(folder), "2023.0.0", "2024.0.0")
    found = bisecting(model, X, (), _options(folder), releases)
    assert found.change is not None
    assert (found.change.before.version, found.change.after.version) == ("2023.1.0", "2024.1.0")
    assert found.change.untested == ("2024.0.0",)
    assert "or one of 2024.0.0, which could not be run" in found.summary
    assert (found.runs[0].version, found.runs[0].why) == ("2023.0.0", "needs Python 3.8")


def test_no_release_in_the_folder(tmp_path: Path, model: Path) -> None:
    with pytest.raises(InputError, match=r"there is no release openvino 2023\.0\.\.2026\.0 in "):
        bisect(model, X, _options(str(tmp_path / "nothing")))


def test_a_release_is_a_runtime_of_compare(tmp_path: Path, model: Path) -> None:
    folder = _of(tmp_path, "", "", "", "relu", "relu", "relu")
    for version, agrees in (("2023.0.0", True), ("2026.0.0", False)):
        options = irexec.CompareOptions(b_runtime=f"openvino=={version}", environments=folder)
        assert irexec.compare(model, inputs=X, options=options).agrees == agrees
    options = irexec.CompareOptions(b_runtime="openvino==2022.1.0", environments=folder)
    with pytest.raises(UnsupportedError, match=r"openvino 2022\.1\.0 is not in "):
        irexec.compare(model, inputs=X, options=options)


def test_shapes_of_inputs_are_those_of_the_comparison(tmp_path: Path) -> None:
    x = parameter((1, "?"), "f32", "x")
    path = tmp_path / "dynamic.xml"
    irexec.save_model(irexec.Model([relu(x, name="positive", names=["y"])], [x]), path)
    found = bisect(path, None, _options(_of(tmp_path, *[""] * 6), shapes={"x": (1, 3)}))
    assert found.inputs == {"x": (1, 3)}
    assert found.agrees
