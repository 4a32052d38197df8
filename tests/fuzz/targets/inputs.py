"""Every input of every operation with types, shapes and values that are odd: as a constant, and when the model runs.

The rows of tests/cases say what each operation is given; a case changes one input of a row, sometimes two, or an attribute. The cases
0, 1, ... take each input of each operation in turn with each kind of change, so that some ten thousand cases miss none.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator
from typing import Any

from irexec import io
from irexec.analysis.model import Model
from irexec.dtypes.elements import element
from irexec.ir.dims import has_room
from irexec.testing import Case as Row
from irexec.testing import Typed, model_of
from tests.fuzz import odd
from tests.fuzz.case import Case
from tests.fuzz.findings import Observer
from tests.fuzz.model_steps import check_model
from tests.fuzz.one_operation import model_text
from tests.fuzz.shrink import smaller_arguments
from tests.support.cases import families

QUICK = 1500
_CHANGES = ("type", "type", "shape", "shape", "value", "value", "values", "rank", "attribute", "none")
_LARGEST = 400
_LARGEST_MADE = 10_000


@functools.cache
def _inputs() -> list[tuple[list[Row], int]]:
    """The rows of each operation, with the index of each of its inputs."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for table in families().values():
        for row in table:
            if (
                isinstance(row, Row)
                and sum(x.array.size for x in row.inputs) <= _LARGEST
                and row.type not in ("Result", "Parameter")
            ):
                rows.setdefault((row.type, str(row.since)), []).append(row)
    found = []
    for _, these in sorted(rows.items()):
        widest = max(len(row.inputs) for row in these)
        found += [([row for row in these if len(row.inputs) > i], i) for i in range(widest)]
    return found


@functools.lru_cache(1024)
def _outputs(row: Row) -> int:
    """How many outputs the operation has with a row's inputs."""
    model, _ = model_of(row, 0)
    return max((len(node.outputs) for node in model.nodes if node.type == row.type), default=1)


def generate(rng: random.Random, number: int) -> Case:
    """A row with one of its inputs changed."""
    inputs = _inputs()
    # Neighbours are of different operations, so that a few cases see many.
    position = number * 7919 % (len(inputs) * len(_CHANGES))
    rows, index = inputs[position % len(inputs)]
    row = rng.choice(rows)
    given = [_given(rng, x) for x in row.inputs]
    texts = dict(row.attributes)
    change = _CHANGES[position // len(inputs)]
    if change == "attribute" and texts:
        _change_attribute(rng, texts)
    else:
        _change(rng, given[index], change)
    if rng.random() < 0.15:
        _change(rng, rng.choice(given), rng.choice(_CHANGES))
    if rng.random() < 0.02:
        given.append(dict(rng.choice(given)))
    elif rng.random() < 0.02:
        given.pop()
    arguments = {
        "type": row.type, "version": row.definition.version, "attributes": texts, "inputs": given,
        "outputs": _outputs(row),
    }  # fmt: skip
    return Case("inputs", {}, {**arguments, "optimize": rng.random() < 0.7})


def _given(rng: random.Random, x: Typed) -> dict[str, Any]:
    """An input of a row: a constant, or a Parameter of which more or less is known."""
    shape = list(x.array.shape)
    known = [",".join(map(str, shape)), ",".join("?" * len(shape)), ",".join(f"0..{size + 2}" for size in shape), "..."]
    return {
        "element": x.element.name, "constant": rng.random() < 0.4, "declared": rng.choice(known[:1] * 3 + known), "shape": shape,
        "values": x.array.reshape(-1).tolist(),
    }  # fmt: skip


def _change_attribute(rng: random.Random, texts: dict[str, str]) -> None:
    """Replace or remove an attribute, or change the length of its list."""
    name = rng.choice(sorted(texts))
    parts = texts[name].split(",")
    choice = rng.random()
    if choice < 0.5:
        texts[name] = odd.word(rng)
        return
    if choice < 0.6:
        del texts[name]
        return
    if choice < 0.7:
        parts[rng.randrange(len(parts))] = odd.word(rng)
    elif choice < 0.85:
        parts.insert(rng.randrange(len(parts)), rng.choice(parts))
    else:
        parts.pop(rng.randrange(len(parts)))
    texts[name] = ",".join(parts)


def _change(rng: random.Random, given: dict[str, Any], change: str) -> None:
    if given["element"] == "dynamic":
        return
    kind = element(given["element"])
    if change == "type":
        given["element"] = rng.choice(odd.ELEMENTS)
        kind = element(given["element"])
        given["values"] = [_converted(kind, value) for value in given["values"]]
    elif change == "shape":
        shape = list(given["shape"])
        choice = rng.random()
        if shape and choice < 0.45:
            shape[rng.randrange(len(shape))] = rng.choice([0, 1, 2, 3, 4, 5, 6, 7])
        elif shape and choice < 0.55:
            shape = [rng.choice(odd.SIZES) if rng.random() < 0.5 else size for size in shape]
            if math.prod(shape) > _LARGEST:
                shape[rng.randrange(len(shape))] = 0
        else:
            shape = list(rng.choice(odd.SHAPES))
        _reshape(rng, given, shape)
    elif change == "rank":
        shape = given["shape"]
        _reshape(rng, given, [*shape, 1] if rng.random() < 0.5 else [1, *shape] if rng.random() < 0.5 else shape[1:])
    elif change == "values":
        likely = rng.choice([0, 0.5, 0.9])
        given["values"] = [odd.value(rng, kind, likely=likely) for _ in given["values"]]
    elif change == "value" and given["values"]:
        given["values"][rng.randrange(len(given["values"]))] = odd.value(rng, kind, likely=0)
        # What Python has as text, and Unicode does not; a constant could not be written.
        if kind.kind == "string" and not given["constant"] and rng.random() < 0.2:
            given["values"][0] = "a\ud800"
    if rng.random() < 0.03 and not given["constant"]:
        given["element"], given["values"] = (
            "dynamic",
            [value if isinstance(value, int | float) else 0 for value in given["values"]],
        )


def _converted(kind: Any, value: Any) -> Any:
    if kind.kind == "string":
        return str(value)
    if kind.kind == "boolean":
        return bool(value)
    return value if isinstance(value, int | float) else len(str(value))


def _bounded(shape: list[int]) -> list[int]:
    """The shape itself, or a small one where an axis without elements has gone, or the others are too long for an array even so."""
    return shape if math.prod(shape) <= _LARGEST_MADE and has_room(shape) else [min(size, 2) for size in shape]


def _reshape(rng: random.Random, given: dict[str, Any], shape: list[int]) -> None:
    shape = _bounded(shape)
    count = math.prod(shape)
    values, kind = given["values"], element(given["element"])
    given["values"] = [values[i % len(values)] if values else odd.value(rng, kind) for i in range(count)]
    given["shape"] = shape
    if "..." not in given["declared"]:
        given["declared"] = ",".join(map(str, shape)) if rng.random() < 0.7 else ",".join("?" * len(shape))


def run(case: Case, observer: Observer) -> None:
    """Read, validate, compile, run, write."""
    arguments = case.arguments
    text, weights = model_text(
        arguments["type"], arguments["version"], arguments["attributes"], arguments["inputs"], arguments["outputs"]
    )
    model = observer.step("read", lambda: Model.of(io.read_text(text, weights)))
    if model is not None:
        given = [_fed(given) for given in arguments["inputs"] if not given["constant"]]
        check_model(observer, model, given, optimize=arguments["optimize"])


def _fed(given: dict[str, Any]) -> Any:
    kind = element("f32" if given["element"] == "dynamic" else given["element"])
    return odd.array(kind, given["values"], given["shape"])


def smaller(case: Case) -> Iterator[Case]:
    """Simpler values, shapes and attributes, where the shape still fits the values."""
    inputs = case.arguments["inputs"]
    for i, given in enumerate(inputs):
        for other in _smaller_input(given):
            yield case.replaced(inputs=[*inputs[:i], other, *inputs[i + 1 :]])
    for name in case.arguments["attributes"]:
        yield case.replaced(attributes={key: text for key, text in case.arguments["attributes"].items() if key != name})
    if case.arguments["outputs"] > 1:
        yield case.replaced(outputs=1)
    for optimize in (False,) if case.arguments["optimize"] else ():
        yield case.replaced(optimize=optimize)


def _smaller_input(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if given["constant"]:
        yield {**given, "constant": False, "declared": ",".join(map(str, given["shape"]))}
    elif given["declared"] != (exact := ",".join(map(str, given["shape"]))):
        yield {**given, "declared": exact}
    for axis, size in enumerate(given["shape"]):
        for less in {0, 1, 2, size // 2} if size > 2 else range(size):
            shape = [*given["shape"][:axis], less, *given["shape"][axis + 1 :]]
            yield _cut(given, shape)
    if given["shape"]:
        yield _cut(given, given["shape"][1:])
    if any(given["values"][1:]):
        yield {**given, "values": [given["values"][0]] * len(given["values"])}
    plain = Case("", {}, {"values": given["values"]}) if len(given["values"]) <= 16 else None
    for other in smaller_arguments(plain) if plain is not None else ():
        if len(other.arguments["values"]) == len(given["values"]):
            yield {**given, "values": other.arguments["values"]}


def _cut(given: dict[str, Any], shape: list[int]) -> dict[str, Any]:
    """The input in another shape, its values repeated or cut."""
    shape = _bounded(shape)
    count = math.prod(shape)
    values = (given["values"] * (count // max(1, len(given["values"])) + 1))[:count] if given["values"] else [0] * count
    declared = (
        ",".join(map(str, shape)) if given["declared"] == ",".join(map(str, given["shape"])) else given["declared"]
    )
    return {**given, "shape": shape, "values": values, "declared": declared}
