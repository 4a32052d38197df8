"""Shell completion: what a shell is told when it asks as shells do, by COMP_WORDS and COMP_CWORD."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import irexec
from irexec.analysis.codes import CODES
from irexec.cli.commands import COMMANDS
from irexec.cli.main import run
from irexec.io.onnx_bytes import model_names
from tests.support.onnx_models import model_of
from tests.support.paths import DIGITS

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with models and arrays of which only the names matter, unless they are read."""
    for name in ("a.xml", "b.npz", "notes.txt", "deep/only/c.xml", "deep/only/d.xml", "w.bin", "two words.xml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for kind in ("xml", "onnx"):
        shutil.copy(DIGITS / f"classifier.{kind}", tmp_path / f"m.{kind}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(words: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture, shell: str = "bash") -> list[str]:
    """The lines for the last of some words, separated by spaces as bash gives them; an empty last word after a space."""
    monkeypatch.setenv("_IREXEC_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1) if shell != "fish" else words.split(" ")[-1])
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def values(words: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> list[str]:
    """The plain values among them."""
    return [line.removeprefix("plain,") for line in asked(words, monkeypatch, capsys) if line.startswith("plain,")]


TENSORS = ["conv0.b", "conv0.w", "conv3.b", "conv3.w", "conv0", "conv3"]
GENERATED = ["random", "zeros", "ones"]

ROWS: list[tuple[str, list[str]]] = [
    ("irexec va", ["validate"]),
    ("irexec ", sorted(COMMANDS)),
    ("irexec --ver", ["--version"]),
    ("irexec nothing", []),
    ("irexec infer ", ["a.xml", "deep/", "m.onnx", "m.xml", "'two words.xml'"]),
    ("irexec infer m", ["m.onnx", "m.xml"]),
    ("irexec infer de", ["deep/only/c.xml", "deep/only/d.xml"]),
    ("irexec infer deep/only/d", ["deep/only/d.xml"]),
    ("irexec infer absent/", []),
    ("irexec infer tw", ["'two words.xml'"]),
    ("irexec validate a.xml m.x", ["m.xml"]),
    ("irexec convert m", ["m.onnx"]),
    ("irexec compare m.xml b", ["b.npz"]),
    ("irexec infer m.onnx --tensor conv", TENSORS),
    ("irexec infer m.onnx --tensor = conv3", ["conv3.b", "conv3.w", "conv3"]),
    ("irexec infer m.xml --tensor probabilities", ["probabilities", "probabilities/sink_port_0"]),
    ("irexec infer --tensor conv", []),
    ("irexec infer absent.xml --tensor conv", []),
    ("irexec infer a.xml --tensor conv", []),
    ("irexec graph m.xml --around relu", ["relu1", "relu4"]),
    ("irexec graph m.onnx --from relu", ["relu1", "relu4"]),
    ("irexec infer m.xml -i ima", ["image=random", "image=zeros", "image=ones"]),
    ("irexec infer m.xml -i ", [*GENERATED, "b.npz", "deep/", "image=random", "image=zeros", "image=ones"]),
    ("irexec infer m.xml -i image = ", [*GENERATED, "b.npz", "deep/"]),
    ("irexec infer m.xml -i image =", [*GENERATED, "b.npz", "deep/"]),
    ("irexec infer m.xml -i image = r", ["random"]),
    ("irexec infer m.onnx --shape im", ["image[1,1,8,8]"]),
    ("irexec convert m.onnx --input im", ["image[1,1,8,8]"]),
    ("irexec infer m.xml --bin ", ["deep/", "w.bin"]),
    ("irexec explain IR50", ["IR501", "IR502", "IR503", "IR504", "IR505", "IR506", "IR507"]),
    ("irexec explain on20", ["on201", "on202", "on203", "on204", "on205", "on206"]),
    ("irexec validate m.xml --ignore IR30", [code for code in CODES if code.startswith("IR30")]),
    ("irexec ops CumS", ["CumSum"]),
    ("irexec ops --check m.o", ["m.onnx"]),
    ("irexec infer m.xml --top", ["--topk"]),
    ("irexec validate m.xml --format ju", ["junit"]),
    ("irexec --debug infer m.x", ["m.xml"]),
    ("irexec infer 'm.o", ["m.onnx"]),
]


@pytest.mark.parametrize(("words", "expected"), ROWS, ids=[words for words, _ in ROWS])
def test_what_a_word_may_become(
    words: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert values(words, monkeypatch, capsys) == expected


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("irexec infer m.xml -o res", "file,res"),
        ("irexec infer m.xml --dump-layers x", "dir,x"),
        ("irexec infer m.xml --labels ", "file,"),
    ],
)
def test_what_is_left_to_the_shell(words: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert asked(words, monkeypatch, capsys) == [line]


def test_zsh_and_fish(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert asked("irexec infer m.xml -i image=r", monkeypatch, capsys, "zsh") == ["plain", "image=random", "_"]
    assert "image=random" in " ".join(asked("irexec infer m.xml -i image=r", monkeypatch, capsys, "fish"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("_IREXEC_COMPLETE", f"{shell}_source")
    assert run([]) == 0
    assert f"_IREXEC_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [b"", b"<net", b"\xff" * 50, b"\x3a\xff\xff\xff\x7f", b'<layer <layer names="', b'</body></body><layer name="x">'],
)
@pytest.mark.parametrize("suffix", ["xml", "onnx"])
def test_a_damaged_model_has_no_names_and_gives_no_error(
    content: bytes, suffix: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:  # fmt: skip
    (folder / f"bad.{suffix}").write_bytes(content)
    assert values(f"irexec infer bad.{suffix} --tensor conv", monkeypatch, capsys) == []


_WORDS = {
    "without NumPy": (
        "irexec ", "irexec infer m", "irexec infer m.xml --tensor c", "irexec infer m.onnx -i i", "irexec infer m.onnx --shape i",
        "irexec graph m.xml --around c", "irexec explain IR", "irexec validate m.xml --ignore IR", "irexec reduce m.xml --finding IR",
    ),
    "with NumPy": ("irexec ops Conv", *(f"irexec {name} --" for name in COMMANDS), "irexec compare m.xml --metric "),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), [(kind, words) for kind, rows in _WORDS.items() for words in rows])
@pytest.mark.sampled(12)
def test_nothing_is_imported_that_takes_long(kind: str, words: str) -> None:
    """As the page on the commands says; onnx never."""
    program = (
        "import sys; from irexec.cli.main import run; run([]); "
        "sys.exit(' '.join(name for name in ('numpy', 'lxml', 'onnx', 'PIL', 'irexec.backend') if name in sys.modules))"
    )
    environment = {
        "_IREXEC_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    root = str(Path(irexec.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": root, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout
    imported = set(done.stderr.split())
    assert "onnx" not in imported
    if kind == "without NumPy":
        assert imported == set()


def test_names_of_an_ir(folder: Path) -> None:
    """Without those inside bodies; a comma in a name does not end it."""
    text = """<net><layers><layer id="0" name="p" type="Parameter"><data shape="?,2..5" element_type="f32"/><output><port id="0" names="a\\,b,c&amp;d"/></output></layer>
    <layer id="1" name="loop" type="Loop"><body><layers><layer name="inner" type="Parameter"><port names="hidden"/></layer></layers></body><port names="out"/></layer></layers></net>"""
    (folder / "x.xml").write_text(text)
    names = model_names(folder / "x.xml")
    assert names.inputs == {"a,b": "?,2..5"}
    assert names.layers == ["p", "loop"]
    assert names.tensors == ["a,b", "c&d", "out"]


def test_names_are_those_that_the_model_has(folder: Path) -> None:
    """Of both formats, compared with what reads them in full."""
    model = model_of("(float[N,3] x, int64 i, float[2] w) => (float[N,3] y) { t = Relu (x) [named] y = Mul (t, t) }")
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    onnx.save(model, folder / "x.onnx")
    names = model_names(folder / "x.onnx")
    assert names.inputs == {"x": "?,3", "i": ""}
    assert names.layers == ["t", "named"]
    assert set(names.tensors) == {"x", "i", "w", "t", "y"}
    read = irexec.read_model(folder / "m.xml")
    found = model_names(folder / "m.xml")
    assert found.layers == [node.name for node in read.nodes]
    assert found.tensors == [name for node in read.nodes for value in node.outputs for name in value.names]
    assert list(found.inputs) == [port.name for port in read.inputs]
