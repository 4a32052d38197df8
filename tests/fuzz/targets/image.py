"""Images as inputs, with the options that say how they become one, and results written as images."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.fuzz import images, odd
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.findings import Observer
from tests.fuzz.one_operation import model_text
from tests.fuzz.shrink import parts, smaller_bytes

QUICK = 1000
_SHAPES = [
    "1,3,8,8", "1,3,8,8", "1,1,8,8", "1,4,5,7", "3,8,8", "8,8,3", "1,8,8,3", "8,8", "1,3,?,?", "?,3,?,?", "1,?,8,8", "?,?,?,?", "...", "", "1,3,0,8", "0,3,8,8", "2,3,8,8",
    "1,2,8,8", "1,3,1..4,8", "1,3,100000,100000", "1,3,8",
]  # fmt: skip
_OPTIONS: dict[str, list[str]] = {
    "--layout": ["NCHW", "NHWC", "CHW", "HWC", "HW", "nchw", "NCWH", "NN", "", "x", "NCHWD", "HWHW"],
    "--mean": ["0", "127.5", "1,2,3", "nan", "1e39", "", "1,2", "-0", "inf", "x"],
    "--scale": ["255", "1,2,3", "0", "1e-40", "1e39", "nan", "1e-320", "-1", "1,2", "5e-324"],
    "--resize": ["stretch", "fit", "crop", "none", "x"],
    "-o": ["out.png", "out.npz", "out.txt", "x/out.png", ".png"],
    "--topk": ["1", "5", "1000"],
}  # fmt: skip


def generate(rng: random.Random, number: int) -> Case:
    """An image, and a command that reads it."""
    format = rng.choice(list(images.FORMATS))
    suffix = images.FORMATS[format] if rng.random() < 0.9 else rng.choice(list(images.FORMATS.values()))
    words = ["infer", "m.xml", "-i", f"a.{suffix}"]
    for name, values in _OPTIONS.items():
        if rng.random() < 0.2:
            words += [name, rng.choice(values)]
    words += [word for word in ("--bgr", "--json") if rng.random() < 0.15]
    kind = rng.choice(
        ["f32", "f32", "f32", "u8", "f16", "i32", "i8", "bf16", "boolean", "string", "u4", "f8e4m3", "dynamic"]
    )
    data = images.image(rng, format)
    return Case(
        "image",
        {f"a.{suffix}": data},
        {
            "element": kind,
            "shape": rng.choice(_SHAPES),
            "to": rng.choice(["f32", kind, *odd.ELEMENTS[:3]]),
            "words": words,
        },
    )


def run(case: Case, observer: Observer) -> None:
    """Write the model of one input, and run the command."""
    arguments = case.arguments
    given = {"element": arguments["element"], "constant": False, "declared": arguments["shape"]}
    text, _ = model_text("Convert", "opset1", {"destination_type": arguments["to"]}, [given], 1)
    with open("m.xml", "w", encoding="utf-8") as file:
        file.write(text)
    run_command(observer, arguments["words"])


def smaller(case: Case) -> Iterator[Case]:
    """Fewer options, then fewer bytes."""
    for words in parts(case.arguments["words"][4:]):
        yield case.replaced(words=[*case.arguments["words"][:4], *words])
    if case.arguments["element"] != "f32":
        yield case.replaced(element="f32")
    for name, data in case.files.items():
        for less in smaller_bytes(data):
            yield case.replaced(files={**case.files, name: less})
