"""Random models with bodies and variables, made through OpenVINO's own API and written by it.

Each is run as often as it has feeds, so that variables are read and assigned. Data are small integers in f32 or i32:
results are exact.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset3, opset8

import irexec
from irexec.analysis.portability import DIFFERENCES
from irexec.errors import IrexecError
from irexec.ir import codes
from irexec.testing.random_cases import CaseGenerator
from tests.oracle.judge import AGREED, BOTH_REFUSE, CANNOT, DIFFERS, EXPLAINED, THEY_REFUSE, Verdict

Calls = list[list[np.ndarray]]
_KNOWN = ("IR941", "IR944", "IR974", "IR981")


def judge(pair: tuple[str, int], gen: CaseGenerator, asking: Callable[[], None]) -> Verdict:
    """The verdict on a random model of a type; ``asking`` is called before OpenVINO, which may not come back."""
    asking()
    try:
        model, calls = MODELS[pair](gen)
    except RuntimeError as error:
        return Verdict(THEY_REFUSE, str(error).strip().splitlines()[-1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        found = irexec.validate(path, portability=True)
        faults = [one for one in found if one.severity == "error" or one.code == codes.UNKNOWN_ATTRIBUTE]
        theirs = _by_plugin(path, calls)
        try:
            session = irexec.compile_model(path).session()
            ours: Any = [list(session(dict(enumerate(feeds))).values()) for feeds in calls]
        except IrexecError as error:
            ours = str(error)
        text = path.read_text("utf-8")
    if isinstance(theirs, str):
        return Verdict(BOTH_REFUSE if isinstance(ours, str) else CANNOT, theirs)
    if not faults and not isinstance(ours, str) and all(map(_same, ours, theirs)):
        return Verdict(AGREED)
    known = next((one.code for one in found if one.code in _KNOWN), None)
    if known is not None:
        return Verdict(EXPLAINED, DIFFERENCES[known].does)
    return Verdict(DIFFERS, f"{faults} ours {ours} OpenVINO {theirs} fed {calls}\n{text}")


def _same(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> bool:
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def _by_plugin(path: Path, calls: Calls) -> list[list[np.ndarray]] | str:
    """The outputs of each call, or why there are none."""
    try:
        compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        request, results = compiled.create_infer_request(), []
        for feeds in calls:
            request.infer(feeds)
            results.append([np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))])
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]
    return results


class _Making:
    """A model in the making: its Parameters with what is fed, for one call or several."""

    def __init__(self, gen: CaseGenerator, calls: int = 1) -> None:
        self.gen, self.kind = gen, gen.pick(np.float32, np.int32)
        self.shape = gen.shape(1, 3, 0)
        self._parameters: list[Any] = []
        self._calls: Calls = [[] for _ in range(calls)]

    def array(self, shape: Sequence[int] | None = None) -> np.ndarray:
        return self.gen.rng.integers(-4, 5, self.shape if shape is None else tuple(shape)).astype(self.kind)

    def input(self, make: Callable[[], np.ndarray], *, constant: float = 0.0) -> Any:
        """A Parameter, or a Constant with this probability; some Parameters do not declare their sizes."""
        first = make()
        if self.gen.chance(constant):
            return ov.op.Constant(first)
        shape = self.gen.pick(list(first.shape), list(first.shape), [-1] * first.ndim)
        self._parameters.append(ov.op.Parameter(ov.Type(first.dtype), ov.PartialShape(shape)))
        for i, feeds in enumerate(self._calls):
            feeds.append(first if i == 0 else make())
        return self._parameters[-1]

    def inner(self, shape: Sequence[int] | None = None, kind: Any = None) -> Any:
        """A Parameter of a body."""
        sizes = list(self.shape if shape is None else shape)
        return ov.op.Parameter(ov.Type(self.kind if kind is None else kind), ov.PartialShape(sizes))

    def computed(self, *values: Any) -> Any:
        """An element-wise function of values of one shape."""
        gen = self.gen
        result = values[0]
        for value in values[1:]:
            result = gen.pick(opset8.add, opset8.subtract, opset8.maximum, opset8.minimum)(result, value)
        constant = ov.op.Constant(np.array(gen.size(-3, 3), self.kind))
        return gen.pick(opset8.add, opset8.maximum, opset8.subtract)(result, constant)

    def model(self, outputs: Sequence[Any], sinks: Sequence[Any] = ()) -> tuple[ov.Model, Calls]:
        results = [opset8.result(one) for one in outputs]
        return ov.Model(results, list(sinks), self._parameters, "m"), self._calls


def _if(gen: CaseGenerator) -> tuple[ov.Model, Calls]:
    making = _Making(gen)
    condition = making.input(lambda: np.array(gen.chance(), np.bool_).reshape(gen.pick((), (1,))), constant=0.3)
    x, y = making.input(making.array), making.input(making.array, constant=0.3)
    branches, pairs = [], []
    for uses_both in (gen.chance(0.7), gen.chance(0.7)):
        own = [making.inner(), making.inner() if uses_both else None]
        value = making.computed(*(one for one in own if one is not None))
        if gen.chance(0.2):
            value = opset8.concat([value, value], 0)
        result = opset8.result(value)
        branches.append(ov.Model([result], [one for one in own if one is not None], "branch"))
        pairs.append((own, result))
    node = opset8.if_op(condition)
    node.set_then_body(branches[0])
    node.set_else_body(branches[1])
    for i, value in enumerate((x, y)):
        then, other = pairs[0][0][i], pairs[1][0][i]
        if then is not None or other is not None:
            node.set_input(value.output(0), then, other)
    return making.model([node.set_output(pairs[0][1], pairs[1][1])])


def _tensor_iterator(gen: CaseGenerator) -> tuple[ov.Model, Calls]:
    making, node = _Making(gen), opset8.tensor_iterator()
    axis, width, count = gen.size(0, len(making.shape) - 1), gen.size(1, 2), gen.size(1, 4)
    shape, sizes = list(making.shape), list(making.shape)
    shape[axis], sizes[axis] = width, width * count
    part, state, fixed = (making.inner(shape) for _ in range(3))
    after = opset8.result(making.computed(*gen.pick((state, fixed, part), (state, part), (state, fixed))))
    shown = opset8.result(making.computed(part, state))
    node.set_body(ov.Model([after, shown], [part, state, fixed], "body"))
    # Start, stride, size and end of the slices; backwards they begin with the last one.
    start, stride, end = gen.pick((0, width, -1), (0, width, -1), (-1, -width, 0))
    x = making.input(lambda: making.array(sizes))
    node.set_sliced_input(part, x.output(0), start, stride, width, end, axis)
    first, same = (making.input(lambda: making.array(shape), constant=0.3) for _ in range(2))
    node.set_merged_input(state, first.output(0), after.output(0))
    node.set_invariant_input(fixed, same.output(0))
    outputs = [node.get_iter_value(after.output(0), -1)]
    if gen.chance(0.7):
        outputs.append(node.get_concatenated_slices(shown.output(0), start, stride, width, end, axis))
    return making.model(outputs)


def _loop(gen: CaseGenerator) -> tuple[ov.Model, Calls]:
    making = _Making(gen)
    making.shape = (1, *making.shape[1:])
    trips = gen.pick(np.int64, np.int32)
    count = making.input(lambda: np.array(gen.size(0, 4), trips).reshape(gen.pick((), (1,))), constant=0.6)
    runs = making.input(lambda: np.array(gen.chance(0.8), np.bool_), constant=0.7)
    node = opset8.loop(count, runs)
    state, fixed = making.inner(), making.inner()
    number = making.inner((), np.int64) if gen.chance() else None
    after = opset8.result(making.computed(state, fixed))
    again: Any = ov.op.Constant(np.array(True))
    if number is not None and gen.chance(0.7):
        again = opset8.less(number, ov.op.Constant(np.array(gen.size(0, 3), np.int64)))
    again = opset8.result(again)
    parameters = [state, fixed] + ([] if number is None else [number])
    node.set_function(ov.Model([again, after], parameters, "body"))
    node.set_special_body_ports([-1 if number is None else 2, 0])
    node.set_merged_input(state, making.input(making.array, constant=0.3).output(0), after.output(0))
    node.set_invariant_input(fixed, making.input(making.array, constant=0.3).output(0))
    outputs = [node.get_iter_value(after.output(0), -1)]
    if gen.chance():
        outputs.append(node.get_concatenated_slices(after.output(0), 0, 1, 1, -1, 0))
    return making.model(outputs)


def _variable(gen: CaseGenerator) -> tuple[ov.Model, Calls]:
    making = _Making(gen, calls=3)
    x = making.input(making.array)
    info = ov.op.util.VariableInfo()
    info.variable_id, info.data_type = gen.pick("v", "a/b:0"), gen.pick(ov.Type(making.kind), ov.Type.dynamic)
    sizes = list(making.shape)
    open_sizes = ov.PartialShape([-1, *sizes[1:]])
    info.data_shape = gen.pick(ov.PartialShape(sizes), open_sizes, ov.PartialShape.dynamic())
    variable = ov.op.util.Variable(info)
    start = making.input(making.array, constant=0.7)
    value = ov.op.read_value(start, variable) if gen.chance(0.7) else ov.op.read_value(variable)
    after = making.computed(value, x)
    sinks = [ov.op.assign(after, variable)] if gen.chance(0.9) else []
    return making.model([gen.pick(after, value)], sinks)


def _variable_3(gen: CaseGenerator) -> tuple[ov.Model, Calls]:
    making = _Making(gen, calls=3)
    x = making.input(making.array)
    value = opset3.read_value(making.input(making.array, constant=0.7), "v")
    after = making.computed(value, x)
    return making.model([gen.pick(after, value)], [opset3.assign(after, "v")])


MODELS: dict[tuple[str, int], Callable[[CaseGenerator], tuple[ov.Model, Calls]]] = {
    ("If", 8): _if, ("TensorIterator", 1): _tensor_iterator, ("Loop", 5): _loop,
    ("ReadValue", 6): _variable, ("ReadValue", 3): _variable_3,
}  # fmt: skip
