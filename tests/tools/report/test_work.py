"""What reports, drawings and listings of large models do only once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import irexec
from irexec.analysis.shape_inference import ShapeInference
from irexec.cli.main import run
from irexec.ir.graph import Node
from tests.benchmarks.reports import deep


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["report", "-o", "{folder}/r.html"], id="report"),
        pytest.param(
            ["report", "-o", "{folder}/r.html", "--graph", "off", "--weights", "off"], id="report without a drawing"
        ),
        pytest.param(["graph", "-o", "{folder}/g.dot", "--findings"], id="graph --findings"),
        pytest.param(["graph", "-o", "{folder}/g.mmd", "--cluster"], id="graph --cluster"),
        pytest.param(["inspect", "--json", "--layers", "--cost", "--precision", "--tree"], id="inspect"),
    ],
)
def test_shapes_are_inferred_once(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for Parameters, whose facts are those of the inputs."""
    irexec.save_model(deep(60), tmp_path / "m.xml")
    counts: Counter[str] = Counter()
    infer = ShapeInference.node

    def counted(self: ShapeInference, node: Node) -> None:
        counts[node.name if node.type not in ("Parameter", "Constant") else ""] += 1
        infer(self, node)

    monkeypatch.setattr(ShapeInference, "node", counted)
    command, *rest = [text.format(folder=tmp_path) for text in options]
    assert run([command, str(tmp_path / "m.xml"), *rest]) == 0
    del counts[""]
    assert len(counts) > 30
    assert set(counts.values()) == {1}
