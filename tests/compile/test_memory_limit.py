"""What a tensor takes is known before it is allocated, and what is too much is one sentence with the layer, its shape and the limit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.model import Model
from irexec.backend import system
from irexec.backend.system import memory_in_use
from irexec.compile import memory_limit
from irexec.compile.memory_limit import MemoryLimit
from irexec.compile.plan import Compilation
from irexec.compile.rewriting import FOLDING_BUDGET
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError
from tests.support.loops import endless_loop

MB = 1_000_000
HUGE = (1 << 63) - 1
F, I, B = np.float32, np.int64, np.int32


def _system(root: Path, available: int, used: int = 0) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemAvailable: {available >> 10} kB\n")
    (root / "proc/self/statm").write_text(f"9 {(used + 8192) // 4096} 2 1 0 1 0\n")
    return root


@pytest.mark.parametrize(
    ("maximum", "size", "says"),
    [
        (None, 512 << 20, None),
        (None, (512 << 20) + 1, r"^it takes 536870913 bytes \(537 MB\), and 537 MB of memory are available$"),
        (None, 1 << 63, "^it takes 9223372036854775808 bytes, and at most 9223372036854775807 can be addressed$"),
        (300 << 20, 200 << 20, None),
        (300 << 20, (200 << 20) + 1, r"^it takes .*, and the limit of memory is 315 MB; the process already holds 105 MB$"),
        (2 << 30, (512 << 20) + 1, "537 MB of memory are available"),
    ],
)  # fmt: skip
def test_the_smallest_limit_counts(maximum: int | None, size: int, says: str | None, tmp_path: Path) -> None:
    limit = MemoryLimit(maximum, _system(tmp_path, 512 << 20, 100 << 20))
    assert limit.left() == (200 << 20 if maximum == 300 << 20 else 512 << 20)
    if says is None:
        limit.check_memory(size, "it")
    else:
        with pytest.raises(OpError, match=says):
            limit.check_memory(size, "it")


@pytest.mark.parametrize("maximum", [0, -1, 1.5, True, "2G"])
def test_a_limit_is_a_number_of_bytes(maximum: Any) -> None:
    with pytest.raises(irexec.InputError, match=r"^max_memory is .*, expected a number of bytes of at least 1$"):
        irexec.compile_model(endless_loop(), max_memory=maximum)


Emit = Callable[..., Any]

# Of each operation what it is given, of which every array of integers may be a constant or come with the run, and its attributes.
ROWS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Tile": ([np.ones((2, 3), F), np.array([HUGE], I)], {}),
    "OneHot": ([np.zeros(4, I), np.array(HUGE, I), F(1), F(0)], {"axis": 1}),
    "OneHot without elements": ([np.zeros((1, 0, 3), I), np.array(HUGE, I), F(1), F(0)], {"axis": 0}),
    "Eye": ([np.array(HUGE, I), np.array(4, I), np.array(1, I)], {"output_type": "u8"}),
    "Eye that can be addressed": ([np.array(1 << 40, I), np.array(4, I), np.array(1, I)], {"output_type": "u8"}),
    "Range": ([F(0), F(9.2e18), F(0.25)], {"output_type": "f32"}),
    "Pad": ([np.ones(3, B), np.array([1], I), np.array([HUGE], I), np.array(9, B)], {"pad_mode": "constant"}),
    "Pad that can be addressed": ([np.ones(3, B), np.array([1], I), np.array([1 << 45], I), np.array(9, B)], {"pad_mode": "edge"}),
    "Broadcast": ([F(1), np.array([1 << 32, 1 << 32], I)], {"mode": "numpy"}),
    "AdaptiveMaxPool": ([np.ones((1, 2, 7), F), np.array([HUGE], I)], {"index_element_type": "i64"}),
    "AdaptiveAvgPool": ([np.ones((1, 2, 7), F), np.array([1 << 40], I)], {}),
    "RandomUniform": ([np.array([HUGE, HUGE], I), F(0), F(1)], {"output_type": "f32"}),
    "Interpolate": ([np.ones((1, 2, 4, 5), F), np.array([3, HUGE], I), np.array([2, 3], I)], {"mode": "linear", "shape_calculation_mode": "sizes"}),
    "PriorBox": (
        [np.array([HUGE, HUGE], I), np.array([20, 30], I)],
        {"min_size": (4.0,), "offset": 0.5, "variance": (0.1,), "step": 0.0, "max_size": (), "aspect_ratio": ()},
    ),
}  # fmt: skip


def _model(name: str, given: Callable[[np.ndarray], bool], static: bool = True) -> tuple[Model, list[np.ndarray]]:
    """The operation, with the inputs for which ``given`` holds as Parameters, and their arrays."""
    inputs, attributes = ROWS[name]
    builder, arrays, operands = irexec.Builder(name), [], []
    for i, array in enumerate(map(np.asarray, inputs)):
        if given(array):
            arrays.append(array)
            operands.append(builder.parameter(array.dtype, array.shape if static else (-1,) * array.ndim, f"x{i}"))
        else:
            operands.append(builder.constant(array))
    results = builder.emit(name.split()[0], *operands, name="large", **attributes)
    for one in results if isinstance(results, tuple) else (results,):
        builder.result(one)
    return builder.model(), arrays


@pytest.fixture
def nothing_large() -> Iterator[None]:
    """Nothing of more than a few megabytes is allocated in the test."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * MB


@pytest.mark.usefixtures("nothing_large")
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", ROWS)
class TestTooLarge:
    """Sizes that no memory holds."""

    SAYS = r"^layer \d+ 'large' \(.*: ((with axes of size 0 taken as 1, )?its result .*\[.*\] takes \d+ bytes.*, and (at most 9223372036854775807 can be addressed|.* of memory are available)|the result would have shape .*, (of which size \d+ is larger than 2\*\*63 - 1|empty, but with other sizes that are too large for an array))"

    def test_in_constants(self, name: str, optimize: bool) -> None:
        with pytest.raises(irexec.NodeError, match=self.SAYS):
            irexec.compile_model(_model(name, lambda array: False)[0], optimize=optimize)

    @pytest.mark.parametrize("static", [True, False])
    def test_in_a_run(self, name: str, optimize: bool, static: bool) -> None:
        model, arrays = _model(name, lambda array: True, static)
        compiled = irexec.compile_model(model, optimize=optimize)
        with pytest.raises(irexec.NodeError, match=self.SAYS):
            compiled(arrays)


FAR = 1 << 45
# Operations whose results are small, and what their kernels would allocate; of each its inputs and its attributes.
INSIDE: dict[str, tuple[list[tuple[int, ...]], dict[str, Any], str]] = {
    "MaxPool": ([(1, 1, 8)], {"kernel": (FAR,), "pads_begin": (FAR - 8,), "pads_end": (0,), "strides": (1,), "dilations": (1,)}, "the padded input"),
    "AvgPool": ([(1, 1, 8)], {"kernel": (3,), "pads_begin": (1 << 62,), "pads_end": (0,), "strides": (1 << 62,), "exclude_pad": True}, "the padded"),
    "Convolution": ([(1, 1, 8), (1, 1, 3)], {"pads_begin": (FAR,), "pads_end": (FAR,), "strides": (FAR,), "dilations": (1,)}, "the padded input"),
    "ConvolutionBackpropData": (
        [(1, 1, 8), (1, 1, 3)], {"pads_begin": (7 * FAR,), "pads_end": (0,), "strides": (FAR,), "dilations": (1,)}, "the uncropped result"
    ),
    "ExtractImagePatches": ([(1, 1, 8, 8)], {"sizes": (3, 3), "strides": (8, 1), "rates": (FAR, 1), "auto_pad": "same_upper"}, "the padded input"),
    "LRN": ([(1, 8, 4)], {"alpha": 1.0, "beta": 1.0, "bias": 1.0, "size": FAR}, "the padded input"),
    "Interpolate": ([(1, 1, 8)], {"mode": "nearest", "shape_calculation_mode": "sizes", "pads_begin": (0, 0, FAR), "pads_end": (0, 0, 0)}, "the padded input"),
    "Pad": ([(8,)], {"pad_mode": "edge"}, "the uncropped data"),
    "ISTFT": ([(5, 3, 2), (8,)], {"center": False, "normalized": False}, "the whole signal"),
}  # fmt: skip
CONSTANTS = {"LRN": [[1]], "Interpolate": [[4], [2]], "Pad": [[FAR], [-FAR]], "ISTFT": [8, FAR, 3]}


@pytest.mark.usefixtures("nothing_large")
@pytest.mark.parametrize("type", INSIDE)
def test_temporary_arrays_of_kernels(type: str) -> None:
    shapes, attributes, what = INSIDE[type]
    builder = irexec.Builder(type)
    inputs = [builder.parameter(F32, shape, f"x{i}") for i, shape in enumerate(shapes)]
    values = [np.array(value, I) for value in CONSTANTS.get(type, [])]
    results = builder.emit(type, *inputs, *values, name="large", **attributes)
    builder.result(results[0] if isinstance(results, tuple) else results)
    compiled = irexec.compile_model(builder.model(), optimize=False)
    with pytest.raises(irexec.NodeError, match=rf"^layer \d+ 'large' .*: {what}.* float32\[.*\] takes \d+ bytes"):
        compiled([np.ones(shape, F) for shape in shapes])


@pytest.mark.usefixtures("nothing_large")
def test_strings_that_overlap() -> None:
    """A million strings, each of the same million characters."""
    builder = irexec.Builder("strings")
    begins, ends = (builder.parameter("i32", (MB,), name) for name in ("begins", "ends"))
    symbols = builder.parameter("u8", (MB,), "symbols")
    builder.result(builder.emit("StringTensorPack", begins, ends, symbols, name="large"))
    compiled = irexec.compile_model(builder.model())
    with pytest.raises(
        irexec.NodeError,
        match=r"^layer \d+ 'large' .*: the text of the strings uint8\[1000000000000\] takes 1000000000000 bytes",
    ):
        compiled([np.zeros(MB, B), np.full(MB, MB, B), np.full(MB, ord("a"), np.uint8)])


@pytest.fixture
def small_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has 40 MB left, whatever is allocated."""
    monkeypatch.setattr(memory_limit._recently_available, "_answers", {})
    monkeypatch.setattr(memory_limit, "available_memory", lambda root: 40 * MB)


def _repeated(static: bool) -> Model:
    """x f32[1, 1000000] repeated along its first axis: 11 times, or as often as the input n says."""
    builder = irexec.Builder("repeated")
    x = builder.parameter(F32, (1, MB), "x")
    repeats = builder.constant(np.array([11, 1], I)) if static else builder.parameter(I64, (2,), "n")
    builder.result(
        builder.emit(
            "ReduceSum", builder.emit("Tile", x, repeats, name="repeated"), np.array([1]), name="sum", keep_dims=False
        )
    )
    return builder.model()


SAYS = r"^layer \d+ 'repeated' .*: its result f32\[11,1000000\] takes 44000000 bytes \(44 MB\), and 40 MB of memory are available"


@pytest.mark.usefixtures("small_system")
@pytest.mark.parametrize("optimize", [True, False])
class TestSmallSystem:
    """Tensors that another system would hold."""

    def test_a_tensor_of_known_shape(self, optimize: bool) -> None:
        with pytest.raises(irexec.NodeError, match=SAYS):
            irexec.compile_model(_repeated(static=True), optimize=optimize)

    def test_a_tensor_of_a_shape_that_the_run_gives(self, optimize: bool) -> None:
        compiled = irexec.compile_model(_repeated(static=False), optimize=optimize)
        x = np.ones((1, MB), F)
        assert compiled([x, np.array([9, 1], I)])[0].tolist() == [MB] * 9
        with pytest.raises(irexec.NodeError, match=SAYS):
            compiled([x, np.array([11, 1], I)])

    def test_a_body(self, optimize: bool) -> None:
        with pytest.raises(
            irexec.NodeError, match=r"layer \d+ 'count' .*: its result f32\[1,11000000\] takes 44000000 bytes"
        ):
            irexec.compile_model(endless_loop(11 * MB), optimize=optimize).run([np.zeros((1, 11 * MB), F)], timeout=60)

    @pytest.mark.parametrize("known", [True, False])
    def test_views_take_nothing(self, optimize: bool, known: bool) -> None:
        builder = irexec.Builder("views")
        x = builder.parameter(F32, (-1, MB), "x")
        shape = builder.constant(np.array([-1, 10])) if known else builder.parameter(I64, (2,), "shape")
        view = builder.emit("Reshape", x, shape, name="view", special_zero=False)
        builder.result(builder.emit("Gather", view, np.array(7), np.array(0)))
        compiled = irexec.compile_model(builder.model(), optimize=optimize)
        inputs = [np.ones((11, MB), F), np.array([-1, 10], I)]
        assert compiled(inputs[: 1 if known else 2])[0].tolist() == [1] * 10


def test_what_is_held_at_once(small_system: None) -> None:
    """Each tensor fits, but not two of them, in the arena or with memory of their own as in NumPy alone."""
    builder = irexec.Builder("pair")
    x = builder.parameter(F32, (1, 6, 1000, 1000), "x")
    sums = [builder.emit("MaxPool", x, name=f"pool{i}", kernel=(3, 3), strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), version=1)
            for i in range(2)]  # fmt: skip
    narrow = [builder.emit("ReduceMax", value, np.array([1, 2, 3]), keep_dims=False) for value in reversed(sums)]
    builder.result(builder.emit("Add", *narrow))
    says = r"'(pool|ReduceMax_)\d' .*: what is held at once, its result f32\[.*\] and workspace included, takes 48\d{6} bytes \(.*\), and 40 MB of memory are available"
    with pytest.raises(irexec.NodeError, match=says):
        irexec.compile_model(builder.model(), threads=1)


def test_the_limit_of_the_caller_includes_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "memory_in_use", lambda root: 100 * MB)
    irexec.compile_model(_repeated(static=True), max_memory=200 * MB)
    with pytest.raises(
        irexec.NodeError, match=r"44 MB\), and the limit of memory is 130 MB; the process already holds 100 MB"
    ):
        irexec.compile_model(_repeated(static=True), max_memory=130 * MB)


def test_a_loop_that_collects_results_ends_when_they_take_too_much() -> None:
    """No single one of them is large."""
    compiled = irexec.compile_model(endless_loop(250_000, collected=True), max_memory=memory_in_use() + 200 * MB)
    with pytest.raises(
        irexec.NodeError,
        match=r"in layer 'loop': layer \d+ 'count' .* takes 1000000 bytes .*, and the limit of memory is",
    ):
        compiled.run([np.zeros((1, 250_000), F)], timeout=60)


def test_folding_a_constant_takes_no_more_than_there_is(tmp_path: Path) -> None:
    assert Compilation(MemoryLimit(root=_system(tmp_path, 40 << 20))).folding_budget == 40 << 20
    assert Compilation(MemoryLimit(root=_system(tmp_path / "large", 1 << 40))).folding_budget == FOLDING_BUDGET


def test_models_that_are_compiled_one_after_another_ask_the_system_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    real = memory_limit.available_memory
    monkeypatch.setattr(memory_limit, "available_memory", lambda root: (asked.append(root), real(root))[1])
    monkeypatch.setattr(memory_limit._recently_available, "_answers", {})
    monkeypatch.setattr(system.time, "monotonic", lambda: 5.0)
    b = irexec.Builder("m")
    b.result(b.emit("Relu", b.parameter("f32", (2, 3), "x")), "y")
    for _ in range(3):
        irexec.compile_model(b.model())
    assert len(asked) == 1
    monkeypatch.setattr(system.time, "monotonic", lambda: 6.0)
    irexec.compile_model(b.model())
    assert len(asked) == 2
