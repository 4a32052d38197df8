"""The bytes of constants: a .bin that is cut, longer, missing or of other values; offsets and sizes; strings and packed types."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import irexec
from irexec.dtypes.elements import element
from tests.fuzz import mutate_bytes, odd
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.findings import Observer
from tests.fuzz.model_steps import check_model
from tests.fuzz.one_operation import layer, model_text
from tests.fuzz.shrink import parts, smaller_bytes, smaller_files, smaller_xml

QUICK = 1500
# Operations that decompress, index, compare or only pass on what a constant holds.
_USES: list[tuple[str, str, dict[str, str], int]] = [
    ("Convert", "opset1", {"destination_type": "f32"}, 1), ("Convert", "opset1", {"destination_type": "i64"}, 1), ("Relu", "opset1", {}, 1),
    ("StringTensorUnpack", "opset15", {}, 3), ("ShapeOf", "opset3", {"output_type": "i64"}, 1), ("Squeeze", "opset1", {}, 1),
    ("Softmax", "opset8", {"axis": "0"}, 1), ("TopK", "opset11", {"axis": "0", "mode": "max", "sort": "value"}, 2), ("NonZero", "opset3", {}, 1),
]  # fmt: skip
_COMMANDS = [
    ["validate", "--weights", "m.xml"], ["inspect", "--weights", "m.xml"], ["infer", "m.xml", "-i", "random", "--json"], ["infer", "m.xml", "--all"],
    ["inspect", "--plan", "m.xml"], ["infer", "m.xml", "-o", "out.npz"], ["infer", "m.xml", "--dump-layers", "layers"],
]  # fmt: skip
_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def generate(rng: random.Random, number: int) -> Case:
    """A model of one operation on a constant, or of a product with compressed weights, whose bytes or positions are changed."""
    text, weights = _compressed(rng) if rng.random() < 0.3 else _constants(rng)
    files = {"m.xml": _moved(text, rng).encode(), "m.bin": weights}
    choice = rng.random()
    if choice < 0.35:
        files["m.bin"] = mutate_bytes.mutate(weights, rng)
    elif choice < 0.5:
        files["m.bin"] = weights[: rng.randint(0, len(weights))]
    elif choice < 0.55:
        del files["m.bin"]
    elif choice < 0.58:
        files["m.bin"] = mutate_bytes.mutate(_POINTER, rng) if rng.random() < 0.5 else _POINTER
    elif choice < 0.65:
        files["m.bin"] = rng.randbytes(len(weights))
    commands = [rng.choice(_COMMANDS)] if rng.random() < 0.3 else []
    between = rng.choice(["", "", "", "replaced", "longer", "gone"])
    return Case(
        "bin",
        files,
        {"seed": rng.randrange(1000), "optimize": rng.random() < 0.7, "between": between, "commands": commands},
    )


def _constants(rng: random.Random) -> tuple[str, bytes]:
    type, version, attributes, outputs = rng.choice(_USES)
    kind = element("string" if type == "StringTensorUnpack" or rng.random() < 0.2 else rng.choice(odd.ELEMENTS))
    shape = list(rng.choice(odd.SHAPES))
    count = math.prod(shape)
    likely = rng.choice([0, 0.8])
    values = [odd.value(rng, kind, likely=likely) for _ in range(count)]
    inputs: list[dict[str, Any]] = [{"element": kind.name, "constant": True, "shape": shape, "values": values}]
    if type == "TopK":
        inputs.append({"element": "i64", "constant": True, "shape": [], "values": [rng.choice([0, 1, 2])]})
    return model_text(type, version, attributes, inputs, outputs)


def _compressed(rng: random.Random) -> tuple[str, bytes]:
    """Weights of few bits, minus a zero point, times a scale, in a product."""
    name = rng.choice(
        [
            "u4", "i4", "u8", "i8", "nf4", "f8e4m3", "f8e5m2", "f4e2m1", "u2", "u3", "u6", "u1", "f16", "bf16", "i32",
            "string",
        ]
    )  # fmt: skip
    to = rng.choice(["f32", "f16", "f32"])
    rows, columns = rng.choice([(4, 4), (3, 5), (2, 64), (8, 33)])
    parameter = {"element": "f32", "constant": False, "declared": f"2,{columns}"}
    given = [
        parameter, _weights(rng, name, [rows, columns]), _weights(rng, rng.choice([name, "f32", to]), [rows, 1]),
        _weights(rng, to, rng.choice([[rows, 1], [rows, columns], [1], []])),
    ]  # fmt: skip
    text, raw = model_text("x", "opset1", {}, given, 0)
    head, _, rest = text.partition('<layer id="4"')
    edges = rest.partition("<edges>")[2]
    made = [
        layer(4, "Convert", "opset1", {"destination_type": to}, 1, 1), layer(5, "Convert", "opset1", {"destination_type": to}, 1, 1),
        layer(6, "Subtract", "opset1", {"auto_broadcast": "numpy"}, 2, 1), layer(7, "Multiply", "opset1", {"auto_broadcast": "numpy"}, 2, 1),
        layer(8, "Convert", "opset1", {"destination_type": "f32"}, 1, 1),
        layer(9, "MatMul", "opset1", {"transpose_a": "false", "transpose_b": "true"}, 2, 1), layer(10, "Result", "opset1", {}, 1, 0),
    ]  # fmt: skip
    ends = [
        (1, 0, 4, 0), (2, 0, 5, 0), (4, 1, 6, 0), (5, 1, 6, 1), (6, 2, 7, 0), (3, 0, 7, 1), (7, 2, 8, 0),
        (0, 0, 9, 0), (8, 1, 9, 1), (9, 2, 10, 0),
    ]  # fmt: skip
    edges = "\n".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in ends)
    return head + "\n".join(made) + f"\n</layers>\n<edges>\n{edges}\n</edges>\n</net>\n", raw


def _weights(rng: random.Random, name: str, shape: list[int]) -> dict[str, Any]:
    count, kind = math.prod(shape), element(name)
    return {
        "element": name,
        "constant": True,
        "shape": shape,
        "values": [odd.value(rng, kind, likely=0.98) for _ in range(count)],
    }


def _moved(text: str, rng: random.Random) -> str:
    """Another offset, size, shape or type of one of the constants, more often than not."""
    if rng.random() < 0.3:
        return text
    sections = text.split('offset="')
    i = rng.randrange(1, len(sections))
    offset, _, rest = sections[i].partition('" size="')
    size, _, rest = rest.partition('"')
    choice = rng.random()
    near = [-8, -4, -1, 1, 2, 3, 4, 8]
    if choice < 0.35:
        offset = str(int(offset) + rng.choice(near)) if rng.random() < 0.6 else rng.choice(odd.NUMBER_TEXTS)
    elif choice < 0.6:
        size = str(int(size) + rng.choice(near)) if rng.random() < 0.6 else rng.choice(odd.NUMBER_TEXTS)
    sections[i] = f'{offset}" size="{size}"{rest}'
    if choice > 0.6:
        before, _, kind = sections[i - 1].rpartition('element_type="')
        shape = kind.partition('shape="')[2].rstrip('" ')
        shape = rng.choice([*odd.SHAPE_TEXTS[:20], "1000000,1000000"]) if rng.random() < 0.4 else shape
        sections[i - 1] = f'{before}element_type="{rng.choice(odd.ELEMENTS)}" shape="{shape}" '
    return 'offset="'.join(sections)


def run(case: Case, observer: Observer) -> None:
    """Read the model, change the .bin if the case says so, and run the other steps."""
    model = observer.step("read", lambda: irexec.read_model("m.xml"))
    _between(case.arguments["between"], case.files.get("m.bin", b""))
    if model is not None:
        check_model(observer, model, case.arguments["seed"], optimize=case.arguments["optimize"])
    for words in case.arguments["commands"]:
        run_command(observer, words)


def _between(what: str, data: bytes) -> None:
    """What another process does to the file before its bytes are needed: it is replaced as a whole, never written in place."""
    path = Path("m.bin")
    if what == "gone":
        path.unlink(missing_ok=True)
    elif what:
        Path("new").write_bytes(data[::-1] if what == "replaced" else data + data + b"\x00")
        Path("new").replace(path)


def smaller(case: Case) -> Iterator[Case]:
    """Without commands and changes on the way, then with less in the files."""
    for commands in parts(case.arguments["commands"]):
        yield case.replaced(commands=commands)
    if case.arguments["between"]:
        yield case.replaced(between="")
    yield from smaller_files(case, lambda name, data: smaller_xml(data) if name == "m.xml" else smaller_bytes(data))
    if case.arguments["optimize"]:
        yield case.replaced(optimize=False)
