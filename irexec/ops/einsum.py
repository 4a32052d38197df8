"""Einsum: sums of products of tensors by an equation of labels."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, PartialShape, Shape, Size, meet, shape_text
from irexec.ir.facts import Fact
from irexec.messages import counted
from irexec.schema.broadcasting import broadcast
from irexec.schema.inputs import NumericTensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements

ELLIPSIS = "..."
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Equation:
    """The labels of each operand and of the result; an ellipsis is a label of its own."""

    operands: tuple[Labels, ...]
    result: Labels


def parse_equation(text: str) -> Equation:
    """Read ``"ab...,bc->...ac"``; blanks are ignored.

    Without an arrow the result has the ellipsis, then the labels that occur once, sorted, capitals first.

    Raises:
        OpError: a character is not a letter, a subscript has two ellipses, or a label of the result is not in any
            operand.
    """
    before, arrow, after = text.replace(" ", "").partition("->")
    operands = tuple(_labels(subscript, text) for subscript in before.split(","))
    counts = Counter(label for labels in operands for label in labels)
    if arrow:
        result = _labels(after, text)
        check(len(set(result)) == len(result), f"the result of equation {text!r} has a label twice")
        for label in result:
            check(label in counts, f"label {label!r} of the result of equation {text!r} is not in any operand")
    else:
        dots = (ELLIPSIS,) if ELLIPSIS in counts else ()
        result = (*dots, *sorted(label for label, count in counts.items() if count == 1 and label != ELLIPSIS))
    return Equation(operands, result)


def _labels(subscript: str, text: str) -> Labels:
    before, dots, after = subscript.partition(ELLIPSIS)
    letters = before + after
    check(
        all(letter in string.ascii_letters for letter in letters),
        f"equation {text!r} is not made of letters, commas and an arrow",
    )
    return (*before, *([ELLIPSIS] if dots else []), *after)


@op("Einsum", since=7, widen=True, tolerance=1e-5)
def einsum_7(*inputs: NumericTensor, equation: str) -> np.ndarray:
    """The sum of products over the labels that are not in the result.

    A label that occurs twice in an operand takes the diagonal; the axes that ellipses stand for are broadcast, and so
    are equal labels of sizes 1 and n. Source: Einsum-7.
    """
    parsed = parse_equation(equation)
    covered = [
        data.ndim - len(labels) + 1 if ELLIPSIS in labels else 0
        for data, labels in zip(inputs, parsed.operands, strict=True)
    ]
    axis_of = _label_axes(parsed, max(covered))
    arguments: list[Any] = []
    for data, labels, rank in zip(inputs, parsed.operands, covered, strict=True):
        arguments += [data, _axes(labels, rank, axis_of, max(covered))]
    axes = _axes(parsed.result, max(covered), axis_of, max(covered))
    result = np.einsum(*arguments, axes, optimize=len(inputs) > 1)
    if any(np.may_share_memory(result, data) for data in inputs):
        result = result.copy()
    return np.asarray(result, inputs[0].dtype)


def _label_axes(parsed: Equation, covered: int) -> dict[str, int]:
    """An axis number for each label, after those of the axes that ellipses stand for."""
    letters = dict.fromkeys(label for labels in parsed.operands for label in labels if label != ELLIPSIS)
    return {letter: covered + i for i, letter in enumerate(letters)}


def _axes(labels: Labels, rank: int, axis_of: dict[str, int], covered: int) -> list[int]:
    """The axis numbers of the labels; those that an ellipsis stands for are aligned at their last one."""
    axes: list[int] = []
    for label in labels:
        axes += range(covered - rank, covered) if label == ELLIPSIS else [axis_of[label]]
    return axes


@einsum_7.shape_rule
def _einsum_7_facts(*inputs: Fact, equation: str) -> Fact:
    kind = unify_elements(*inputs)
    parsed = parse_equation(equation)
    check(
        len(parsed.operands) == len(inputs),
        f"equation {equation!r} has {counted(len(parsed.operands), 'operand')}, the layer has "
        f"{counted(len(inputs), 'input')}",
    )
    sizes: dict[str, Size] = {}
    covered_shapes: list[PartialShape] = []
    for fact, labels in zip(inputs, parsed.operands, strict=True):
        if fact.shape is None:
            covered_shapes += [None] if ELLIPSIS in labels else []
            _note_sizes(sizes, {label: ANY for label in labels if label != ELLIPSIS}, equation)
            continue
        _check_rank(labels, fact.shape, equation)
        covered = len(fact.shape) - len(labels) + 1
        before = labels.index(ELLIPSIS) if ELLIPSIS in labels else len(labels)
        if ELLIPSIS in labels:
            covered_shapes.append(fact.shape[before : before + covered])
        letters = [
            *zip(labels[:before], fact.shape, strict=False),
            *zip(labels[:before:-1], fact.shape[::-1], strict=False),
        ]
        _note_sizes(sizes, _diagonals(letters, equation), equation)
    return Fact(kind, _result_shape(parsed.result, sizes, broadcast(covered_shapes) if covered_shapes else ()))


def _check_rank(labels: Labels, shape: Shape, equation: str) -> None:
    letters = len(labels) - (ELLIPSIS in labels)
    fits = len(shape) >= letters if ELLIPSIS in labels else len(shape) == letters
    check(
        fits,
        f"an input of shape {shape_text(shape)} does not have the {letters} axes of {''.join(labels)!r} in equation "
        f"{equation!r}",
    )


def _diagonals(letters: Sequence[tuple[str, Size]], equation: str) -> dict[str, Size]:
    """The sizes of one operand's labels; those of a label that occurs twice must be equal."""
    sizes: dict[str, Size] = {}
    for label, size in letters:
        try:
            sizes[label] = meet(sizes.get(label, size), size)
        except OpError:
            raise OpError(
                f"label {label!r} of equation {equation!r} has sizes {sizes[label]} and {size} in one input"
            ) from None
    return sizes


def _note_sizes(sizes: dict[str, Size], letters: dict[str, Size], equation: str) -> None:
    for label, size in letters.items():
        try:
            merged = broadcast([(sizes.get(label, size),), (size,)])
        except OpError:
            raise OpError(f"label {label!r} of equation {equation!r} has sizes {sizes[label]} and {size}") from None
        sizes[label] = size if merged is None else merged[0]


def _result_shape(labels: Labels, sizes: dict[str, Size], covered: PartialShape) -> PartialShape:
    if ELLIPSIS in labels and covered is None:
        return None
    shape: list[Size] = []
    for label in labels:
        shape += (covered or ()) if label == ELLIPSIS else [sizes.get(label, ANY)]
    return tuple(shape)
