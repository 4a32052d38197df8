"""A model prepared for running, shared by its sessions. It has no state of variables."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Hashable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from irexec.analysis import version_10
from irexec.analysis.evaluate import Precision, check_precision
from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.f32_arithmetic import compute_in_f32
from irexec.analysis.model import Model, Port, check_model, find_port, input_ports, output_ports
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.backend.constants import Holding
from irexec.backend.kernel import KernelOptions, NanHasNoLevelError
from irexec.backend.system import return_free_memory
from irexec.backend.threads import one_blas_thread, thread_count
from irexec.compile.errors import check_as_inferred, node_error
from irexec.compile.memory_limit import MemoryLimit
from irexec.compile.passes.quantise_activations import check_group
from irexec.compile.plan import Compilation, plan
from irexec.compile.steps import Plan
from irexec.dtypes.elements import I4, U4, Element
from irexec.errors import InputError, NodeError, OpError
from irexec.ir import graph as ir
from irexec.ir.facts import Fact
from irexec.ir.graph import ModelGraph, Value
from irexec.ir.order import find_value
from irexec.ir.process import LastUsed
from irexec.ir.writable import refuse_damage
from irexec.native.library import description, library
from irexec.reference.limits import limited
from irexec.runtime.arenas import Arenas
from irexec.runtime.variables import variables_of

if TYPE_CHECKING:
    from irexec.compile.plan_report import PlanReport
    from irexec.runtime.inputs import Shapes, VaryingSizes


WeightsMode = Literal["auto", "packed", "unpacked"]

SHARE = 4
"""Weights unpacked to bytes may use one part in SHARE of the available memory."""
PLANS, STEPS = 64, 16_384
"""Plans that are stored, and steps of all of them: a step takes some kilobytes."""


def holding_of(mode: WeightsMode, model: ModelGraph, memory: MemoryLimit) -> Holding:
    """Form of the weights for a mode: "auto" spends one byte on each weight if the memory allows it.

    Args:
        memory: the memory that is left.

    Raises:
        InputError: ``mode`` is not a WeightsMode.
    """
    if mode not in get_args(WeightsMode):
        given = "a path or bytes" if not isinstance(mode, str) else repr(mode)
        raise InputError(
            f"weights is {given}, expected 'auto', 'packed' or 'unpacked'; the .bin is the argument before it, bin"
        )
    if mode == "auto":
        return "bytes" if byte_size(model) * SHARE <= memory.left(recently=True) else "packed"
    return mode


def byte_size(model: ModelGraph) -> int:
    """Bytes of the 4-bit constants with one byte for each weight; 8-bit constants are used as stored."""
    constants = (node.constant for node in model.walk() if node.constant is not None)
    return sum(constant.count for constant in constants if constant.element in (I4, U4))


class PlanCache(LastUsed[Hashable, Plan]):
    """Plans by key. A plan that was dropped is made again: nothing but its key decides on it.

    Args:
        size: maximum number of stored plans.
        steps: maximum number of their steps, unless it is one plan.
    """

    def __init__(self, size: int = PLANS, steps: int = STEPS) -> None:
        super().__init__(size)
        self._most_steps = steps

    def _is_over(self) -> bool:
        steps = sum(len(plan.steps) for plan in self._values.values())
        return len(self._values) > 1 and (super()._is_over() or steps > self._most_steps)


Targets = tuple[Value, ...] | None
InputShapes = tuple[tuple[int, ...], ...]


class Program:
    """A copy of a model, the facts of its values, and the plans made for its inputs.

    Args:
        model, threads, optimize, weights, precision, tolerant, max_memory, native, dynamic_quantization: as for
            CompiledModel.

    Attributes:
        model: the copy. Where f16 is computed in f32 it says so.
        inputs, outputs: its Parameters and Results, in order.
        threads, optimize, precision, tolerant: as given, ``threads`` as a number.
        inserted: the Converts that the copy has for arithmetic in f32.
        runs_as_read: whether the copy has the element types of the model; that of version 10 may not either.
        inference: the fact of every value before a run.
        variables: the declared ones, by variable_id.
        arenas: the memory that runs take.
        memory: the limit of memory.
        kernels: the available kernels, in words.
        compilation: how plans are made, and the packed constants that they share.

    Raises:
        NodeError, UnsupportedError, ModelError: the model cannot be run.
    """

    def __init__(
        self,
        model: ir.ModelGraph,
        *,
        threads: int | None,
        optimize: bool | Collection[str],
        weights: WeightsMode,
        precision: Precision,
        tolerant: bool,
        max_memory: int | None,
        native: bool,
        dynamic_quantization: int | None,
    ) -> None:
        check_model(model)
        group = check_group(dynamic_quantization)
        check_precision(precision)
        refuse_execution_graph(model)
        # A layer without an edge may be one that cannot run.
        refuse_damage(model, edges=not tolerant)
        self.model, self._copies = _snapshot(model)
        self.threads, self.optimize, self.precision, self.tolerant = (
            thread_count(threads),
            optimize,
            precision,
            tolerant,
        )
        self.memory, self.kernels = MemoryLimit(max_memory), description(native=native)
        options = KernelOptions(self.threads, holding_of(weights, self.model, self.memory), native)
        if precision == "bf16":
            options = replace(options, bf16=True)
            self._require_pairs(native=bool(optimize) and native)
        self.arenas = Arenas(self.memory, _depth(self.model))
        self.inference = infer_shapes(self.model, tolerant=tolerant)
        self.inserted: set[ir.Node] = set()
        self.runs_as_read = self.model.version == getattr(model, "version", self.model.version)
        declared = self._compute_in_f32() if precision != "as-written" else {}
        self.compilation = Compilation(
            self.memory, optimize=optimize, options=options, dynamic_quantization=group, declared=declared
        )
        self.inputs: list[Port] = input_ports(self.model, self.inference.facts)
        given = {value: Fact(element, self.inference[value].shape) for value, element in declared.items()}
        self.outputs: list[Port] = output_ports(self.model, self.inference.facts | given)
        self._is_static = all(_fact(self.inference, port).is_static for port in self.inputs)
        self._plans = PlanCache()
        self.variables = variables_of(self.model, self.inference)
        if self._is_static and not tolerant:
            self.plan((), None)

    def _require_pairs(self, *, native: bool) -> None:
        """Raise InputError unless products of bf16 are faster than those of f32 here."""
        found = library() if native else None
        if found is None or not found.has_pairs:
            kernels = self.kernels if native else "reference kernels or NumPy alone"
            raise InputError(
                f"precision is 'bf16', for which C kernels need a processor with AVX-512 BF16; here are {kernels}"
            )

    def _compute_in_f32(self) -> dict[Value, Element]:
        """Compute f16 and bf16 in f32; the element types in which values are given that are computed in another one."""
        written = self.inference
        inserted = compute_in_f32(self.model, written.facts)
        if inserted is None:
            return {}
        self.inserted = inserted
        self.inference = infer_shapes(self.model, tolerant=self.tolerant)
        self._copies |= {value: value for node in self.model.nodes for value in node.outputs}
        self.runs_as_read = False
        values = [value for node in self.model.nodes for value in node.outputs if value in written.facts]
        elements = {value: written.facts[value].element for value in values}
        return {value: e for value, e in elements.items() if e is not None and e is not self.inference[value].element}

    def output(self, key: str | int) -> Port:
        """The output of a name or position; raises InputError if there is none."""
        return find_port(self.outputs, key, "output")

    def find(self, key: str | int) -> Value:
        """The value of the copy that is asked for by a name or id, or by the position of a Result.

        Raises:
            InputError: there is none.
        """
        if isinstance(key, int):
            source = self.output(key).node.inputs[0]
            if source is None:
                raise InputError(f"output {key} has no source")
            return source
        if not isinstance(key, str):
            raise InputError(f"a tensor is asked for by {key!r}, expected its name or the position of a result")
        return find_value(self.model, key)

    def own(self, value: Value) -> Value:
        """The value of the copy for one of the model that was compiled, or of the copy itself.

        Raises:
            InputError: it is of neither, such as one inside a body.
        """
        own = self._copies.get(value)
        if own is None:
            raise InputError(
                f"{value.node.name!r} is not a layer of the graph itself, only tensors of that can be given"
            )
        return own

    def report(self, shapes: InputShapes) -> PlanReport:
        """The plan for inputs of these shapes."""
        from irexec.compile.plan_report import describe_plan

        return describe_plan(self.plan(shapes, None), self.model, self.compilation.store, self.kernels)

    def plan(self, shapes: InputShapes, targets: Targets, integers: bool = True) -> Plan:
        """The plan for inputs of these shapes; () stands for those of the model.

        It depends on nothing but the shapes, and has therefore the same bits in every process and after any run.

        Args:
            integers: whether quantised products may be computed in integers.
        """
        planned: Shapes = self._varying_sizes.planned(shapes) if shapes and not self._is_static else ()
        if integers:
            # A constant with a NaN has no levels.
            with suppress(NanHasNoLevelError):
                return self._plans.get((planned, targets), lambda: self._make(planned, targets))
        return self._plans.get((planned, targets, "floats"), lambda: self._make(planned, targets, integers=False))

    @functools.cached_property
    def _varying_sizes(self) -> VaryingSizes:
        from irexec.runtime.inputs import VaryingSizes, appended_lengths  # not for models of known sizes

        declared = [_fact(self.inference, port).shape for port in self.inputs]
        appended = appended_lengths(self.model, declared)
        return VaryingSizes(declared, appended, self._knows_most_products, self._are_as_good)

    def _knows_most_products(self, partial: Shapes) -> bool:
        from irexec.runtime.inputs import knows_most_products

        try:
            return knows_most_products(self.model, self.infer(partial))
        except NodeError:
            # Sizes that stand for others may be ones that the model refuses.
            return False

    def _are_as_good(self, shapes: Shapes, partial: Shapes) -> bool:
        """Whether plans for inputs of partly known shapes are as good as those for known shapes."""
        from irexec.runtime.inputs import keeps_products

        try:
            return keeps_products(self.model, self.infer(shapes), self.infer(partial))
        except NodeError:
            return False

    def _make(self, shapes: Shapes, targets: Targets, integers: bool = True) -> Plan:
        inference, compilation = self.infer(shapes), self.compilation
        if not integers:
            compilation = replace(compilation, options=replace(compilation.options, integers=False))
        store = self.compilation.store
        packed = store.packed
        with one_blas_thread(), limited(self.memory):
            made = plan(self.model, inference, targets, compilation)
        if store.packed != packed:
            return_free_memory()
        return made

    def infer(self, shapes: Shapes) -> Inference:
        """The facts of every value for inputs of these shapes; () stands for those of the model."""
        if not shapes or self._is_static:
            return self.inference
        facts = [
            Fact(_fact(self.inference, port).element, shape) for port, shape in zip(self.inputs, shapes, strict=True)
        ]
        found = infer_shapes(self.model, dict(zip(self.model.parameters, facts, strict=True)), tolerant=self.tolerant)
        if not self.tolerant:
            # Raise NodeError where a value does not have the shape that was inferred for inputs of any shape.
            for node in self.model.nodes:
                for value in node.outputs:
                    try:
                        check_as_inferred(found[value], self.inference[value])
                    except OpError as error:
                        raise node_error(node, [], error) from error
        return found


def _snapshot(model: ir.ModelGraph) -> tuple[Model, dict[Value, Value]]:
    """A copy that changes to the model do not reach, and its value for each value of the model and of the copy.

    The bytes of constants are shared, since they are read-only, and attributes that are parsed already are not parsed
    again.
    """
    copied = copy.copy(Model.of(model))
    for node, fresh in zip(model.walk(), copied.walk(), strict=True):
        fresh.typed = node.typed
        fresh.constant = None if node.constant is None else replace(node.constant)
    values: dict[Value, Value] = {}
    for node, fresh in zip(model.nodes, copied.nodes, strict=True):
        values.update(zip(node.outputs, fresh.outputs, strict=True))
    if model.version == version_10.VERSION:
        version_10.adapt(copied)
    values |= {value: value for node in copied.nodes for value in node.outputs}
    return copied, values


def _depth(graph: ir.Graph) -> int:
    """One more than the number of bodies that lie inside one another."""
    return 1 + max((_depth(body.graph) for node in graph.nodes for body in node.bodies.values()), default=0)


def _fact(inference: Inference, port: Port) -> Fact:
    return inference.facts[port.node.outputs[0]]
