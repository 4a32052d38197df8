"""``python -m tests.docs.update [PAGE ...]``: rewrite the outputs that the pages show.

An output that still matches, ``...`` included, stays as it is. Other outputs are replaced whole: put ``...`` back by hand
where something varies from run to run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.matching import matches, normal
from tests.docs.pages import pages
from tests.docs.running import FailedExample, run_page


def updated(text: str, folder: Path) -> str:
    """The page with the outputs that its commands give now."""
    lines = text.split("\n")
    results = list(run_page(text, folder))
    for result in reversed(results):
        if result.shown is None and result.actual:
            print(f"line {result.line}: {result.what} printed, with no text block below it:\n{result.actual}")
        elif result.shown is not None and not matches(result.shown, result.actual):
            shown = normal(result.actual)
            lines[result.start : result.stop] = shown.split("\n") if shown else []
    return "\n".join(lines)


def main(names: list[str]) -> None:
    """Rewrite these pages, or all of them."""
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            try:
                changed = updated(text, Path(folder))
            except FailedExample as error:
                print(f"{path}: {error}")
                continue
        if changed != text:
            path.write_text(changed, "utf-8")
            print(f"{path}: updated")


if __name__ == "__main__":
    main(sys.argv[1:])
