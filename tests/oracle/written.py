"""One random operation, made through OpenVINO's own Python API and written by it: its file has no finding, and the same values.

The functions of openvino.opset1 to opset17 make half of the cases, NodeFactory, which takes attributes that no function has, the rest.
Attributes take every value of their type in turn, the others are random.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino.passes import ConstantFolding, Manager
from openvino.utils.node_factory import NodeFactory

import irexec
from irexec.authoring.operations import function_name
from irexec.dtypes.elements import ELEMENTS, Element, element, pack, unpack
from irexec.errors import IrexecError
from irexec.ir import codes
from irexec.schema.attributes import Attribute, write_attribute
from irexec.schema.registry import NEWEST_OPSET, opset_versions
from irexec.testing import Case, Typed
from irexec.testing.random_cases import CaseGenerator
from tests.oracle import openvino_runner as openvino
from tests.oracle.explained import reason
from tests.oracle.judge import (
    AGREED,
    BOTH_REFUSE,
    CANNOT,
    DIFFERS,
    EXPLAINED,
    THEY_REFUSE,
    Differs,
    Verdict,
    describe,
    same_values,
)  # fmt: skip


class NotMade(Exception):
    """The API does not make the operation, or irexec has no values for it."""


def judge(row: Case, gen: CaseGenerator, asking: Callable[[], None]) -> Verdict:
    """The verdict on a row with one attribute changed; ``asking`` is called before OpenVINO, which may not come back."""
    row = _varied(row, gen)
    asking()
    try:
        node, parameters = _made(row, gen)
    except NotMade as error:
        return Verdict(THEY_REFUSE, str(error))
    try:
        return _written(row, node, parameters)
    except Differs as error:
        known = reason(row, str(error))
        return Verdict(EXPLAINED, known) if known else Verdict(DIFFERS, f"{error}\n    {describe(row)}")


def _varied(row: Case, gen: CaseGenerator) -> Case:
    """The row with one attribute that takes one of the values of its type, or as it is."""
    choices = [
        (attribute.name, text) for attribute in row.definition.attributes for text in _texts(row.type, attribute)
    ]
    if not choices or gen.chance(0.2):
        return row
    name, text = gen.pick(*choices)
    return dataclasses.replace(row, attributes={**row.attributes, name: text})


def _texts(type: str, attribute: Attribute) -> Iterator[str]:
    """Every value of an attribute that has few of them."""
    if attribute.choices:
        yield from attribute.choices
    elif attribute.annotation is bool:
        yield from ("true", "false")
    elif attribute.is_element:
        yield from (one.name for one in ELEMENTS if type in ("Convert", "ConvertLike") or (one.native and one.bits > 1))


def _made(row: Case, gen: CaseGenerator) -> tuple[ov.Node, list[tuple[ov.op.Parameter, Typed]]]:
    """The node, and its Parameters with what is fed; the other inputs are constants."""
    free = gen.pick([0], [0], range(len(row.inputs)))
    parameters: list[tuple[ov.op.Parameter, Typed]] = []
    inputs: list[Any] = []
    try:
        for i, x in enumerate(row.inputs):
            if i in free:
                inputs.append(ov.op.Parameter(_type(x), ov.PartialShape(list(x.array.shape))))
                parameters.append((inputs[-1], x))
            else:
                inputs.append(_constant(x))
        values = row.definition.ungrouped(row.definition.parse(row.attributes).require())
        attributes = {
            one.name: _api_value(values[one.parameter])
            for one in row.definition.attributes
            if one.name in row.attributes and values.get(one.parameter) is not None
        }
        # Some operations are in no later opset.
        opset = gen.pick(int(row.since), gen.pick(*_opsets(row)))
        if gen.chance() and (made := _by_function(row, opset, inputs, attributes)) is not None:
            return made, parameters
        return NodeFactory(f"opset{opset}").create(row.type, inputs, attributes), parameters
    except Exception as error:
        raise NotMade(f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}") from None


def _type(x: Typed) -> ov.Type:
    kind: ov.Type = getattr(ov.Type, x.element.name)
    return kind


def _constant(x: Typed) -> ov.Node:
    if x.element.kind == "string":
        return ov.op.Constant(x.array.astype(str))
    return ov.op.Constant(_tensor(x), shared_memory=False)


def _opsets(row: Case) -> range:
    """The opsets in which a layer of the type means this version."""
    later = [since for type, since in opset_versions() if type == row.type and since > int(row.since)]
    return range(int(row.since), min(later, default=NEWEST_OPSET + 1))


def _api_value(value: Any) -> Any:
    if isinstance(value, Element):
        return value.name
    if isinstance(value, tuple):
        return [_api_value(one) for one in value]
    return value if isinstance(value, bool | int | float | str) else write_attribute(value)


_PARAMETERS = {"broadcast_spec": "mode"}
"""Names of attributes in the functions, where they differ."""


def _by_function(row: Case, opset: int, inputs: list[Any], attributes: dict[str, Any]) -> ov.Node | None:
    """The node that the opset's function makes; None if it has none, or takes other arguments."""
    function = getattr(importlib.import_module(f"openvino.opset{opset}"), function_name(row.type), None)
    if function is None:
        return None
    given: dict[str, Any] = {}
    first: list[Any] = []
    left, unused = list(inputs), dict(attributes)
    for name, parameter in inspect.signature(function).parameters.items():
        key = next((key for key in (_PARAMETERS.get(name, name), name.replace("_", "-")) if key in unused), None)
        if name == "attrs":
            given[name], unused = unused, {}
        elif key is not None:
            given[name] = unused.pop(key)
        elif "Node" in str(parameter.annotation) and left:
            many = str(parameter.annotation).startswith("list[")
            value, left = (left, []) if many else (left[0], left[1:])
            if given:
                given[name] = value
            else:
                # Functions of two operands take them by position alone.
                first.append(value)
        elif parameter.default is parameter.empty:
            return None
    return None if left or unused else function(*first, **given)


def _written(row: Case, node: ov.Node, parameters: list[tuple[ov.op.Parameter, Typed]]) -> Verdict:
    """What OpenVINO writes of the node, read and run."""
    model = ov.Model(list(node.outputs()), [parameter for parameter, _ in parameters], "m")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        read = irexec.read_model(path)
        faults = [
            one for one in irexec.validate(read) if one.severity == "error" or one.code == codes.UNKNOWN_ATTRIBUTE
        ]
        found = [f"{one.code} {one.message}" for one in faults]
        kinds = [port.element for port in read.outputs]
        if found and next(_answers(path, parameters), None) is None:
            return Verdict(BOTH_REFUSE, f"findings, and OpenVINO does not compute it either: {'; '.join(found)}")
        if found:
            raise Differs(f"findings: {'; '.join(found)}")
        try:
            ours = list(irexec.compile_model(read)({i: x.array for i, (_, x) in enumerate(parameters)}).values())
        except IrexecError as error:
            ours, failure = [], str(error)
        differences = []
        for theirs in _answers(path, parameters):
            if not ours:
                raise Differs(f"running: {failure}")
            try:
                same_values(ours, theirs, row, "values", kinds)
            except Differs as error:
                differences.append(error)
            else:
                return Verdict(AGREED)
    if differences:
        raise differences[-1]
    return Verdict(CANNOT if ours else BOTH_REFUSE, "neither the plugin nor folding computes it")


def _answers(path: Path, parameters: list[tuple[ov.op.Parameter, Typed]]) -> Iterator[list[np.ndarray]]:
    """The outputs of the CPU plugin, and of constant folding."""
    try:
        options = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
        compiled = openvino.CORE.compile_model(path, "CPU", options)
        request = compiled.create_infer_request()
        request.infer([_tensor(x) for _, x in parameters])
        yield [_values(request.get_output_tensor(i)) for i in range(len(compiled.outputs))]
    except RuntimeError:
        pass
    try:
        model = openvino.CORE.read_model(path)
        for parameter, (_, x) in zip(model.get_parameters(), parameters, strict=True):
            value = _constant(x)
            for target in parameter.output(0).get_target_inputs():
                target.replace_source_output(value.output(0))
        manager = Manager()
        manager.register_pass(ConstantFolding())
        manager.run_passes(model)
        nodes = [result.input_value(0).get_node() for result in model.get_results()]
        if all(one.get_type_name() == "Constant" for one in nodes):
            yield [_values(one) for one in nodes]
    except RuntimeError:
        pass


def _values(of: Any) -> np.ndarray:
    """The elements of a tensor or Constant of OpenVINO in the carrier of their type."""
    kind = element(of.get_element_type().get_type_name())
    if kind.kind == "string":
        return np.array(of.str_data if isinstance(of, ov.Tensor) else of.get_value_strings())
    shape = tuple(of.shape)
    if kind.native:
        return np.array(of.data).reshape(shape)
    raw = np.ascontiguousarray(of.data).reshape(-1).view(np.uint8)
    return unpack(kind, raw, int(np.prod(shape))).reshape(shape)


def _tensor(x: Typed) -> ov.Tensor:
    if x.element.kind == "string":
        return ov.Tensor(x.array.astype(str))
    tensor = ov.Tensor(_type(x), ov.Shape(x.array.shape))
    raw = np.frombuffer(pack(x.element, x.array).tobytes(), np.uint8)
    tensor.data.reshape(-1).view(np.uint8)[: raw.size] = raw
    return tensor
