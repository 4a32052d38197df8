"""A browser for the tests of a module; they are skipped where Chromium is not installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Page, browser, chromium


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    with browser() as found:
        yield found
