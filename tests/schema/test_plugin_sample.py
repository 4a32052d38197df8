"""The sample of a plug-in, installed into a fresh environment: every command takes its operation."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec.schema.plugins import VARIABLE
from tests.support.paths import ROOT, SAMPLES

pytest.importorskip("hatchling", reason="hatchling, which builds the sample, is not installed")

MAKE = """
import irexec
from irexec import opset

x = opset.parameter([-1, 2, 6], "f32", "x")
top = opset.extension("my.ops").soft_top_k(x * 2, k=2, name="top")
one = opset.extension("my.ops").soft_top_k(opset.parameter([2, 3], "f32", "w"), k=1, name="one")
irexec.save_model(irexec.Model([top + 1], [x], name="sample"), "m.xml")
irexec.save_model(irexec.Model([one], [one.value.node.inputs[0]], name="other"), "other.xml")
"""
COMMANDS = """
import contextlib, io, json, sys
from irexec.cli.main import run

if __name__ == "__main__":
    for line in sys.stdin:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = run(json.loads(line))
        print(json.dumps([code, text.getvalue()]), flush=True)
"""
# It builds and installs a package.
pytestmark = pytest.mark.slow
Call = Callable[..., str]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the sample was built and installed, without network.

    The packages of this environment, and irexec, are found by a .pth file.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", with_pip=False)
    scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / f"python{Path(sys.executable).suffix if os.name == 'nt' else ''}"
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    paths = [str(ROOT), *site.getsitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    Path(packages, "others.pth").write_text("\n".join(dict.fromkeys(filter(None, paths))))
    shutil.copytree(SAMPLES / "plugin", folder / "plugin", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(folder / "plugin")]
    done = subprocess.run(install, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Path:
    """A folder with a model that has a layer of the plug-in, and an input of it."""
    folder = tmp_path_factory.mktemp("used")
    _run(folder, python, "-c", MAKE)
    np.save(folder / "x.npy", np.arange(36, dtype=np.float32).reshape(3, 2, 6) % 7)
    return folder


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "PYTHONPATH")}
    return inherited | {"COLUMNS": "200"}


def _run(folder: Path, python: Path, *arguments: str, code: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "PYTHONPATH")}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def irexec(folder: Path, python: Path) -> Iterator[Call]:
    """Runs a command of irexec in the fresh environment, in one process, which starts faster than one for each."""
    process = subprocess.Popen(
        [python, "-c", COMMANDS],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    given, answers = process.stdin, process.stdout

    def call(*arguments: str, code: int = 0) -> str:
        given.write(f"{json.dumps(arguments)}\n")
        given.flush()
        found, text = json.loads(answers.readline())
        assert found == code, text
        assert "Traceback" not in text
        return str(text)

    with process:
        yield call
        given.close()


def _expected(x: np.ndarray) -> np.ndarray:
    """SoftTopK of two values of each row of 2x, plus 1, computed element by element."""
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape[:-1]):
        row = [2 * float(value) for value in x[index]]
        second = sorted(row)[-2]
        powers = [np.exp(value - max(row)) if value >= second else 0.0 for value in row]
        result[index] = np.array(powers) / sum(powers)
    return result + 1


def test_it_is_listed_and_explained(irexec: Call) -> None:
    assert "Softmax over the k largest values of the last axis" in irexec("ops", "my.ops.SoftTopK")
    assert irexec("explain", "my.ops:101").startswith("my.ops:101 softmax of one value (warning)")


def test_it_validates(irexec: Call) -> None:
    assert irexec("validate", "m.xml") == "m.xml: no findings\n"
    assert "k is 1, so that each result is 0 or 1" in irexec("validate", "other.xml", code=1)
    log = json.loads(irexec("validate", "other.xml", "--format", "sarif", code=1))
    assert log["runs"][0]["results"][0]["ruleId"] == "my.ops:101"


def test_it_runs(irexec: Call, folder: Path) -> None:
    irexec("infer", "m.xml", "-i", "x.npy", "-o", "y.npz")
    with np.load(folder / "y.npz") as results:
        (name,) = results
        np.testing.assert_allclose(results[name], _expected(np.load(folder / "x.npy")), rtol=1e-6)
    irexec("batch", "m.xml", "x.npy", "--jobs", "2", "-o", "batch.npz")
    with np.load(folder / "batch.npz") as results:
        found = [results[name] for name in results if results[name].dtype == np.float32]
        np.testing.assert_allclose(found[0], _expected(np.load(folder / "x.npy")), rtol=1e-6)
    irexec("profile", "m.xml", "-i", "x.npy", "--runs", "2")
    irexec("bench", "m.xml", "-i", "x.npy", "--runs", "2")


def test_it_is_compared_and_reduced(irexec: Call) -> None:
    assert "3 agree, 0 differ" in irexec("compare", "m.xml", "-i", "x.npy", "--b-runtime", "reference", "--isolate")
    assert "my.ops:101" in irexec("reduce", "other.xml", "--finding", "my.ops:101", "-o", "small.xml")
    assert "my.ops:101" in irexec("validate", "small.xml", code=1)


def test_it_is_drawn(irexec: Call, folder: Path) -> None:
    assert "partition of rows" in irexec("inspect", "m.xml", "--plan", "--shape", "x[3,2,6]")
    for arguments in (["graph", "m.xml", "-o", "m.svg"], ["report", "m.xml", "-o", "m.html"]):
        irexec(*arguments)
        assert "SoftTopK" in (folder / arguments[-1]).read_text("utf-8")


def test_it_is_changed(irexec: Call, folder: Path, python: Path) -> None:
    irexec("script", "m.xml", "-o", "again.py")
    _run(folder, python, "again.py", "again.xml")
    assert irexec("diff", "m.xml", "again.xml") == "no differences\n"
    irexec("edit", "m.xml", "--set", "top.k=3", "-o", "edited.xml")
    assert "k" in irexec("diff", "m.xml", "edited.xml", code=1)
    irexec("extract", "m.xml", "--layers", "top", "-o", "part.xml")
    irexec("join", "m.xml", "edited.xml", "--map", "Add=x", "-o", "joined.xml")
    assert "3 files: no findings" in irexec("validate", "part.xml", "edited.xml", "joined.xml")


def test_it_is_served(folder: Path, python: Path) -> None:
    pytest.importorskip("kserve")
    x = np.load(folder / "x.npy")
    tensor = {"name": "x", "datatype": "FP32", "shape": x.shape, "data": x.ravel().tolist()}
    command = [python, "-m", "irexec", "serve", "m.xml", "--json", "--port", "0", "--no-grpc"]
    with subprocess.Popen(command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"{json.loads(process.stdout.readline())['http']}/v2/models/m/infer"
        request = urllib.request.Request(url, json.dumps({"inputs": [tensor]}).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            (result,) = json.load(answer)["outputs"]
        process.terminate()
    np.testing.assert_allclose(np.reshape(result["data"], result["shape"]), _expected(x), rtol=1e-6)


def test_it_is_converted(irexec: Call, folder: Path, python: Path) -> None:
    onnx: Any = pytest.importorskip("onnx")
    h = onnx.helper
    x, y = (h.make_tensor_value_info(name, 1, [3, 6]) for name in "xy")
    node = h.make_node("SoftTopK", ["x"], ["y"], domain="my.domain", k=2)
    imports = [h.make_opsetid("", 18), h.make_opsetid("my.domain", 1)]
    onnx.save(h.make_model(h.make_graph([node], "g", [x], [y]), opset_imports=imports), folder / "m.onnx")
    irexec("convert", "m.onnx", "-o", "converted.xml")
    assert "2 files: no findings" in irexec("validate", "converted.xml", "m.onnx")
    assert "float32" in irexec("infer", "m.onnx", "-i", "random")


def test_its_own_tests_pass(folder: Path, python: Path) -> None:
    shutil.copytree(SAMPLES / "plugin" / "tests", folder / "tests", dirs_exist_ok=True)
    assert " passed" in _run(folder, python, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
