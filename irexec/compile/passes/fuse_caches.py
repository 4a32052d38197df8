"""Fuse attention with the variables that its keys and values are appended to, as the cache of a decoder has them:

    ReadValue -> [Gather along the batch] -> Concat with new rows -> Assign
                                                    -> [heads repeated] -> ScaledDotProductAttention

become one operation, ``CachedAttention``, which no IR has. Its kernel appends in place and attends to more rows in each
run; it takes part in a segment, although its sizes change from run to run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.registry import offers
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.rewriting import Rewriting, created
from irexec.compile.select import task_of
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError
from irexec.ir.dims import low
from irexec.ir.facts import Fact
from irexec.schema.attributes import Variables
from irexec.schema.opdef import AnyTensor, FloatTensor, IntegerTensor, OpDef
from irexec.schema.registry import resolve

_SAMPLED = (1, 2, 3)
"""Lengths of a cache before a run for which the repetition of heads is computed, to see what it does."""


def _cached_attention(
    query: FloatTensor,
    key: FloatTensor,
    value: FloatTensor,
    mask: AnyTensor,
    scale: FloatTensor,
    beams: IntegerTensor,
    first_key: FloatTensor,
    first_value: FloatTensor,
    *,
    causal: bool,
    key_variable: str,
    value_variable: str,
    variables: Variables,
) -> np.ndarray:
    """ScaledDotProductAttention of the query (B, heads, L, E) with the keys (B, key heads, S, E) and values of two
    variables, each after its entries were picked by ``beams`` along axis 0 and ``key`` or ``value`` was appended along
    axis 2. Variables that are not assigned yet are ``first_key`` and ``first_value``.

    Neighbouring heads of the query share a head of the keys.
    """
    gather, axis, whole = resolve("Gather", "opset8"), np.zeros((), np.int64), []
    for name, first, new in ((key_variable, first_key, key), (value_variable, first_value, value)):
        before = gather.kernel(variables.get(name, first), beams, axis)
        variables[name] = np.concatenate([before, new], 2)
        whole.append(np.repeat(variables[name], query.shape[1] // key.shape[1], 1))
    attention = resolve("ScaledDotProductAttention", "opset13")
    result: np.ndarray = attention.kernel(query, *whole, mask, scale, causal=causal)
    return result


CACHED_ATTENTION = OpDef(
    "CachedAttention", "irexec", _cached_attention, deterministic=False, stateful=True, tolerance=1e-5,
    late=(3, 5, 6, 7),
)  # fmt: skip
"""The definition, which is in no registry."""


@CACHED_ATTENTION.shape_rule
def _facts(
    query: Fact,
    key: Fact,
    value: Fact,
    mask: Fact,
    scale: Fact,
    beams: Fact,
    first_key: Fact,
    first_value: Fact,
) -> Fact:
    return Fact(query.element, (*query.static_shape[:3], value.static_shape[3]))


def fuse_caches(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by the operation itself, where there is a kernel for it."""
    if graph.is_body or not rewriting.options.native:
        return
    assigned = Counter(one.attributes["variable_id"] for one in graph if one.type == "Assign")
    if not assigned or any(operation.bodies for operation in graph):
        return
    for operation in graph.order():
        if operation.type == "ScaledDotProductAttention":
            reason = _fuse(graph, rewriting, operation, assigned)
            if reason is None:
                rewriting.applied()
            else:
                rewriting.refused(operation, reason)


@dataclass(frozen=True, eq=False)
class _Cache:
    """A variable that rows are appended to.

    Attributes:
        read, concat, assign: the operations.
        new: the rows that are appended.
        beams: the batch entries that are kept, None for all.
    """

    read: Operation
    concat: Operation
    assign: Operation
    new: CompileValue
    beams: CompileValue | None

    @property
    def variable(self) -> str:
        name: str = self.read.attributes["variable_id"]
        return name


def _fuse(graph: CompileGraph, rewriting: Rewriting, attention: Operation, assigned: Counter[str]) -> str | None:
    """Replace one attention. Returns the reason why not."""
    caches = [_cache_of(graph, attention.inputs[i]) for i in (1, 2)]
    if caches[0] is None or caches[1] is None:
        return "its keys and values are not appended to variables"
    key, value = caches[0], caches[1]
    if key.beams is not value.beams:
        return "keys and values are reordered differently"
    if key.variable == value.variable or any(assigned[cache.variable] != 1 for cache in (key, value)):
        return "a variable is assigned more than once"
    reason = _obstacle(graph, attention, key, value)
    if reason is not None:
        return reason
    made = _emit(graph, rewriting, attention, key, value)
    if not offers(task_of(made, rewriting.options)):
        graph.remove(made)
        return "no kernel computes it for these shapes"
    graph.replace_all_uses_with(attention.output, made.output)
    for operation in (attention, key.assign, value.assign):
        graph.remove(operation)
    graph.remove_unused()
    for cache in (key, value):
        if not any(map(graph.is_used, cache.read.outputs)):
            graph.remove(cache.read)
    return None


def _cache_of(graph: CompileGraph, value: CompileValue) -> _Cache | None:
    """The cache that a value comes from: its data passes through first inputs."""
    while value.producer is not None:
        found = _appending(graph, value.producer)
        if found is not None:
            return found
        if not value.producer.is_pure or not value.producer.inputs:
            return None
        value = value.producer.inputs[0]
    return None


def _appending(graph: CompileGraph, concat: Operation) -> _Cache | None:
    """The cache of a Concat of a variable and new rows along axis 2."""
    if concat.type != "Concat" or len(concat.inputs) != 2 or concat.attributes["axis"] not in (2, -2):
        return None
    before, new = concat.inputs
    beams = None
    if before.producer is not None and before.producer.type == "Gather":
        picked = before.producer
        before, beams, axis = picked.inputs
        if axis.known is None or axis.known.item() != 0 or picked.attributes.get("batch_dims") or beams.fact.rank != 1:
            return None
    if before.producer is None or before.producer.type != "ReadValue":
        return None
    name = before.producer.attributes["variable_id"]
    assigns = [one for one in concat.output.readers if one.type == "Assign" and one.attributes["variable_id"] == name]
    if len(assigns) != 1 or any(map(graph.is_used, assigns[0].outputs)):
        return None
    return _Cache(before.producer, concat, assigns[0], new, beams)


def _obstacle(graph: CompileGraph, attention: Operation, key: _Cache, value: _Cache) -> str | None:
    """Why the operations do not compute cached attention; None if they do."""
    query = attention.inputs[0].fact
    facts = [query, *(cache.new.fact for cache in (key, value))]
    if not all(fact.is_static and fact.element is F32 and fact.rank == 4 for fact in facts):
        return "the sizes of query and new rows are not known, or not f32 of rank 4"
    shapes = [fact.static_shape for fact in facts]
    if shapes[1][:3] != shapes[2][:3] or shapes[0][0] != shapes[1][0] or shapes[0][2] != shapes[1][2]:
        return "query, keys and values have different batches or numbers of rows"
    if not attention.output.fact.is_static or attention.output.fact.static_shape[:3] != shapes[0][:3]:
        return "its result does not have the rows of the query"
    if shapes[1][1] == 0 or shapes[0][1] % shapes[1][1] or len(attention.inputs) > 5:
        return "its heads cannot be shared, or it has a sink"
    for index, cache in ((1, key), (2, value)):
        if cache.read.inputs and cache.read.inputs[0].fact.element is not F32:
            return "a variable begins as another type"
        private = {attention, cache.assign}
        if not all(_stays_inside(graph, reader, private) for reader in cache.concat.output.readers):
            return "a cache is read elsewhere"
        if graph.is_target(cache.concat.output):
            return "a cache is asked for"
        times = shapes[0][1] // shapes[1][1]
        if not _repeats(cache, (key, value), attention.inputs[index], times):
            return "heads are not repeated next to each other"
    return None


def _stays_inside(graph: CompileGraph, operation: Operation, private: set[Operation]) -> bool:
    """Whether all that reads the outputs of an operation, directly or through others, is private."""
    if operation in private:
        return True
    if not operation.is_pure or any(map(graph.is_target, operation.outputs)):
        return False
    return all(_stays_inside(graph, reader, private) for value in operation.outputs for reader in value.readers)


def _repeats(cache: _Cache, caches: Sequence[_Cache], value: CompileValue, times: int) -> bool:
    """Whether a value is the cache with each head repeated, as its operations compute it for small caches.

    They may read the sizes of both caches of an attention, which have the same length.
    """
    if value is cache.concat.output:
        return times == 1
    for length in _SAMPLED:
        known: dict[CompileValue, np.ndarray] = {}
        for one in caches:
            batch, heads, rows, width = one.new.fact.static_shape
            shape = batch, heads, length + rows, width
            sample = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
            before = sample[:, :, :length]
            known |= {one.concat.output: sample, one.read.output: before, one.concat.inputs[0]: before}
        sample = known[cache.concat.output]
        try:
            found = _computed(value, known)
        except OpError:
            return False
        if found is None or not np.array_equal(found, np.repeat(sample, times, 1)):
            return False
    return True


def _computed(value: CompileValue, known: dict[CompileValue, np.ndarray]) -> np.ndarray | None:
    """A value that follows from constants and the known values alone; None if it does not."""
    if value in known:
        return known[value]
    operation = value.producer
    if operation is None:
        return value.known
    if not operation.is_pure or operation.definition is None or operation.chain is not None:
        return None
    inputs = [_computed(one, known) for one in operation.inputs]
    if any(one is None for one in inputs):
        return None
    results = as_tuple(operation.definition(*inputs, **operation.attributes))
    known.update(zip(operation.outputs, results, strict=False))
    return known.get(value)


def _emit(graph: CompileGraph, rewriting: Rewriting, attention: Operation, key: _Cache, value: _Cache) -> Operation:
    batch, _, _, width = attention.inputs[0].fact.static_shape
    literal, given = rewriting.literal, attention.inputs[3:]
    mask = given[0] if given else literal(np.zeros((), np.float32), F32)
    scale = given[1] if len(given) > 1 else literal(np.array(width**-0.5, np.float32), F32)
    beams = literal(np.arange(batch), I64) if key.beams is None else key.beams
    first = [_first_value(rewriting, cache.read) for cache in (key, value)]
    inputs = [attention.inputs[0], key.new, value.new, mask, scale, beams, *first]
    attributes = {
        "causal": attention.attributes["causal"], "key_variable": key.variable, "value_variable": value.variable
    }  # fmt: skip
    origins = [key.read, value.read, key.concat, value.concat, key.assign, value.assign, attention]

    return created(graph, CACHED_ATTENTION, inputs, attributes, origins)


def _first_value(rewriting: Rewriting, read: Operation) -> CompileValue:
    """The value of a variable before it is assigned."""
    if read.inputs:
        return read.inputs[0]
    return rewriting.literal(np.zeros([low(size) for size in read.attributes["variable_shape"] or ()], np.float32), F32)
