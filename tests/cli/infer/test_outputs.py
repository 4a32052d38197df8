"""infer: what is written where, and what is compared."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.infer.running import Capture, contents, infer, values

WRONG_OUTPUTS = [
    "model.xml",
    "model.bin",
    "out.json",
    "out.npy",
    "out",
    ".",
    "folder.npz",
    "input.npz",
    "link.npz",
    "reference.npz",
    "device.npz",
]


@pytest.mark.parametrize("name", WRONG_OUTPUTS)
def test_results_are_not_written_over_anything_else(name: str, folder: Path, capsys: Capture) -> None:
    before = contents(folder)
    source, reference = folder / "input.npz", folder / "reference.npz"
    _, err = infer(
        capsys, folder / "model.xml", "-i", source, "--assert", reference, "--atol", 1, "-o", folder / name, code=2
    )
    assert err.startswith("error: -o ") and err.count("\n") == 1
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["model.xml", "-i", "cycle.npz", "--dump-layers", "dump"], 3),
        (["model.xml", "-i", "cycle.npz", "-o", "results.npz"], 3),
        (["cycle.xml", "-i", "random", "-o", "results.npz"], 3),
        (["model.xml", "-i", "random", "-o", "cycle.npz"], 2),
        (["model.xml", "-i", "random", "--dump-layers", "cycle/dump"], 3),
    ],
)
def test_links_in_a_cycle(
    arguments: list[str], code: int, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in ("cycle", "cycle.npz", "cycle.xml"):
        Path(name).symlink_to(name)
    before = sorted(folder.iterdir())
    _, err = infer(capsys, *arguments, code=code)
    assert err.startswith("error: ") and "cycle" in err and err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_weights_of_another_name_are_not_written_over(folder: Path, capsys: Capture) -> None:
    (folder / "model.bin").rename(folder / "weights.npz")
    _, err = infer(
        capsys,
        folder / "model.xml",
        "--bin",
        folder / "weights.npz",
        "-i",
        "random",
        "-o",
        folder / "weights.npz",
        code=2,
    )
    assert "is the model's weights, which would be overwritten" in err


def test_results_may_replace_those_of_an_earlier_run(folder: Path, capsys: Capture) -> None:
    for seed in (1, 2):
        infer(capsys, folder / "model.xml", "-i", "random", "--seed", seed, "-o", folder / "out.npz")
    infer(capsys, folder / "model.xml", "-i", "random", "--seed", 2, "--assert", folder / "out.npz")


def test_tensor_names_come_first_and_what_is_not_common_is_listed(folder: Path, capsys: Capture) -> None:
    """IRs of other converters call their layers otherwise; tensor names stay."""
    path = folder / "model.xml"
    infer(capsys, path, "-i", "random", "--all", "-o", folder / "all.npz")
    text = path.read_text().replace('name="relu1" type', 'name="Relu_17" type')
    assert text.count("Relu_17") == 1
    (folder / "renamed.xml").write_text(text)
    shutil.copy(folder / "model.bin", folder / "renamed.bin")
    saved = dict(np.load(folder / "all.npz"))
    saved["nowhere"] = saved.pop("conv3")
    np.savez(folder / "all.npz", **saved)
    document = values(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert all(entry["agrees"] for entry in document["assert"])
    assert document["only_in_reference"] == ["nowhere"]
    assert document["only_in_results"] == ["conv3"]
    text, _ = infer(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert "only in the reference: nowhere" in text and "only in the results: conv3" in text


def test_nothing_in_common_is_wrong_usage(folder: Path, capsys: Capture) -> None:
    np.savez(folder / "other.npz", a=np.zeros(1), b=np.zeros(1))
    _, err = infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "other.npz", code=2)
    assert "no array of" in err and "(a, b) has the name of a tensor or layer" in err


def test_a_mismatch_is_exit_code_1(folder: Path, capsys: Capture) -> None:
    assert (
        "differs"
        in infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "reference.npz", code=1)[0]
    )
