"""irexec join: which outputs become which inputs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, opset
from irexec.cli.main import run


@pytest.fixture
def models(tmp_path: Path) -> tuple[str, str]:
    """2 x and -x of an input x; a - b of inputs a and b."""
    x, a, b = (opset.parameter([3], "f32", name) for name in "xab")
    first = Model([(x * 2).named("double"), (-x).named("negative")], [x])
    Model([(a - b).named("difference")], [a, b]).save(tmp_path / "second.xml")
    first.save(tmp_path / "first.xml")
    return str(tmp_path / "first.xml"), str(tmp_path / "second.xml")


@pytest.mark.parametrize(
    ("maps", "outputs"),
    [
        (["double=a", "negative=b"], {"difference": [3, 6, 9]}),
        (["negative=a", "double=b"], {"difference": [-3, -6, -9]}),
        (["double=a", "double=b"], {"negative": [-1, -2, -3], "difference": [0, 0, 0]}),
    ],
)
def test_outputs_become_inputs(
    models: tuple[str, str], maps: list[str], outputs: dict[str, list[int]], tmp_path: Path
) -> None:
    joined = tmp_path / "joined.xml"
    assert run(["join", *models, *(word for entry in maps for word in ("--map", entry)), "-o", str(joined)]) == 0
    found = irexec.infer(joined, np.float32([1, 2, 3]))
    assert {name: array.tolist() for name, array in found.items()} == outputs


def test_an_input_that_is_not_mapped_stays_one(models: tuple[str, str], tmp_path: Path) -> None:
    joined = irexec.join(*models, {"b": "double"})
    assert [port.name for port in joined.inputs] == ["x", "a"]
    found = irexec.infer(joined, {"x": np.float32([1, 2, 3]), "a": np.float32([9, 9, 9])})
    assert found["difference"].tolist() == [7, 5, 3]


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (["double=a", "negative=a"], "--map gives input 'a' twice: 'double' and 'negative'"),
        (["doubel=a"], "there is no output 'doubel'"),
        (["double=c"], "there is no input 'c'"),
    ],
)
def test_refused(
    models: tuple[str, str], maps: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for entry in maps for word in ("--map", entry)]
    assert run(["join", *models, *words, "-o", str(tmp_path / "joined.xml")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "joined.xml").exists()


def test_a_model_that_is_read_is_not_overwritten(models: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(models[1]).read_bytes()
    assert run(["join", *models, "--map", "double=a", "-o", models[1]]) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert Path(models[1]).read_bytes() == before
