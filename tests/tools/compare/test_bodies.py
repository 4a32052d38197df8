"""compare: layers in the bodies of loops and branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model
from irexec.tools.compare import CompareOptions, Comparison, compare
from tests.support.paths import IRS
from tests.tools.compare.models import W2, branching, chain, changed, growing, nested, nested_deeper


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


RUNTIMES = ["reference", "openvino"]
ONES = {"x": np.ones((2, 3), np.float32)}


def _options(runtime: str) -> CompareOptions:
    if runtime == "openvino":
        pytest.importorskip("openvino")
    return CompareOptions(b_runtime=runtime)


def _first(found: Comparison) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    assert found.first is not None
    assert found.first.inputs_agree is True
    row = found.first.row
    return row.b.name, row.iteration, row.shape


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("first", "grows"), [(1, False), (0, False), (1, True)])
@pytest.mark.sampled(2)
def test_an_inner_loop_whose_number_of_iterations_changes(runtime: str, first: int, grows: bool) -> None:
    model = nested(first=first, grows=grows)
    found = compare(model, model, ONES, options=_options(runtime))
    assert (found.agrees, found.uncompared) == (True, ())
    row = next(row for row in found.rows if row.b.name == "outer/body/inner/body/clipped")
    assert row.iteration == (1 - first, 0)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.sampled(2)
def test_a_layer_of_an_inner_loop(runtime: str) -> None:
    """A row of ones is 4, 10 and 20, 42 and 84 and 168 in the iterations: above 60 in (2, 1)."""
    options = _options(runtime)
    clipped = "outer/body/inner/body/clipped"
    assert _first(compare(nested(), nested(limit=60), ONES, options=options)) == (clipped, (2, 1), (2, 3))
    growing_too = compare(nested(grows=True), nested(limit=60, grows=True), ONES, options=options)
    assert _first(growing_too) == (clipped, (2, 1), (7, 3))


def test_an_inner_loop_from_files(tmp_path: Path) -> None:
    """Ports have ids in a file."""
    nested().save(tmp_path / "a.xml")
    nested(limit=60).save(tmp_path / "b.xml")
    found = compare(irexec.read_model(tmp_path / "a.xml"), irexec.read_model(tmp_path / "b.xml"), ONES)
    assert _first(found) == ("outer/body/inner/body/clipped", (2, 1), (2, 3))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_loop_in_a_loop_in_a_loop(runtime: str) -> None:
    """The innermost loop runs 0 times in every first iteration; OpenVINO keeps the slices of its last run."""
    options = _options(runtime)
    found = compare(nested_deeper(), nested_deeper(), ONES, options=options)
    assert (found.agrees, found.uncompared) == (True, ())
    changed_limit = compare(nested_deeper(), nested_deeper(limit=8), ONES, options=options)
    assert _first(changed_limit) == ("outer/body/inner/body/innermost/body/clipped", (2, 1, 0), (2, 3))


def test_an_inner_loop_that_runs_more_often() -> None:
    found = compare(nested(first=1), nested(first=2), ONES)
    row = next(row for row in found.rows if row.b.name == "outer/body/inner/body/clipped")
    assert (row.iteration, row.agreement.message) == ((0, 1), "B computes it 9 times, A 6 times")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_branches_in_a_loop(runtime: str) -> None:
    options = _options(runtime)
    inside = "outer/body/choice/then_body/"
    found = compare(branching(1), branching(1), ONES, options=options)
    assert (found.agrees, found.uncompared) == (True, ())
    assert next(row.iteration for row in found.rows if row.b.name == f"{inside}clipped") == (1,)
    assert _first(compare(branching(1), branching(1, limit=2), ONES, options=options))[:2] == (f"{inside}clipped", (1,))
    never = compare(branching(5), branching(5), ONES, options=options)
    assert never.agrees
    assert {one.reason for one in never.uncompared} == {"its body does not run with these inputs"}
    assert not [row for row in never.rows if row.b.name.startswith(inside)]


def test_a_branch_that_is_not_taken_is_listed() -> None:
    a, b = irexec.read_model(IRS / "branch.xml"), irexec.read_model(IRS / "branch.xml")
    found = compare(a, b)
    assert found.agrees
    assert {one.reason for one in found.uncompared} == {"its body does not run with these inputs"}


def test_batches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(chain(), chain(w2=changed(W2)))
    parts: list[float] = []
    monkeypatch.setattr("irexec.tools.compare.evidence._BUDGET", 1)
    apart = compare(chain(), chain(w2=changed(W2)), advance=parts.append)
    assert apart.rows == whole.rows
    assert len(parts) > 2 * len(whole.rows)
    assert sum(parts) <= 1 + 1e-9
