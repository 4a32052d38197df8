"""How large reports are, how long they take to write, and how quick they are in a browser.

    python -m tests.benchmarks.reports [FILE ...] [--layers 500 5000] [--phone] [--folder DIR]

For models of these numbers of layers, or for the files on the command line. Needs Chromium; times of the browser are until the result is drawn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import irexec
from irexec.tools.report import report
from tests.support.browser import Page, browser

_ACTIONS = """
(async () => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const timed = async (act) => { const start = performance.now(); act(); await drawn(); return performance.now() - start; };
  const table = document.querySelector("table.searchable");
  const input = document.querySelector(".tools input");
  const search = (text) => () => { if (input) { input.value = text; input.dispatchEvent(new Event("input")); } };
  return {
    search: await timed(search("conv 7")),
    clear: await timed(search("")),
    sort: await timed(() => table.querySelector("th:nth-child(3) button").click()),
    click: await timed(() => table.querySelector("summary").click()),
  };
})()
"""


def deep(layers: int) -> irexec.Model:
    """A network of about this number of layers, in blocks of convolution, bias, activation and sum."""
    builder, rng = irexec.Builder(f"{layers} layers"), np.random.default_rng(0)
    x = builder.parameter("f32", (1, 8, 16, 16), "image")
    for k in range((layers - 2) // 6):
        weights, bias = (
            rng.normal(0, 0.05, (8, 8, 3, 3)).astype(np.float32),
            rng.normal(0, 1, (1, 8, 1, 1)).astype(np.float32),
        )
        pads = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
        y = builder.emit(
            "Convolution", x, builder.constant(weights, name=f"layers.{k}.weight"), name=f"/layers.{k}/conv", **pads
        )
        y = builder.emit("Add", y, builder.constant(bias, name=f"layers.{k}.bias"), name=f"/layers.{k}/bias")
        x = builder.emit("Add", x, builder.emit("Relu", y, name=f"/layers.{k}/act"), name=f"/layers.{k}/sum")
    builder.result(x, "y")
    return builder.model()


def measure(path: Path, page: Page, width: int, folder: Path) -> dict[str, float]:
    """The figures of one file: bytes, seconds of writing, and milliseconds in the browser."""
    output = folder / f"{path.stem}.html"
    begin = time.perf_counter()
    written = report(str(path), str(output))
    seconds = time.perf_counter() - begin
    page.open(output, width, 900, is_phone=width < 600)
    opened = page.run("performance.getEntriesByType('navigation')[0].loadEventEnd")
    figures = {"layers": written.layers, "MB": written.bytes / 1e6, "written s": seconds, "opened ms": opened}
    return figures | page.run(_ACTIONS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--layers", nargs="*", type=int, default=[500, 5000])
    parser.add_argument("--phone", action="store_true", help="a window of 390 pixels")
    parser.add_argument("--folder", type=Path, help="where the reports stay; by default they are deleted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, browser() as page:
        folder = arguments.folder or Path(made)
        files = list(arguments.files)
        for layers in [] if files else arguments.layers:
            files.append(Path(made) / f"deep{layers}.xml")
            irexec.save_model(deep(layers), files[-1])
        for path in files:
            figures = measure(path, page, 390 if arguments.phone else 1280, folder)
            print(
                path.name,
                json.dumps({name: round(value, 2) for name, value in figures.items()}),
                *page.problems,
                flush=True,
            )


if __name__ == "__main__":
    main()
