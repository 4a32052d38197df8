"""Example of an operation: a row of tests/cases, whose result is OpenVINO's, the specification's or hand-computed."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from irexec.schema.opdef import OpDef
from irexec_reference.markdown import fence
from tests.support.cases import Case, families
from tests.support.goldens import recorded

# More elements than this do not fit on a page; NumPy shortens what is longer.
_MANY = 64


@cache
def _rows() -> dict[tuple[str, int | str], list[tuple[str, Case]]]:
    found: dict[tuple[str, int | str], list[tuple[str, Case]]] = {}
    for family, rows in families().items():
        for row in rows:
            if isinstance(row, Case):
                found.setdefault((row.type, row.since), []).append((family, row))
    return found


def example(definition: OpDef) -> str:
    """The most telling row of a definition; empty if its tests are whole graphs."""
    rows = _rows().get((definition.type, definition.since), [])
    if not rows:
        return ""
    ordered = sorted(rows, key=lambda item: _cost(item[1]))
    family, row = next((item for item in ordered if _tells(*item)), ordered[0])
    results = _results(family, row)
    shown = [_value(_input_name(definition, i), x.element.name, x.array) for i, x in enumerate(row.inputs)]
    shown += [_value("result" if len(results) == 1 else f"result {i}", "", array) for i, array in enumerate(results)]
    attributes = [f'{name}="{text}"' for name, text in row.attributes.items()]
    source = "recorded from OpenVINO" if row.gives is None else "from the specification or a calculation by hand"
    return "\n".join(
        (f"**Example**: {_title(row)}\n", fence("\n".join([*attributes, *shown])), f"The result is {source}.\n")
    )


def _title(row: Case) -> str:
    """The name of the row, without the number of the published example that it comes from."""
    return re.sub(r"^seed \d+ ", "", row.name)


def _input_name(definition: OpDef, position: int) -> str:
    """The name of an input; with a number where one declaration stands for several."""
    last = len(definition.inputs) - 1
    spec = definition.inputs[min(position, last)]
    return f"{spec.name} {position - last}" if spec.variadic else spec.name


def _results(family: str, row: Case) -> tuple[np.ndarray, ...]:
    return recorded(family, row.id, row.digest) if row.gives is None else row.gives


def _tells(family: str, row: Case) -> bool:
    """Whether the result shows something: a quarter of its elements are neither zero, nor false, nor empty."""
    result = _results(family, row)[0]
    return result.size > 0 and 4 * np.count_nonzero(result) >= result.size


def _cost(row: Case) -> tuple[bool, bool, int]:
    """Sort key: rows of finite values that fit on a page come first, rows with several elements before others."""
    arrays = [x.array for x in row.inputs]
    size = sum(array.size for array in arrays)
    odd = any(array.size == 0 or (array.dtype.kind == "f" and not np.isfinite(array).all()) for array in arrays)
    usual = bool(row.inputs) and row.inputs[0].element.name in ("f32", "string")
    return odd, not usual, abs(size - 16) if size <= _MANY else size


def _value(name: str, element: str, array: np.ndarray) -> str:
    """``name: f32[2,3]`` and the values below it."""
    shape = ",".join(map(str, array.shape))
    text = np.array2string(
        array, max_line_width=76, threshold=_MANY, edgeitems=2, precision=5, suppress_small=True, separator=", "
    )
    kind = element or ("string" if array.dtype == object else _element_name(array))
    lines = [f"{name}: {kind}[{shape}]", *(f"  {line}".rstrip() for line in text.splitlines())]
    return "\n".join(lines)


def _element_name(array: np.ndarray) -> str:
    from irexec.dtypes.elements import element_of

    return element_of(array.dtype).name
