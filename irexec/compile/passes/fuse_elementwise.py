"""Fuse element-wise operations into chains, and chains into the operation whose output they read.

A chain may be any part of the graph, not only a line: what matters is that a single value leaves it. So Swish written
as x * Sigmoid(x) joins the convolution that gives x, although x is read twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from irexec.backend.chain import Chain, Instruction
from irexec.backend.registry import BlockOperation, find_block_operation, is_element_wise
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.levels import PRODUCTS
from irexec.compile.rewriting import Rewriting
from irexec.compile.select import is_native, is_static, takes_chain, task_of

LONGEST = 48
"""Operations of one chain, at most."""


def fuse_elementwise(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Chains after products, poolings, normalizations and reductions first, then those that stand alone."""
    fusion = _Fusion(graph, rewriting)
    for operation in reversed(graph.order()):
        if operation not in fusion.blocks and operation in graph and takes_chain(operation, rewriting.options):
            fusion.extend(operation)
    for operation in graph.order():
        if operation in graph and operation in fusion.blocks:
            fusion.extend(operation)


def _is_element_wise(operation: Operation) -> bool:
    return operation.definition is None or is_element_wise(operation.definition)


@dataclass
class _Growth:
    """Element-wise operations after a value, added one by one.

    Attributes:
        members: in order.
        open: values that are read, or asked for, outside: for each how often.
    """

    members: list[Operation] = field(default_factory=list)
    open: dict[CompileValue, int] = field(default_factory=dict)


class _Fusion:
    def __init__(self, graph: CompileGraph, rewriting: Rewriting) -> None:
        self.graph, self.rewriting = graph, rewriting
        self.number = {operation: i for i, operation in enumerate(graph.order())}
        self.targets = set(graph.targets)
        self.blocks: dict[Operation, BlockOperation] = {}
        for operation in graph:
            block = _block(operation)
            if block is not None:
                self.blocks[operation] = block

    def extend(self, root: Operation) -> None:
        """Fuse as many operations after ``root`` as leave a single value to the outside."""
        members = self._members(root)
        if members or root in self.blocks:
            self._rewrite(root, members)

    def _members(self, root: Operation) -> list[Operation]:
        value = root.output
        if any(self.graph.is_used(other) for other in root.outputs[1:]):
            self.rewriting.refused(root, "its other outputs are read as well")
            return []
        growth, best = _Growth(open={value: self._uses(value)}), 0
        if value in self.targets:
            # It stays open, whatever follows: where a run is observed, so does every value.
            for reader in value.readers:
                if _is_element_wise(reader):
                    self.rewriting.refused(reader, f"{root.node.name!r} has a result that is read elsewhere too")
            return []
        waiting = [self.number[reader] for reader in value.readers]
        heapq.heapify(waiting)
        by_number = {self.number[reader]: reader for reader in value.readers}
        seen = set(waiting)
        while waiting and len(growth.members) < LONGEST:
            operation = by_number[heapq.heappop(waiting)]
            reason = self._obstacle(operation, value, growth)
            if reason is not None:
                if _is_element_wise(operation):
                    self.rewriting.refused(operation, reason)
                continue
            self._add(growth, operation)
            if len(growth.open) == 1 and operation.output in growth.open:
                best = len(growth.members)
            if operation.output in self.targets:
                break
            for reader in operation.output.readers:
                if self.number[reader] not in seen:
                    seen.add(self.number[reader])
                    by_number[self.number[reader]] = reader
                    heapq.heappush(waiting, self.number[reader])
        for left in growth.members[best:]:
            self.rewriting.refused(left, f"{root.node.name!r} has a result that is read elsewhere too")
        return growth.members[:best]

    def _uses(self, value: CompileValue) -> int:
        return len(value.uses) + (value in self.targets)

    def _add(self, growth: _Growth, operation: Operation) -> None:
        for value in operation.inputs:
            if value in growth.open:
                growth.open[value] -= 1
                if not growth.open[value]:
                    del growth.open[value]
        growth.members.append(operation)
        growth.open[operation.output] = self._uses(operation.output)

    def _obstacle(self, operation: Operation, value: CompileValue, growth: _Growth) -> str | None:
        """Why an operation cannot join a chain after ``value``; None if it can."""
        if operation not in self.blocks:
            is_chain = operation.definition is None
            return "it is in another chain" if is_chain else "it cannot run on blocks for these types and shapes"
        if operation.output.fact.shape != value.fact.shape:
            return "it broadcasts to another shape"
        if any(other in growth.open and other.fact.element is not value.fact.element for other in operation.inputs):
            return "it reads levels"
        if value.producer is not None and value.producer.type == "IntegerConvolutionBackpropData":
            inside = {value, *(member.output for member in growth.members)}
            if any(other.constant is None for other in operation.inputs if other not in inside):
                return "it reads another tensor, of which each phase needs a part"
        if operation.output.fact.element is not value.fact.element and not _ends_in_levels(operation, value):
            return "its result has another element type"
        return None

    def _rewrite(self, root: Operation, members: list[Operation]) -> None:
        """Put the members, and a root that is element-wise itself, into one operation."""
        alone = root in self.blocks
        chained = [root, *members] if alone else members
        own = [] if alone else root.inputs
        operands, chain = self._chain(chained, None if alone else root.output)
        last = chained[-1]
        origins = tuple(dict.fromkeys(node for operation in (root, *members) for node in operation.origins))
        output = CompileValue(last.output.fact, name=last.output.name)
        inputs = [*own, *operands]
        if alone:
            fused = Operation(None, {}, inputs, [output], last.node, origins, len(inputs), chain, rank=last.rank)
        else:
            outputs = [output, *(CompileValue(other.fact, name=other.name) for other in root.outputs[1:])]
            fused = Operation(
                root.definition, root.attributes, inputs, outputs, root.node, origins, len(own), chain, rank=last.rank
            )
        old = [root, *members]
        position = max(self.number[operation] for operation in old)
        if len(old) > 1:
            self.rewriting.applied(len(old) - 1)
        self.graph.insert(fused)
        self.graph.replace_all_uses_with(last.output, fused.output)
        if last.output in self.targets:
            self.targets.add(fused.output)
        for operation in reversed(old):
            self.graph.remove(operation)
            self.blocks.pop(operation, None)
        self.number[fused] = position

    def _chain(self, members: list[Operation], product: CompileValue | None) -> tuple[list[CompileValue], Chain]:
        """The operands of a chain and the chain itself; ``product`` is its input 0, or None for the first operand."""
        operands: dict[tuple[CompileValue, tuple[int, ...] | None], CompileValue] = {}
        inside = {operation.output: i for i, operation in enumerate(members)}
        for operation in members:
            for value, shape in _arguments(operation, self.blocks[operation]):
                if value not in inside and value is not product:
                    operands.setdefault((value, shape), self._shaped(value, shape))
        first = 0 if product is None else 1
        numbers = {key: first + i for i, key in enumerate(operands)}
        count = first + len(operands)

        def register(value: CompileValue, shape: tuple[int, ...] | None) -> int:
            if value is product:
                return 0
            return count + inside[value] if value in inside else numbers[value, shape]

        instructions = []
        for operation in members:
            block = self.blocks[operation]
            sources = tuple(register(*argument) for argument in _arguments(operation, block))
            costs = block.in_place, block.temporaries, block.passes
            dtype = operation.output.fact.dtype
            instructions.append(Instruction(operation.type, block.function, sources, dtype, *costs, block.formula))
        first_fact = product.fact if product is not None else next(iter(operands.values())).fact
        return list(operands.values()), Chain(count, first_fact.dtype, tuple(instructions))

    def _shaped(self, value: CompileValue, shape: tuple[int, ...] | None) -> CompileValue:
        """The operand in the shape that NumPy broadcasts rightly; a constant where that is not its own."""
        if shape is None or shape == value.fact.shape or value.fact.element is None:
            return value
        return self.rewriting.derived(
            ("shape", shape), [value], value.fact.element, shape, lambda array: array.reshape(shape)
        )


_PRODUCTS = {definition.type for definition in PRODUCTS.values()}
"""Products of integers: the attention of levels is none of them, its results are f32."""


def _ends_in_levels(operation: Operation, value: CompileValue) -> bool:
    """Whether levels may be made at the end of a chain after a value: after products of integers and MVN, or a chain
    alone."""
    producer = value.producer
    return (
        operation.type == "Quantize"
        and producer is not None
        and (_is_element_wise(producer) or producer.type in _PRODUCTS or producer.type == "MVN")
    )


def _arguments(operation: Operation, block: BlockOperation) -> Iterator[tuple[CompileValue, tuple[int, ...] | None]]:
    for i, index in enumerate(block.reads):
        yield operation.inputs[index], block.shapes[i] if block.shapes else None


def _block(operation: Operation) -> BlockOperation | None:
    """How the operation runs on blocks; None if it does not."""
    if operation.definition is None or operation.chain is not None or operation.bodies or len(operation.outputs) != 1:
        return None
    if not is_static(operation) or not is_native(operation):
        return None
    block = find_block_operation(task_of(operation))
    if block is None or not block.shapes:
        return block
    reshaped = [i for i, shape in zip(block.reads, block.shapes, strict=True) if shape is not None]
    return block if all(operation.inputs[i].constant is not None for i in reshaped) else None
