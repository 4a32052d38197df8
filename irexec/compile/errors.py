"""Errors of kernels with the location where they were raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.errors import IrexecError, NodeError, OpError
from irexec.ir.graph import Node
from irexec.schema.opdef import OpDef


def located(node: Node, definition: OpDef, inputs: Sequence[np.ndarray], attributes: dict[str, Any]) -> Any:
    """The kernel's result, or its OpError with the node's location."""
    try:
        return definition(*inputs, **attributes)
    except NodeError:
        raise
    except OpError as error:
        raise node_error(node, inputs, error) from error


def node_error(node: Node, inputs: Sequence[Any], error: IrexecError) -> NodeError:
    """An error of a kernel with its location and its inputs."""
    line = "" if node.line is None else f", line {node.line}"
    given = ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else str(x) for x in inputs)
    location = f"layer {node.id} {node.name!r} ({node.type} of {node.version or 'no version'}{line})"
    inside = f"; inputs {given}" if inputs else ""
    return NodeError(f"{location}: {error}{inside}", node=node.name, reason=str(error))
