"""compare: layers in the bodies of loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec import Model
from irexec.tools.compare import CompareOptions, compare
from tests.support.paths import IRS
from tests.tools.compare.models import W2, chain, changed, growing


def body_of(model: Model) -> irexec.ir.graph.Graph:
    return next(body.graph for node in model.nodes for body in node.bodies.values())


def replaced(graph: irexec.ir.graph.Graph, old: str, new: str) -> str:
    """Make the layer of one type one of another; its name."""
    node = next(node for node in graph.nodes if node.type == old)
    node.type = new
    return node.name


@pytest.mark.parametrize(
    ("file", "old", "new", "iteration"),
    [
        ("tensor_iterator", "Tanh", "Sigmoid", (0,)),
        ("tensor_iterator", "Add", "Multiply", (0,)),
        ("loop", "Add", "Maximum", (0,)),
    ],
)
def test_a_layer_in_a_body(file: str, old: str, new: str, iteration: tuple[int, ...]) -> None:
    a, b = irexec.read_model(IRS / f"{file}.xml"), irexec.read_model(IRS / f"{file}.xml")
    name = replaced(body_of(b), old, new)
    found = compare(a, b)
    assert found.first is not None
    assert found.first.row.b.name.endswith(f"/body/{name}")
    assert found.first.row.iteration == iteration
    assert [layer.name for layer in found.independent] == [found.first.row.b.name]
    assert compare(a, a, options=CompareOptions(a_runtime="reference")).agrees


def test_a_later_iteration() -> None:
    """Inputs of which only the third step differs: a layer that clips above 5 is the same before."""

    def model(limit: float) -> Model:
        made = irexec.read_model(IRS / "tensor_iterator.xml")
        node = next(node for node in body_of(made).nodes if node.type == "Tanh")
        node.type, node.attributes = "Clamp", {"min": "-100", "max": str(limit)}
        return made

    x = np.ones((2, 4, 3), np.float32)
    inputs = {"x": x, "start": np.zeros((2, 3), np.float32)}
    found = compare(model(2.5), model(100), inputs)
    assert found.first is not None
    assert found.first.row.iteration == (2,)
    assert found.first.inputs_agree is True


def test_tensors_whose_shape_changes_from_iteration_to_iteration() -> None:
    """A row of ones is 2, 4, 8 and 16 after the iterations: above 10 in the last one."""
    x = {"x": np.ones((1, 3), np.float32)}
    whole = compare(growing(), growing(), x)
    assert (whole.agrees, whole.uncompared) == (True, ())
    assert [row.b.name for row in whole.rows if row.b.type != "Constant"] == [
        "loop/body/longer",
        "loop/body/doubled",
        "loop/body/clipped",
        "loop",
    ]
    found = compare(growing(), growing(limit=10), x)
    assert found.uncompared == ()
    assert found.first is not None
    assert (found.first.row.b.name, found.first.row.iteration, found.first.row.shape) == (
        "loop/body/clipped",
        (3,),
        (5, 3),
    )
    assert found.first.inputs_agree is True


def test_a_loop_whose_tensors_grow_that_runs_longer() -> None:
    found = compare(growing(trips=3), growing(trips=4), {"x": np.ones((1, 3), np.float32)})
    row = next(row for row in found.rows if row.b.name == "loop/body/longer")
    assert row.agreement.message == "B computes it 4 times, A 3 times"


def test_tensors_that_grow_in_openvino() -> None:
    pytest.importorskip("openvino")
    found = compare(growing(), inputs={"x": np.ones((1, 3), np.float32)}, options=CompareOptions(b_runtime="openvino"))
    assert (found.agrees, found.uncompared, len(found.rows)) == (True, (), 5)


def test_a_branch_that_is_not_taken_is_listed() -> None:
    a, b = irexec.read_model(IRS / "branch.xml"), irexec.read_model(IRS / "branch.xml")
    found = compare(a, b)
    assert found.agrees
    assert {one.reason for one in found.uncompared} == {"its body does not run with these inputs"}


def test_batches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(chain(), chain(w2=changed(W2)))
    parts: list[float] = []
    monkeypatch.setattr("irexec.tools.compare.open_sides._BUDGET", 1)
    apart = compare(chain(), chain(w2=changed(W2)), advance=parts.append)
    assert apart.rows == whole.rows
    assert len(parts) > 2 * len(whole.rows)
    assert sum(parts) <= 1 + 1e-9
