"""Makes converters/ir_to_onnx/kernels.txt from the installed ONNX Runtime: ``python -m tests.to_onnx.kernels``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import helper

import converters.ir_to_onnx
from converters.ir_to_onnx.graph import type_name
from converters.ir_to_onnx.opsets import OLDEST_OPSET
from irexec.dtypes.elements import ELEMENTS

TABLE = Path(converters.ir_to_onnx.__file__).with_name("kernels.txt")
_NAMES = {type_name(row): row.name for row in ELEMENTS if row.onnx is not None}
_ATTRIBUTES = {"GroupNormalization": {"num_groups": 1}}
_PROBED = ("GroupNormalization", "HardSwish", "Mish", "Swish")
"""Functions without kernels: ONNX Runtime has them in the opsets in which it replaces them by their bodies."""

Types = dict[str, frozenset[str]]


def rows() -> dict[tuple[str, int], list[Types]]:
    """The types of each type variable that the kernels of an operator accept, by operator and opset."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    kernels = [kernel for kernel in get_all_opkernel_def() if kernel.domain in ("", "ai.onnx")]
    found: dict[tuple[str, int], list[Types]] = {}
    for operator in sorted({kernel.op_name for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel.op_name == operator]
        for opset, since in _versions(operator):
            given = [_known(kernel.type_constraints) for kernel in own if _serves(*kernel.version_range, since)]
            if given := [types for types in given if all(types.values())]:
                found[operator, opset] = _merged(given)
    for operator in _PROBED:
        for opset, _ in _versions(operator):
            if types := frozenset(name for name in ("f32", "f64") if _loads(operator, opset, name)):
                found[operator, opset] = [{_schema(operator, opset).inputs[0].type_str: types}]
    return found


def _versions(operator: str) -> Iterator[tuple[int, int]]:
    """The opsets that have an operator, each with the version of the operator."""
    for opset in range(OLDEST_OPSET, onnx.defs.onnx_opset_version() + 1):
        if (schema := _schema(operator, opset)) is not None:
            yield opset, schema.since_version


def _schema(operator: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(operator, opset, "")
    except onnx.defs.SchemaError:
        return None


def _serves(first: int, last: int, since: int) -> bool:
    """Whether a kernel is for a version: one without an end is for its first version alone."""
    return first == since or (last < 2**31 - 1 and first <= since <= last)


def _known(constraints: dict[str, list[str]]) -> Types:
    return {
        variable: frozenset(_NAMES[name] for name in names if name in _NAMES)
        for variable, names in sorted(constraints.items())
    }


def _merged(given: list[Types]) -> list[Types]:
    """Kernels that differ in the types of one variable as one."""
    left = list(given)
    for i, types in enumerate(left):
        j = i + 1
        while j < len(left):
            other = left[j]
            differing = [name for name in types if types[name] != other.get(name)]
            if types.keys() == other.keys() and len(differing) < 2:
                types.update({name: types[name] | other[name] for name in differing})
                del left[j]
                j = i
            j += 1
    return left


def _loads(operator: str, opset: int, element: str) -> bool:
    import onnxruntime

    schema = _schema(operator, opset)
    assert schema is not None
    kind = next(row for row in ELEMENTS if row.name == element).onnx
    assert kind is not None
    inputs = [helper.make_tensor_value_info(f"x{i}", kind.number, None) for i in range(schema.min_input)]
    node = helper.make_node(operator, [info.name for info in inputs], ["y"], **_ATTRIBUTES.get(operator, {}))
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(imports)
    model = helper.make_model(graph, opset_imports=imports, ir_version=version)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        # The classes of ONNX Runtime's errors have no common base but Exception.
        return False
    return True


def table() -> str:
    """The file: a line for each kernel, with the opsets that it is for."""
    ranges: dict[tuple[str, str], list[int]] = {}
    order = {row.name: i for i, row in enumerate(ELEMENTS)}
    for (operator, opset), kernels in rows().items():
        for types in kernels:
            text = " ".join(f"{name}={','.join(sorted(kinds, key=order.__getitem__))}" for name, kinds in types.items())
            ranges.setdefault((operator, text), []).append(opset)
    lines = []
    for (operator, text), opsets in sorted(ranges.items(), key=lambda item: (item[0][0], item[1])):
        lines.append(f"{operator} {_ranges(opsets)} {text}".rstrip())
    return "\n".join(lines) + "\n"


def _ranges(opsets: list[int]) -> str:
    parts: list[list[int]] = []
    for opset in opsets:
        if parts and parts[-1][1] == opset - 1:
            parts[-1][1] = opset
        else:
            parts.append([opset, opset])
    return ",".join(f"{first}-{last}" for first, last in parts)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
