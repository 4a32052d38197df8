"""Constants of a script: small ones in the source, the others in an .npz beside it."""

from __future__ import annotations

import ast
import re
import zipfile
from typing import IO, Any

import numpy as np

from irexec.authoring.ends import constant
from irexec.dtypes.packing import pack
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value, release
from irexec.ir.graph import Node
from irexec.ir.names import Names
from irexec.tools.script.expressions import Call, Expression, Source, TensorNames, Text, quoted

_INLINE = 8
"""Maximum number of elements of a constant that is written in the source."""
_KEY = re.compile(r"[\w.][\w.:/ -]{0,199}", re.ASCII)


class Weights:
    """The constants of a script by their keys in the .npz; arrays are made when they are read."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._keys = Names()

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, key: str) -> np.ndarray:
        return _array(self._nodes[key])[0]

    def expression(self, node: Node) -> Call:
        """The call that makes a constant."""
        named = (("name", Text(node.name)), ("names", TensorNames(tuple(node.outputs[0].names))))
        inline = _inline(node)
        if inline is not None:
            return Call("opset.constant", inline, named)
        fits = _KEY.fullmatch(node.name) and not {"", ".", ".."} & set(node.name.split("/"))
        key = self._keys.free(node.name if fits else "constant")
        self._nodes[key] = node
        kept = node.constant
        assert kept is not None
        is_array = _array(node)[1]
        how: tuple[Expression, ...] = () if is_array else (Text(kept.element.name), Source(repr(kept.shape)))
        if key == node.name:
            return Call("weight" if is_array else "packed", (Text(key), *how), named[1:])
        return Call("opset.constant" if is_array else "opset.packed", (Source(f"weights[{quoted(key)}]"), *how), named)

    def write(self, file: IO[bytes]) -> None:
        """Write the .npz."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for key, node in self._nodes.items():
                with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _array(node)[0], allow_pickle=False)
                if node.constant is not None:
                    release(node.constant)


def _array(node: Node) -> tuple[np.ndarray, bool]:
    """The contents of a constant and True, or where no array of NumPy has the same bytes, the bytes and False."""
    kept = node.constant
    assert kept is not None
    raw = kept.raw[: kept.size]
    if kept.element.native and kept.element.kind not in ("boolean", "string"):
        array = constant_value(kept)
        if array.nbytes == raw.nbytes:
            return array, True
    return raw, False


def _inline(node: Node) -> tuple[Expression, ...] | None:
    """The arguments of a small constant; None if the source would not make the same bytes."""
    kept = node.constant
    assert kept is not None
    if kept.count > _INLINE or not kept.count:
        return None
    value = constant_value(kept)
    source = repr(value.tolist())
    if kept.element.name == "f32":
        source = _short(value)
    elif kept.element.kind == "string":
        source = _texts(value.tolist())
    is_default = kept.element.name in ("f32", "i64")
    try:
        # NaN and infinities are not literals.
        made = constant(_evaluated(source), None if is_default else kept.element).value.node.constant
    except (IrexecError, ValueError):
        return None
    assert made is not None
    same = made.element is kept.element and made.shape == kept.shape
    if not same or pack(made.element, constant_value(made)).tobytes() != kept.raw[: kept.size].tobytes():
        return None
    return (Source(source),) if is_default else (Source(source), Text(kept.element.name))


def _short(value: np.ndarray) -> str:
    """Values of f32 with as few digits as tell them from all others."""
    if value.ndim == 0:
        return repr(float(str(value[()])))
    return f"[{', '.join(map(_short, value))}]"


def _texts(value: Any) -> str:
    return f"[{', '.join(map(_texts, value))}]" if isinstance(value, list) else quoted(str(value))


def _evaluated(source: str) -> Any:
    """The value of a literal; ValueError for what is not one."""
    return ast.literal_eval(source)
