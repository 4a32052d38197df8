"""IR that is damaged: elements, attributes, shapes, types, edges, bodies, encodings and bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import irexec
from tests.fuzz import corpus, mutate_bytes, mutate_xml
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.findings import Observer
from tests.fuzz.model_steps import check_model
from tests.fuzz.shrink import parts, smaller_bytes, smaller_files, smaller_xml

QUICK = 2000
_COMMANDS = [
    ["validate", "--weights", "m.xml"], ["inspect", "--layers", "--ops", "--weights", "m.xml"], ["inspect", "--plan", "-v", "m.xml"],
    ["infer", "m.xml", "-i", "random", "--all"], ["profile", "--static", "m.xml"], ["ops", "--check", "m.xml"], ["validate", "--json", "m.xml"],
]  # fmt: skip


def generate(rng: random.Random, number: int) -> Case:
    """A model with a few changes, some of them in its bytes."""
    text, weights = corpus.model(rng)
    choice = rng.random()
    text = mutate_bytes.mutate(text, rng) if choice < 0.1 else mutate_xml.mutate(text, rng)
    if weights and rng.random() < 0.15:
        weights = mutate_bytes.mutate(weights, rng)
    arguments = {
        "seed": rng.randrange(1000),
        "optimize": rng.random() < 0.7,
        "commands": [rng.choice(_COMMANDS)] if rng.random() < 0.15 else [],
    }
    return Case("xml", {"m.xml": text, "m.bin": weights}, arguments)


def run(case: Case, observer: Observer) -> None:
    """Read, run the steps on the model if there is one, then the commands."""
    model = observer.step("read", lambda: irexec.read_model("m.xml"))
    if model is not None:
        check_model(observer, model, case.arguments["seed"], optimize=case.arguments["optimize"])
    for words in case.arguments["commands"]:
        run_command(observer, words)


def smaller(case: Case) -> Iterator[Case]:
    """Without commands, then with fewer elements, attributes and bytes."""
    for commands in parts(case.arguments["commands"]):
        yield case.replaced(commands=commands)
    yield from smaller_files(case, lambda name, data: smaller_xml(data) if name == "m.xml" else smaller_bytes(data))
    if case.arguments["optimize"]:
        yield case.replaced(optimize=False)
    if case.arguments["seed"]:
        yield case.replaced(seed=0)
