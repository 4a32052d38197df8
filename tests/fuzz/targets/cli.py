"""Whole command lines in a folder of models, arrays, images and other files."""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Iterator

import numpy as np

from irexec.tools.arrays.files import write_npz
from tests.fuzz import corpus
from tests.fuzz.case import Case
from tests.fuzz.command import run_command
from tests.fuzz.command_lines import command_line
from tests.fuzz.findings import Observer
from tests.fuzz.kept_files import READ, damaged, written
from tests.fuzz.one_operation import model_text
from tests.fuzz.shrink import parts, smaller_bytes, smaller_files
from tests.support.paths import ROOT

QUICK = 2500
_SAMPLES = ROOT / "samples" / "digits"


@functools.cache
def _files() -> dict[str, bytes]:
    """Files that every case may use."""
    names = [
        "classifier.xml", "classifier.bin", "classifier.onnx", "damaged.xml", "damaged.bin", "digit_7.png",
        "noisy_3.png", "labels.txt",
    ]  # fmt: skip
    files = {name: (_SAMPLES / name).read_bytes() for name in names}
    files["graph.xml"] = (_SAMPLES.parent / "execution_graph.xml").read_bytes()
    given = [
        {"element": "f32", "constant": False, "declared": "?,2"},
        {"element": "f32", "constant": True, "shape": [1], "values": [0.5]},
    ]
    text, files["m.bin"] = model_text("Add", "opset1", {"auto_broadcast": "numpy"}, given, 1)
    files["m.xml"] = text.replace('name="l0"', 'name="x"').encode()
    array = io.BytesIO()
    np.save(array, np.ones((3, 2), np.float32))
    archive = io.BytesIO()
    write_npz(archive, {"x": np.ones((3, 2), np.float32), "l1": np.full((3, 2), 1.5, np.float32)})
    return {
        **files,
        "a.npy": array.getvalue(),
        "a.npz": archive.getvalue(),
        "empty": b"",
        "text.txt": b"a\n\x1b[31mb\n\xff\n",
        "folder/m.xml": files["m.xml"],
        # Linux has file names that are not UTF-8.
        "b\udcff.xml": files["m.xml"],
        "b\udcff.bin": files["m.bin"],
        "b\udcff.npy": array.getvalue(),
    }


def generate(rng: random.Random, number: int) -> Case:
    """A command line, and the files that it names."""
    files = dict(_files())
    if rng.random() < 0.1:
        return _with_kept_files(files, rng)
    if rng.random() < 0.3:
        files["other.xml"], files["other.bin"] = corpus.model(rng)
    words = command_line(rng, sorted(files))
    named = [name for name in files if any(name in word for word in words)]
    stems = {name.rpartition(".")[0] for name in named} - {""}
    kept = {
        name: data
        for name, data in files.items()
        if name in named or name.rpartition(".")[0] in stems or name == "folder/m.xml"
    }
    return Case("cli", kept, {"words": words, "stdin": rng.choice(["", "", "a.npy", "m.xml", "empty"])})


def _with_kept_files(files: dict[str, bytes], rng: random.Random) -> Case:
    """A command that reads what others wrote, which has been damaged."""
    given = {name: files[name] for name in ("m.xml", "m.bin", "a.npy")}
    words = [*rng.choice(READ), *rng.choice([[], [], ["--json"]])]
    return Case("cli", {**given, **damaged(written(*given.values()), rng)}, {"words": words, "stdin": ""})


def run(case: Case, observer: Observer) -> None:
    """Run it."""
    name = case.arguments["stdin"]
    given = case.files.get(name, _files().get(name, b"")) if name else b""
    run_command(observer, case.arguments["words"], given)


def smaller(case: Case) -> Iterator[Case]:
    """Fewer words, fewer and shorter files."""
    for words in parts(case.arguments["words"], minimum=1):
        yield case.replaced(words=words)
    if case.arguments["stdin"]:
        yield case.replaced(stdin="")
    yield from smaller_files(case, lambda name, data: smaller_bytes(data) if len(data) < 2000 else iter(()))
