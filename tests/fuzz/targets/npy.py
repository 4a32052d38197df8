"""Arrays as inputs and as expected results: .npy and .npz, from files and from standard input."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.fuzz import arrays
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.findings import Observer
from tests.fuzz.one_operation import model_text
from tests.fuzz.shrink import parts, smaller_bytes, smaller_npz

QUICK = 1400
_ELEMENTS = ["f32", "f32", "f16", "i64", "u8", "boolean", "string", "bf16", "i4", "f64", "dynamic"]
_SHAPES = ["3", "3", "?", "", "2,3", "?,?", "...", "0..2,3"]


def generate(rng: random.Random, number: int) -> Case:
    """A command that reads an array, whose file is odd."""
    is_archive = rng.random() < 0.5
    name = "a.npz" if is_archive else "a.npy"
    data = arrays.npz(rng) if is_archive else arrays.npy(rng)
    if rng.random() < 0.05:
        name = rng.choice(["a.npz", "a.npy", "a.txt", "a"])
    given, standard = rng.choice([name, f"l0={name}", f"0={name}"]), ""
    if rng.random() < 0.1:
        given, standard = rng.choice(["-", "l0=-"]), name
    words = ["infer", "m.xml", "-i", given]
    choice = rng.random()
    if choice < 0.2:
        words = ["infer", "m.xml", "-i", "random", "--assert", name]
    elif choice < 0.3:
        words = (
            ["bench", "m.xml", "-i", given, "--runs", "0"]
            if choice < 0.22
            else ["profile", "m.xml", "-i", given, "--runs", "1"]
        )
    if rng.random() < 0.2:
        words.append(rng.choice(["--json", "--all", "--debug"]) if choice < 0.2 or choice > 0.3 else "--json")
    return Case(
        "npy",
        {name: data},
        {"element": rng.choice(_ELEMENTS), "shape": rng.choice(_SHAPES), "words": words, "stdin": standard},
    )


def run(case: Case, observer: Observer) -> None:
    """Write the model of one input, and run the command."""
    arguments = case.arguments
    kind = arguments["element"]
    text, _ = model_text(
        "Reshape",
        "opset1",
        {"special_zero": "true"},
        [{"element": kind, "constant": False, "declared": arguments["shape"]}, _ALL],
        1,
    )
    with open("m.xml", "w", encoding="utf-8") as file:
        file.write(text)
    with open("m.bin", "wb") as weights:
        weights.write(b"\xff" * 8)
    run_command(observer, arguments["words"], case.files.get(arguments["stdin"], b""))


# The other shape of Reshape: one axis of everything.
_ALL = {"element": "i64", "constant": True, "shape": [1], "values": [-1]}


def smaller(case: Case) -> Iterator[Case]:
    """Fewer words, then fewer bytes; members of an archive one by one."""
    for words in parts(case.arguments["words"][4:]):
        yield case.replaced(words=[*case.arguments["words"][:4], *words])
    for name, data in case.files.items():
        for less in smaller_npz(data) if data.startswith(b"PK") else smaller_bytes(data):
            yield case.replaced(files={**case.files, name: less})
