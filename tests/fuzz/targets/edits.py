"""Random sequences of edits: never a half-changed model, never one that OpenVINO refuses and validate does not, with
portability, and undo is exact."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import irexec
from irexec import opset
from irexec.analysis.portability import DIFFERENCES
from irexec.authoring.editor import Editor
from irexec.errors import IrexecError
from irexec.io import write_text
from tests.fuzz.case import Case
from tests.fuzz.findings import NOWHERE, Observer
from tests.fuzz.shrink import smaller_xml
from tests.graphs.making import make
from tests.support.paths import DIGITS, IRS

try:
    # Not in a case: it opens files of its own when it is imported.
    import openvino
except ImportError:
    openvino = None

QUICK = 200
_FILES = sorted([*IRS.glob("*.xml"), DIGITS / "classifier.xml", DIGITS / "denoiser.xml"])
_MISTAKES = re.compile(r"Accessing out-of-range dimension|::Loop Loop\S*\[\d+\]:\w+\[0\]")
Step = Callable[[Editor, random.Random], None]


def generate(rng: random.Random, number: int) -> Case:
    """A small model, and the seeds of some steps."""
    seed = rng.randrange(1 << 48)
    if rng.random() < 0.35:
        path = rng.choice(_FILES)
        text, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    else:
        text, weights = write_text(make(seed).model)
    steps = [rng.randrange(1 << 32) for _ in range(rng.randint(1, 8))]
    return Case("edits", {"m.xml": text, "m.bin": bytes(weights)}, {"steps": steps, "undone": rng.random() < 0.5})


def run(case: Case, observer: Observer) -> None:
    """All steps, each followed by what must hold; then all of them are undone."""
    model = observer.step("read", lambda: irexec.read_model("m.xml"), allowed=())
    if model is None or any(finding.severity == "error" for finding in irexec.validate(model)):
        return
    editor = observer.step("edit", model.edit, allowed=())
    states = [write_text(model)]
    was_read = _refusal(states[0]) is None
    for seed in case.arguments["steps"]:
        made = len(editor.steps)
        # Functions of tensors may be called with other numbers of them, which is the caller's fault.
        observer.step("step", lambda seed=seed: _make(editor, seed), allowed=(IrexecError, TypeError, IndexError))
        if observer.findings:
            return
        state = write_text(model)
        if len(editor.steps) == made:
            if state != states[-1]:
                observer.found("contradiction", "half-changed", NOWHERE, f"step {seed} failed and changed the model")
                return
        else:
            states.append(state)
            _check(model, state, editor, was_read, observer)
    if case.arguments["undone"]:
        _undo(model, editor, states, observer)


def _make(editor: Editor, seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(list(STEPS))
    STEPS[name](editor, rng)


def _check(model: irexec.Model, state: tuple[bytes, bytes], editor: Editor, was_read: bool, observer: Observer) -> None:
    """The edited model validates, its facts are those of a new inference, and OpenVINO reads what is written."""
    step = editor.steps[-1]
    errors = [finding for finding in irexec.validate(model) if finding.severity == "error"]
    if errors:
        observer.found("contradiction", f"validate after {step.split()[0]}", NOWHERE, f"{step}: {errors[0]}")
    fresh = irexec.read_model(*map(bytes, state))
    known, again = editor._editing.facts, Editor(fresh)._editing.facts
    for one, other in zip(model.nodes, fresh.nodes, strict=True):
        for a, b in zip(one.outputs, other.outputs, strict=True):
            if str(known[a]) != str(again[b]):
                observer.found("contradiction", "facts", NOWHERE, f"{step}: {one.name}: {known[a]}, {again[b]}")
    refusal = _refusal(state) if was_read else None
    if refusal is not None and not _is_known(model):
        observer.found("contradiction", f"OpenVINO after {step.split()[0]}", NOWHERE, f"{step}: {refusal}")


def _is_known(model: irexec.Model) -> bool:
    """Whether a layer has a difference by which OpenVINO does not read a model, or infers a shape that others refuse."""
    found = (DIFFERENCES.get(finding.code) for finding in irexec.validate(model, portability=True))
    return any(row is not None and row.effect in ("fails", "shape") and row.who != "CPU plugin" for row in found)


def _undo(model: irexec.Model, editor: Editor, states: list[Any], observer: Observer) -> None:
    for state in reversed(states[:-1]):
        observer.step("undo", editor.undo, allowed=())
        if write_text(model) != state:
            observer.found("contradiction", "undo", NOWHERE, "the model is not as it was")


def _refusal(state: tuple[bytes, bytes]) -> str | None:
    """The reason why OpenVINO does not read an .xml and a .bin; None without OpenVINO, and where OpenVINO fails by mistake.

    A Reduce of a scalar with keep_dims accesses an axis that does not exist: see tests/cases/reduction.py. A Loop
    without iterations concatenates outputs of any rank to the shape [0].
    """
    if openvino is None:
        return None
    try:
        text, weights = state
        openvino.Core().read_model(text, openvino.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    except RuntimeError as error:
        return None if _MISTAKES.search(str(error)) else str(error)[-300:]
    return None


def smaller(case: Case) -> Iterator[Case]:
    """Fewer steps, then a smaller model."""
    steps = case.arguments["steps"]
    for index in range(len(steps)):
        rest = steps[:index] + steps[index + 1 :]
        yield Case("edits", case.files, {**case.arguments, "steps": rest})
    for text in smaller_xml(case.files["m.xml"]):
        yield Case("edits", {**case.files, "m.xml": text}, case.arguments)


def _layer(editor: Editor, rng: random.Random) -> irexec.Node:
    return rng.choice(list(editor.model.walk()))


def _name(editor: Editor, rng: random.Random) -> str:
    """A layer, by name or id, or a tensor; seldom one that does not exist."""
    node = rng.choice(editor.model.nodes)
    names = [name for value in node.outputs for name in value.names]
    return rng.choice([node.name, node.name, str(node.id), *names, *(["nowhere"] if rng.random() < 0.05 else [])])


def _rename(editor: Editor, rng: random.Random) -> None:
    old, new = rng.choice(
        [("*", "n/*"), ("re:[aeiou]", "_"), ("?*", "*"), (_name(editor, rng), f"new{rng.randrange(3)}")]
    )
    editor.rename(old, new)


def _reshape(editor: Editor, rng: random.Random) -> None:
    port = rng.choice(editor.model.inputs)
    editor.reshape({port.name: [rng.choice([size, size, 1, 2, None]) for size in port.shape or ()]})


def _set_attribute(editor: Editor, rng: random.Random) -> None:
    node = _layer(editor, rng)
    if node.attributes:
        name = rng.choice(list(node.attributes))
        text = rng.choice([node.attributes[name], "0", "1", "-1", "true", "f16", "1,1", "numpy", "x", ""])
        editor.set_attribute(node.name, name, text)


def _set_constant(editor: Editor, rng: random.Random) -> None:
    constants = [node for node in editor.model.nodes if node.constant is not None]
    if constants:
        node = rng.choice(constants)
        shape = rng.choice([node.constant.shape, (1, *node.constant.shape) if node.constant.shape else (), ()])
        editor.set_constant(node.name, np.full(shape, rng.choice([0, 1, 2, 300])))


def _preprocess(editor: Editor, rng: random.Random) -> None:
    port = rng.choice(editor.model.inputs)
    options: dict[str, Any] = {
        "element": rng.choice(["u8", "f16", "i32", "f64"]), "mean": rng.choice([1.5, [1, 2, 3]]), "scale": 2,
        "layout": "NHWC", "resize": rng.choice(["linear", "nearest"]), "reverse_channels": True,
    }  # fmt: skip
    chosen = rng.sample(sorted(options), rng.randint(1, 3))
    editor.embed_preprocessing(port.name, **{name: options[name] for name in chosen})


def _append(editor: Editor, rng: random.Random) -> None:
    kind = rng.choice(["softmax", "sigmoid", "argmax", "topk"])
    options = {"k": rng.choice([1, 2])} if kind == "topk" else {}
    editor.append(kind, rng.choice(editor.model.outputs).name, **options)


def _replace(editor: Editor, rng: random.Random) -> None:
    functions: list[Any] = [opset.relu, lambda x, *_: x * 2, lambda *x: x[0], lambda x, *_: opset.sigmoid(x + 1)]
    editor.replace(_name(editor, rng), rng.choice(functions))


STEPS: dict[str, Step] = {
    "rename": _rename,
    "cut from": lambda g, rng: g.cut_from(*{_name(g, rng) for _ in range(rng.randint(1, 2))}),
    "cut to": lambda g, rng: g.cut_to(*{_name(g, rng) for _ in range(rng.randint(1, 2))}),
    "add output": lambda g, rng: g.add_output(_name(g, rng), rng.choice([None, "more", "x"])),
    "reshape": _reshape,
    "batch": lambda g, rng: g.set_batch(rng.choice([1, 2, 3, "?"])),
    "set attribute": _set_attribute,
    "set constant": _set_constant,
    "remove": lambda g, rng: g.remove(_name(g, rng), rng.choice([None, None, 0, 1])),
    "insert after": lambda g, rng: g.insert_after(_name(g, rng), rng.choice([opset.relu, lambda x: x * 0.5])),
    "replace": _replace,
    "preprocess": _preprocess,
    "element": lambda g, rng: g.set_element(_name(g, rng), rng.choice(["f16", "f32", "i32", "u8", "boolean"])),
    "append": _append,
    "compress": lambda g, rng: g.compress(rng.choice(["f16", "int8", "int4"]), group=rng.choice([1, 2, 4])),
    "decompress": lambda g, rng: g.decompress(),
    "fold": lambda g, rng: g.fold(),
    "optimize": lambda g, rng: g.optimize(),
    "unfreeze": lambda g, rng: g.unfreeze(rng.choice(g.model.inputs).name),
    "rt_info": lambda g, rng: g.set_rt_info(rng.choice(["a", "a/b", "b"]), rng.random()),
}
