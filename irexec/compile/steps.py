"""What a plan consists of: steps on numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.dtypes.elements import Element
from irexec.ir.graph import Body, Node


@dataclass(frozen=True, eq=False)
class Step:
    """One operation, ready to be called.

    Attributes:
        node: where it comes from, for messages and profiles.
        call: arrays in, array or tuple of arrays out.
        inputs, outputs: slots; an output that nobody reads has slot -1.
        frees: slots whose last use this is.
        elements: for each output the element type it is to be rounded to; None where NumPy has it.
        check: the facts rule to ask at run time, where shapes were not known before.
        types: the element types of the inputs, for ``check``.
        bodies: plans of the node's bodies, by the parameter that takes them.
        state: the parameter that takes the session's variables.
    """

    node: Node
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    frees: tuple[int, ...]
    elements: tuple[Element | None, ...] | None
    check: Callable[..., Any] | None
    types: tuple[Element | None, ...]
    bodies: Mapping[str, BodyPlan]
    state: str | None


@dataclass(frozen=True, eq=False)
class BodyPlan:
    """A body of a node and the plan that runs it."""

    node: Node
    body: Body
    plan: Plan


@dataclass(frozen=True, eq=False)
class Plan:
    """What a session runs.

    Attributes:
        steps: in order.
        slots: how many there are.
        constants: what stands in a slot from the start.
        parameters: the slot of each Parameter of the graph; -1 where nothing reads it.
        targets: the slot of each value asked for.
        copied: for each target whether it may be memory of an input, a constant or another target.
    """

    steps: tuple[Step, ...]
    slots: int
    constants: tuple[tuple[int, np.ndarray], ...]
    parameters: tuple[int, ...]
    targets: tuple[int, ...]
    copied: tuple[bool, ...]
