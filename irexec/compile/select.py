"""From an operation of the compile graph to the kernel that computes it."""

from __future__ import annotations

from irexec.backend.kernel import Task
from irexec.compile.graph import Operation, Value
from irexec.ir.facts import Fact


def is_static(operation: Operation) -> bool:
    """Whether types and shapes of all inputs and outputs are known."""
    return all(value.fact.is_static and value.fact.element is not None for value in (*operation.inputs, *operation.outputs))


def task_of(operation: Operation, threads: int = 1, unpack: bool = True, wanted: tuple[bool, ...] | None = None) -> Task:
    """The task of an operation that has a definition, and whose shapes are known."""
    if operation.definition is None:
        raise AssertionError("a chain is no task of an operation")
    own, operands = operation.inputs[: operation.own], operation.inputs[operation.own :]
    return Task(
        operation.definition,
        operation.attributes,
        tuple(map(_fact, own)),
        tuple(value.constant for value in own),
        tuple(value.fact for value in operation.outputs),
        wanted or (True,) * len(operation.outputs),
        operation.chain,
        tuple(map(_fact, operands)),
        tuple(value.constant for value in operands),
        tuple(value.order for value in operation.inputs),
        tuple(value.order for value in operation.outputs),
        threads,
        unpack,
    )


def _fact(value: Value) -> Fact:
    return value.fact
