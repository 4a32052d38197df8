"""ONNX models that are damaged: messages, nodes, attributes, tensors, types, functions and bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import converters
from tests.fuzz import mutate_bytes, mutate_onnx, onnx_corpus
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.findings import Observer
from tests.fuzz.model_steps import check_model
from tests.fuzz.shrink import parts, smaller_files, smaller_onnx

QUICK = 700
_COMMANDS = [
    ["ops", "--check", "m.onnx"], ["convert", "m.onnx"], ["convert", "m.onnx", "--strict", "--json"],
    ["validate", "m.onnx"], ["infer", "m.onnx", "-i", "random"], ["inspect", "m.onnx", "--layers"],
]  # fmt: skip


def generate(rng: random.Random, number: int) -> Case:
    """A model with a few changes, some of them in its bytes."""
    model = onnx_corpus.model(rng)
    data = mutate_onnx.mutate(model, rng).SerializeToString(deterministic=True)
    if rng.random() < 0.08:
        data = mutate_bytes.mutate(data, rng)
    commands = [rng.choice(_COMMANDS)] if rng.random() < 0.15 else []
    return Case(
        "onnx",
        {"m.onnx": data, "w.bin": bytes(8)},
        {"seed": rng.randrange(1000), "strict": rng.random() < 0.1, "commands": commands},
    )


def run(case: Case, observer: Observer) -> None:
    """Convert, run the steps on the IR if there is one, then the commands."""

    def convert() -> Any:
        return converters.convert("m.onnx", strict=case.arguments["strict"], warn=lambda text: None)

    def examine() -> None:
        """The findings say why there is no model."""
        found = converters.examine("m.onnx")
        wrong = [f for f in found.findings if f.severity == "error" and not f.code.startswith("ON2")]
        if found.model is None and not wrong:
            raise AssertionError("neither a model nor an error")
        if found.model is None and model is not None:
            raise AssertionError(f"a model that can be converted has the errors {wrong}")

    model = observer.step("convert", convert)
    observer.step("examine", examine)
    if model is not None:
        check_model(observer, model, case.arguments["seed"])
    for words in case.arguments["commands"]:
        run_command(observer, words)


def smaller(case: Case) -> Iterator[Case]:
    """Without commands, then with less in the model."""
    for commands in parts(case.arguments["commands"]):
        yield case.replaced(commands=commands)
    yield from smaller_files(case, lambda name, data: smaller_onnx(data) if name == "m.onnx" else iter(()))
    if case.arguments["seed"]:
        yield case.replaced(seed=0)
