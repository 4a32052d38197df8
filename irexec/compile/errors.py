"""Errors of kernels with the location where they were raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.errors import IrexecError, NodeError, OpError
from irexec.ir.dims import contradict, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Node
from irexec.schema.opdef import OpDef


def located(node: Node, definition: OpDef, inputs: Sequence[np.ndarray], attributes: dict[str, Any]) -> Any:
    """The kernel's result, or its OpError with the node's location; it has one too if there is not enough memory."""
    try:
        return definition(*inputs, **attributes)
    except NodeError:
        raise
    except OpError as error:
        raise node_error(node, inputs, error) from error
    except (MemoryError, OverflowError) as error:
        raise node_error(node, inputs, too_large(error)) from error


def too_large(error: MemoryError | OverflowError) -> OpError:
    """The error of a kernel that cannot allocate memory, or of a value that does not fit NumPy's types."""
    what = "needs more memory than there is" if isinstance(error, MemoryError) else "has a value that is too large"
    return OpError(f"it {what}{f' ({error})' if str(error) else ''}")


def check_as_inferred(fact: Fact, before: Fact) -> None:
    """Raise OpError where a result does not have the shape that was inferred before the inputs were known.

    Squeeze-1 assumes that an axis of unknown size has size 1.
    """
    if contradict(fact.shape, before.shape):
        raise OpError(
            f"the result has shape {shape_text(fact.shape)}, "
            f"{shape_text(before.shape)} was inferred before its inputs were known"
        )


def node_error(node: Node, inputs: Sequence[Any], error: IrexecError) -> NodeError:
    """An error of a kernel with its location and its inputs."""
    line = "" if node.line is None else f", line {node.line}"
    given = ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else str(x) for x in inputs)
    location = f"layer {node.id} {node.name!r} ({node.type} of {node.version or 'no version'}{line})"
    inside = f"; inputs {given}" if inputs else ""
    return NodeError(f"{location}: {error}{inside}", node=node.name, reason=str(error))
