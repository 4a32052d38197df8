"""An example of an operation: a row of tests/cases with the result that OpenVINO, the specification or a hand calculation gives."""

from __future__ import annotations

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
    family, row = min(rows, key=lambda item: _cost(item[1]))
    results = recorded(family, row.id, row.digest) if row.gives is None else row.gives
    names = [spec.name for spec in definition.inputs]
    shown = [_value(names[min(i, len(names) - 1)], x.element.name, x.array) for i, x in enumerate(row.inputs)]
    shown += [_value("result" if len(results) == 1 else f"result {i}", "", array) for i, array in enumerate(results)]
    attributes = [f'{name}="{text}"' for name, text in row.attributes.items()]
    source = "recorded from OpenVINO" if row.gives is None else "from the specification or by hand"
    return "\n".join((f"**Example**: {row.name}\n", fence("\n".join([*attributes, *shown])), f"The result is {source}.\n"))


def _cost(row: Case) -> tuple[bool, bool, int]:
    """Rows of ordinary finite values that fit on a page come first, of these the ones with enough elements to show something."""
    arrays = [x.array for x in row.inputs]
    size = sum(array.size for array in arrays)
    odd = any(array.size == 0 or (array.dtype.kind == "f" and not np.isfinite(array).all()) for array in arrays)
    usual = bool(row.inputs) and row.inputs[0].element.name in ("f32", "string")
    return odd, not usual, abs(size - 16) if size <= _MANY else size


def _value(name: str, element: str, array: np.ndarray) -> str:
    """``name: f32[2,3]`` and the values below it."""
    shape = ",".join(map(str, array.shape))
    text = np.array2string(array, max_line_width=76, threshold=_MANY, edgeitems=2, precision=5, suppress_small=True, separator=", ")
    kind = element or ("string" if array.dtype == object else _element_name(array))
    return f"{name}: {kind}[{shape}]\n  " + text.replace("\n", "\n  ")


def _element_name(array: np.ndarray) -> str:
    from irexec.dtypes.elements import element_of

    return element_of(array.dtype).name
