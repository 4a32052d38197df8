"""Options of the test run."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from irexec.backend.recording import CHECK_PASSES
from irexec.native.library import description
from tests.support.tiers import mark_slow

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts a background command so, and the commands that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The laws are asserted there, not in the tests: what differs is to be shown all the same.
pytest.register_assert_rewrite("irexec.testing.laws", "tests.onnx.control")

settings.register_profile(
    "irexec", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("irexec")
# For tests that are to fail: a failing example is not made smaller, which takes minutes.
settings.register_profile("unshrunk", settings.get_profile("irexec"), phases=[Phase.explicit, Phase.generate])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oracle", action="store_true", help="ask OpenVINO itself instead of the recorded answers")
    parser.addoption(
        "--every-form",
        action="store_true",
        help="laws 4 and 6 try every combination of facts, forms and options for each row, and all rows are run with indices of 32 bits",
    )


def pytest_configure() -> None:
    """Collecting makes millions of objects that stay: looking for garbage among them is a fifth of its time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is collected is never garbage: a test that collects garbage, or happens to, does not go through it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` deselects what is slow."""
    mark_slow(items)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m smoke`` files without smoke tests are not imported: collecting all of them takes longer than the smoke tests."""
    if config.option.markexpr != "smoke" or collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    return True if "pytest.mark.smoke" not in collection_path.read_text("utf-8") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the kernels: without the library, the tests of C kernels are skipped."""
    terminalreporter.write_line(f"irexec computed with {description()}")


@pytest.fixture(scope="session")
def live(request: pytest.FixtureRequest) -> bool:
    """Whether expected values come from OpenVINO itself."""
    return bool(request.config.getoption("--oracle"))


@pytest.fixture(autouse=True, scope="session")
def _passes_are_checked() -> Iterator[None]:
    """Every pass of every model that a test compiles leaves a graph without problems."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECK_PASSES, "1")
        yield


@pytest.fixture(autouse=True)
def _unlimited_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as their text, as in a file: pytest-xdist sets COLUMNS."""
    monkeypatch.delenv("COLUMNS", raising=False)
