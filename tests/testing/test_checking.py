"""``irexec.testing``: rows of a plug-in pass where the plug-in is right, and each fault of it breaks a law."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import testing
from irexec.errors import InputError
from irexec.plugins import Candidate, Fact, FloatTensor, Kernel, StringTensor, operation, translates
from irexec.schema.extension import TRANSLATORS
from irexec.schema.registry import discard
from irexec.testing.checking import PLUGIN_LAWS

_DOMAINS = map("checked{}.ops".format, itertools.count())


def _kernel(data: np.ndarray, k: int) -> np.ndarray:
    kth = np.sort(data, axis=-1)[..., -k, None]
    return np.where(data >= kth, data, 0).astype(data.dtype)


def _rule(data: Fact, k: int) -> Fact:
    if data.shape is not None and data.shape and isinstance(data.shape[-1], int) and k > data.shape[-1]:
        raise irexec.OpError(f"k is {k}, and the last axis has {data.shape[-1]} elements")
    return Fact(data.element, data.shape)


class Kept(Kernel):
    """The largest values."""

    def __init__(self, k: int, offsets: Iterator[float]) -> None:
        super().__init__("partition")
        self._k, self._offsets = k, offsets

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Any) -> None:
        kth = np.partition(inputs[0], -self._k, axis=-1)[..., -self._k, None]
        np.multiply(inputs[0], inputs[0] >= kth, out=outputs[0])
        outputs[0][...] += next(self._offsets)


Define = Callable[..., str]


@pytest.fixture
def define() -> Iterator[Define]:
    """Makes a plug-in operation KeepTop, and returns its domain."""
    made: list[Any] = []

    def define(
        kernel: Callable[..., Any] = _kernel,
        rule: Callable[..., Any] = _rule,
        offsets: Callable[[], Iterator[float]] = lambda: itertools.repeat(0),
        doc: str = "The ``k`` largest values of the last axis; all others become zero.",
        others: Sequence[str] = (),
    ) -> str:
        def keep_top(data: FloatTensor, *, k: int = 1) -> np.ndarray:
            return kernel(data, k)

        keep_top.__doc__ = doc
        domain = next(_DOMAINS)
        for type in ("KeepTop", *others):
            defined = operation(type, domain=domain)(keep_top)

            @defined.shape_rule
            def keep_top_shape(data: Fact, *, k: int = 1) -> Fact:
                return rule(data, k)

            @defined.fast_kernel
            def candidates(task: Any) -> Iterator[Candidate]:
                if task.shape(0) and task.inputs[0].element is irexec.f32:
                    yield Candidate(100.0, lambda: Kept(task.attributes["k"], offsets()))

            made.append(defined)
        return domain

    yield define
    for definition in made:
        discard(definition)


def _row(domain: str, **options: Any) -> testing.Case:
    return testing.case(
        "KeepTop", domain, [[1.0, 3.0, 2.0]], k=2, gives=[[0.0, 3.0, 2.0]], id="two of three", **options
    )


def test_rows_of_a_plugin_that_is_right(define: Define) -> None:
    domain = define()
    for row in (
        _row(domain),
        testing.case("KeepTop", domain, testing.typed("f16", [2, 1]), gives=testing.typed("f16", [2, 0]), id="f16"),
        testing.facts_case("KeepTop", domain, "f32[?,2..3]", gives="f32[?,2..3]", id="partial"),
        testing.refuses("KeepTop", domain, [1.0, 2.0], k=3, says="k is 3", id="too many"),
    ):
        testing.check(row)


_FAULTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "wrong values": ({"kernel": lambda data, k: data + k}, {"law_1_gives"}),
    "its input": ({"kernel": lambda data, k: data}, {"law_2_leaves_inputs_alone"}),
    "a loose rule": ({"rule": lambda data, k: Fact(data.element, None)}, {"law_3_exact_facts", "wrong_ports_are_found"}),
    "a rule that needs the rank": ({"rule": lambda data, k: Fact(data.element, (*data.shape,))}, {"law_4_facts_admit"}),
    "C order alone": ({"kernel": lambda data, k: _kernel(data, k) * data.flags.c_contiguous}, {"law_5_layouts"}),
    "a wrong fast kernel": ({"offsets": lambda: itertools.repeat(1)}, {"law_6_runs", "fast_kernels_agree", "observed_runs_are_the_same"}),
    "a fast kernel that depends on earlier runs": ({"offsets": itertools.count}, {"law_7_again"}),
    "two types with one function": ({"others": ["Keep_Top"]}, {"its_script_makes_it_again"}),
    "no docstring": ({"doc": ""}, {"it_is_documented"}),
}  # fmt: skip


def test_every_law_can_be_broken() -> None:
    assert set().union(*(laws for _, laws in _FAULTS.values())) == {law.__name__ for law in PLUGIN_LAWS}


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_breaks_a_law(define: Define, fault: str) -> None:
    options, laws = _FAULTS[fault]
    row = _row(define(**options))
    with pytest.raises((AssertionError, irexec.OpError, ExceptionGroup)) as caught:
        testing.check(row)
    errors = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert {f"{row.id} breaks {law}" for law in laws} <= {note for error in errors for note in error.__notes__}


def test_facts_and_refusals_that_are_not_so(define: Define) -> None:
    domain = define()
    with pytest.raises(AssertionError, match=r"gives \['f32\[2\]'\], expected \['f32\[3\]'\]"):
        testing.check(testing.facts_case("KeepTop", domain, "f32[2]", gives="f32[3]", id="wrong"))
    with pytest.raises(AssertionError, match="expected a refusal that says 'k is'"):
        testing.check(testing.refuses("KeepTop", domain, "f32[2]", says="k is", id="nothing to refuse"))
    with pytest.raises(AssertionError, match="the refusal is 'k is 3"):
        testing.check(testing.refuses("KeepTop", domain, "f32[2]", k=3, says="rank", id="another reason"))


def test_sizes_that_depend_on_elements() -> None:
    @operation("Words", domain="words.ops")
    def words(text: StringTensor) -> np.ndarray:
        """The words of the texts."""
        return np.array([word for each in text.flat for word in each.split()], object)

    @words.shape_rule
    def _(text: Fact) -> Fact:
        return Fact(irexec.string, (irexec.Dim(0),))

    try:
        arguments: dict[str, Any] = {"gives": ["a", "b", "c"], "id": "three words"}
        testing.check(testing.case("Words", "words.ops", ["a b", "c"], by_value=True, **arguments))
        with pytest.raises(AssertionError, match=r"the shape rule gives string\[\?\], the kernel \[3\]"):
            testing.check(testing.case("Words", "words.ops", ["a b", "c"], **arguments))
    finally:
        discard(words)  # type: ignore[arg-type]


def test_an_operation_without_inputs() -> None:
    """A run need not observe a layer that compilation has computed."""

    @operation("Sevens", domain="sevens.ops")
    def sevens(*, count: int = 2) -> np.ndarray:
        """Seven, ``count`` times."""
        return np.full(count, 7, np.float32)

    @sevens.shape_rule
    def _(*, count: int = 2) -> Fact:
        return Fact(irexec.f32, (count,))

    try:
        testing.check(testing.case("Sevens", "sevens.ops", count=3, gives=[7.0, 7.0, 7.0], id="three"))
    finally:
        discard(sevens)  # type: ignore[arg-type]


def test_a_conversion(define: Define) -> None:
    pytest.importorskip("onnx")
    domain = define()
    before = list(TRANSLATORS)

    @translates("checked.onnx", "KeepTop" + domain.partition(".")[0])
    def translate(ctx: Any, data: irexec.Value, *, k: int = 1) -> irexec.Value:
        return ctx.emit("KeepTop", data, k=k)

    operator = "KeepTop" + domain.partition(".")[0]
    assert before == TRANSLATORS[: len(before)]
    model = testing.check_conversion(_row(domain), "checked.onnx", operator)
    assert "KeepTop" in [node.type for node in model.nodes]
    with pytest.raises(AssertionError):
        testing.check_conversion(_row(domain), "checked.onnx", operator, attributes={"k": 1})


def test_rows_become_tests(define: Define) -> None:
    domain = define()
    mark = testing.parametrize([_row(domain)])
    assert [parameter.id for parameter in mark.mark.args[1]] == [f"KeepTop-{domain}-two of three"]
    with pytest.raises(InputError, match=f"2 rows have the id 'KeepTop-{domain}-two of three'"):
        testing.parametrize([_row(domain)] * 2)
    with pytest.raises(InputError, match="has no expected outputs"):
        testing.check(testing.case("KeepTop", domain, [1.0], id="none"))
