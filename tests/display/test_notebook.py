"""A notebook executed for real: what a kernel sends to be displayed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.markup import parse

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parent.parent.parent

CELLS = {
    "import numpy as np, irexec; model = irexec.read_model('samples/digits/classifier.xml')": None,
    "model": "24.4 kB",
    "irexec.validate(irexec.read_model('samples/digits/damaged.xml'))": "9 errors, 1 warning",
    "compiled = irexec.compile_model(model); image = np.ones((1, 1, 8, 8), np.float32); compiled": "digits classifier, compiled",
    "compiled(image)": "histogram of 10 elements",
    "compiled.plan": "conv0/Convolution +2",
    "compiled.profile(image, runs=2)": "84.2 kMACs",
    "from irexec.tools.compare import compare; compare(model, irexec.read_model('samples/digits/classifier.xml'))": "all agree",
    "from irexec.tools.diff import diff; diff(model, irexec.read_model('samples/digits/classifier.xml'))": "no differences",
    "from irexec.tools.inspect.cost import cost; cost(model)": "73.7 k",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """The outputs of each cell."""
    folder = tmp_path_factory.mktemp("jupyter")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / name))
        nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
        ).execute()
    return [cell.outputs for cell in notebook.cells]


@pytest.mark.parametrize("index", range(len(CELLS)), ids=list(CELLS))
def test_cells_display_as_html(outputs: list[list[Any]], index: int) -> None:
    expected = list(CELLS.values())[index]
    if expected is None:
        assert outputs[index] == []
        return
    (output,) = outputs[index]
    assert {"text/plain", "text/html"} <= output["data"].keys()
    assert expected in parse(output["data"]["text/html"]).text
