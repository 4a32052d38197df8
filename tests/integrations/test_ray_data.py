"""Ray: actors and predictors by themselves, which need no cluster, and what is said without Ray."""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irexec import InputError, UnsupportedError
from irexec.cli.main import run
from irexec.integrations import ray_data
from irexec.tools.batch.items import Item
from irexec.tools.batch.parts import BatchJob, PartTask
from tests.support.paths import DIGITS
from tests.tools.batch import models


def test_an_actor_does_parts_and_gives_errors_back(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    job = BatchJob(model=models.twice_plus_one(tmp_path, [-1, 3]), form="npy")
    task = PartTask(0, tmp_path / "out.npy", (Item("x.npy", "arrays", 0), Item("x.npy", "arrays", 1)))
    before = os.getcwd()
    try:
        actor = ray_data._Actor(job, str(tmp_path))
        wrong = replace(task, file=tmp_path / "missing" / "out.npy")
        batch = {"task": np.array([pickle.dumps((each, "")) for each in (task, wrong)], object)}
        done, failed = map(pickle.loads, actor(batch)["result"])
    finally:
        os.chdir(before)
    assert done.rows == (0, 1)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), [[1, 3, 5], [7, 9, 11]])
    assert "cannot be written" in str(failed)


def test_a_node_that_does_not_see_what_the_command_does(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 3), np.float32))
    job = BatchJob(model=models.twice_plus_one(tmp_path, [-1, 3]), form="npy")
    task = PartTask(0, tmp_path / "out.npy", (Item("x.npy", "arrays", 0),))

    def message(job: BatchJob, folder: str, seen: str = "") -> str:
        before = os.getcwd()
        try:
            (result,) = ray_data._Actor(job, folder)({"task": np.array([pickle.dumps((task, seen))], object)})["result"]
        finally:
            os.chdir(before)
        return str(pickle.loads(result))

    for missing in (
        message(job, str(tmp_path / "none")),
        message(replace(job, model=str(tmp_path / "none")), str(tmp_path)),
        message(job, str(tmp_path), str(tmp_path / "none")),
    ):
        assert re.search(
            r"^the node \S+ of the cluster has no \S+none: model, sources and output need the same paths on all$",
            missing,
        )
    assert "rows=(0,)" in message(job, str(tmp_path), str(tmp_path / "x.npy"))


@pytest.mark.parametrize("address", ["cluster", "127.0.0.1:99999", "127.0.0.1", "http://host:1", "a b:1"])
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(InputError, match="is not auto or HOST:PORT"):
        ray_data._try(address)


def test_the_client_of_ray_is_refused() -> None:
    with pytest.raises(InputError, match="--address ray://host:10001: Ray Data does not run through Ray's client"):
        ray_data._try("ray://host:10001")


def test_an_address_where_nothing_answers() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="refused"):
            ray_data._try(f"127.0.0.1:{bound.getsockname()[1]}")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_command_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnsupportedError, match="pip install"):
        ray_data.load_ray()
    assert (
        run(["batch", str(DIGITS / "classifier.xml"), str(DIGITS), "-o", str(tmp_path / "x.npz"), "--engine", "ray"])
        == 4
    )
    assert capsys.readouterr().err == "error: this needs ray, which is not installed: pip install 'irexec[ray]'\n"
    assert not list(tmp_path.iterdir())


def test_an_address_is_for_ray(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", "m.xml", "x.npy", "-o", "x.npz", "--address", "auto"]) == 2
    assert "--address is for --engine ray, which is not given" in capsys.readouterr().err
