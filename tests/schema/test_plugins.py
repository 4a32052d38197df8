"""Plug-ins: found by option, variable and entry point; loaded once; every fault is one sentence."""

from __future__ import annotations

import os
import shlex
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import OpError, PluginError
from irexec.plugins import Fact, StringTensor
from irexec.schema import plugins as module
from irexec.schema.plugins import Plugins
from irexec.schema.registry import discard
from tests.support.paths import DIGITS, ROOT
from tests.support.processes import commands, said

OPERATION = """
from irexec.plugins import Fact, FloatTensor, operation, translates

@operation("Half", domain="test.ops")
def half(data: FloatTensor, *, times: int = 1):
    '''The data divided by two, ``times`` times.'''
    return (data / 2**times).astype(data.dtype)

@half.shape_rule
def _(data: Fact, *, times: int = 1) -> Fact:
    return Fact(data.element, data.shape)

@translates("test.domain", "Halve")
def _halve(ctx, data, *, times: int = 1):
    return ctx.emit("Half", data, times=times)
"""
MODEL = """
import numpy as np
import irexec
from irexec import opset
x = opset.parameter([3], "f32", "x")
irexec.save_model(irexec.Model([opset.half(x, times=2, name="y")], [x]), "m.xml")
np.save("x.npy", np.array([4, 8, 0], np.float32))
"""


def _irexec(folder: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[str, str]:
    return said(folder, "-m", "irexec", *arguments, code=code, **variables)


def _result(folder: Path) -> np.ndarray:
    with np.load(folder / "y.npz") as results:
        (name,) = results
        return results[name]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plug-in, and a model that needs it."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "ops.py").write_text(OPERATION)
    (folder / "make.py").write_text(MODEL)
    said(folder, "make.py", IREXEC_PLUGINS="ops.py")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "m.xml"],
        ["infer", "m.xml", "-i", "x.npy"],
        ["inspect", "m.xml", "--plan", "--cost"],
        ["compare", "m.xml", "m.xml"],
        ["compare", "m.xml", "--b-runtime", "reference", "--isolate"],
        ["diff", "m.xml", "m.xml"],
        ["profile", "m.xml", "--runs", "1"],
        ["graph", "m.xml", "-o", "m.svg"],
        ["report", "m.xml", "-o", "m.html"],
        ["batch", "m.xml", "x.npy", "-o", "results.npz"],
    ],
    ids=" ".join,
)
@pytest.mark.sampled(6)
def test_a_command_takes_a_plugin(folder: Path, arguments: list[str]) -> None:
    _irexec(folder, *arguments, "--plugin", "ops.py")


@pytest.mark.parametrize(
    ("variables", "options", "ending"),
    [
        ({}, ["--plugin", "ops.py"], " --plugin=ops.py"),
        pytest.param({"IREXEC_PLUGINS": "ops.py"}, [], "", marks=pytest.mark.slow),
    ],
    ids=["option", "variable"],
)
@pytest.mark.slow
def test_a_next_command_has_the_plugin(
    folder: Path, variables: dict[str, str], options: list[str], ending: str
) -> None:
    """The suggested next command runs as it stands, also where the plug-in is an option of the first one."""
    _irexec(folder, "edit", "m.xml", "--set", "y.times=3", "-o", "thrice.xml", *options, **variables)
    diff = _irexec(folder, "diff", "m.xml", "thrice.xml", *options, code=1, **variables)[1]
    assert diff == f"next: irexec compare m.xml thrice.xml{ending}\n"
    _irexec(folder, *shlex.split(diff)[2:], "-i", "x.npy", code=1, **variables)
    reduction = ["reduce", "thrice.xml", "--against", "m.xml", "-i", "x.npy", "-o", "min.xml"]
    reduce = _irexec(folder, *reduction, *options, **variables)[0].splitlines()[-1]
    assert reduce.endswith(f" min.xml -i min.npz{ending}")
    assert "first divergence: 'y' (Half" in _irexec(folder, *shlex.split(reduce)[1:], code=1, **variables)[0]


@pytest.mark.slow
def test_values_and_documentation(folder: Path) -> None:
    lines = ["infer", "m.xml", "-i", "x.npy", "-o", "y.npz"], ["ops", "Half"], ["ops", "test.ops.Half"]
    done = commands(folder, *([*line, "--plugin", "ops.py"] for line in lines))
    assert [code for code, *_ in done] == [0, 0, 0], done
    np.testing.assert_array_equal(_result(folder), np.array([1, 2, 0], np.float32))
    for _, shown, _ in done[1:]:
        assert "test.ops" in shown
        assert "The data divided by two, times times." in shown


@pytest.mark.slow
def test_a_translator_of_an_onnx_operator(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    x, y = (h.make_tensor_value_info(name, 1, [3]) for name in "xy")
    node = h.make_node("Halve", ["x"], ["y"], domain="test.domain", times=1)
    imports = [h.make_opsetid("", 18), h.make_opsetid("test.domain", 1)]
    onnx.save(h.make_model(h.make_graph([node], "g", [x], [y]), opset_imports=imports), folder / "m.onnx")
    _irexec(folder, "convert", "m.onnx", "-o", "c.xml", "--plugin", "ops.py")
    _irexec(folder, "infer", "c.xml", "-i", "x.npy", "-o", "y.npz", IREXEC_PLUGINS="ops.py")
    np.testing.assert_array_equal(_result(folder), np.array([2, 4, 0], np.float32))
    assert "test.domain.Halve" in _irexec(folder, "convert", "m.onnx", "-o", "d.xml", code=4)[1]


STRINGS = """
import numpy as np
from irexec.plugins import Fact, IntegerTensor, NumericTensor, StringTensor, operation
from irexec.dtypes.elements import I64, STRING, U8
from irexec.ir.dims import Dim

@operation("Upper", domain="text.ops")
def upper(text: StringTensor, *, suffix: str = ""):
    return np.array([each.upper() + suffix for each in text.flat], {dtype}).reshape(text.shape)

@upper.shape_rule
def _(text: Fact, *, suffix: str = "") -> Fact:
    return Fact(STRING, text.shape)

@operation("Bytes", domain="text.ops")
def to_bytes(text: StringTensor):
    encoded = [each.encode() for each in text]
    return np.array([len(each) for each in encoded], np.int64), np.frombuffer(b"".join(encoded), np.uint8)

@to_bytes.shape_rule
def _(text: Fact) -> tuple[Fact, Fact]:
    return Fact(I64, text.shape), Fact(U8, (Dim(0),))

@operation("Texts", domain="text.ops")
def texts(lengths: IntegerTensor, codes: NumericTensor):
    parts = np.split(codes, np.cumsum(lengths)[:-1])
    return np.array([part.tobytes().decode() for part in parts])

@texts.shape_rule
def _(lengths: Fact, codes: Fact) -> Fact:
    return Fact(STRING, lengths.shape)

import irexec
if __name__ == "__main__":
    from irexec import opset
    ops, x = opset.extension("text.ops"), opset.parameter([-1], "string", "x")
    known = ops.upper(opset.constant(np.array(["ß", "été"])), name="known")
    again = ops.texts(*ops.bytes(ops.upper(x, suffix="!")), name="again")
    irexec.save_model(irexec.Model([known, again], [x]), "s.xml")
    np.save("s.npy", np.array(["a", "béta", "日本", ""]))
"""


@pytest.mark.parametrize("dtype", ["object", "str"])
@pytest.mark.sampled(4)
def test_tensors_of_strings(tmp_path: Path, dtype: str) -> None:
    """A kernel returns texts as objects or as NumPy's str; they are the same to the next kernel and in every file."""
    (tmp_path / "ops.py").write_text(STRINGS.replace("{dtype}", dtype))
    said(tmp_path, "ops.py")
    lines = (
        ["validate", "s.xml"],
        ["compare", "s.xml", "-i", "s.npy", "--b-runtime", "reference", "--isolate"],
        ["profile", "s.xml", "-i", "s.npy", "--runs", "1"],
        ["batch", "s.xml", "s.npy", "-o", "results.npz"],
        ["script", "s.xml", "-o", "again.py"],
        ["infer", "s.xml", "-i", "s.npy", "-o", "y.npz"],
    )
    done = commands(tmp_path, *([*line, "--plugin", "ops.py"] for line in lines))
    assert [code for code, *_ in done] == [0] * len(lines), done
    said(tmp_path, "again.py", "again.xml", IREXEC_PLUGINS="ops.py")
    assert _irexec(tmp_path, "diff", "s.xml", "again.xml", "--plugin", "ops.py")[0] == "no differences\n"
    with np.load(tmp_path / "y.npz", allow_pickle=True) as results:
        assert results["known"].tolist() == ["SS", "ÉTÉ"]
        assert results["again"].tolist() == ["A!", "BÉTA!", "日本!", "!"]


def test_objects_that_are_not_strings_are_refused() -> None:
    @irexec.operation("Objects", domain="text.ops")
    def objects(text: StringTensor) -> np.ndarray:
        return np.array([len(each) for each in text], object)

    @objects.shape_rule
    def _(text: Fact) -> Fact:
        return Fact(text.element, text.shape)

    try:
        with pytest.raises(OpError, match=r"returns an array of objects with 3, expected str"):
            objects(np.array(["abc"], object))
    finally:
        discard(objects)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_script_names_the_namespace_of_the_plugin(folder: Path) -> None:
    _irexec(folder, "script", "m.xml", "-o", "again.py", "--plugin", "ops.py")
    assert 'opset.extension("test.ops").half(' in (folder / "again.py").read_text()
    said(folder, "again.py", "again.xml", IREXEC_PLUGINS="ops.py")
    assert _irexec(folder, "diff", "m.xml", "again.xml", "--plugin", "ops.py")[0].startswith("no differences")


def test_without_the_plugin_the_layer_is_a_finding(folder: Path) -> None:
    assert "extension 'test.ops'" in _irexec(folder, "validate", "m.xml", code=1)[0]
    (folder / "m.xml").write_text((folder / "m.xml").read_text().replace("test.ops", "other.ops"))
    assert "IR1" in _irexec(folder, "validate", "m.xml", code=1, IREXEC_PLUGINS="ops.py")[0]


@pytest.mark.slow
def test_an_entry_point_of_an_installed_distribution(folder: Path) -> None:
    """What pip writes for a distribution, in a folder of sys.path."""
    site = folder / "site"
    (site / "half_ops-1.0.dist-info").mkdir(parents=True)
    (site / "half_ops-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: half-ops\nVersion: 1.0\n")
    (site / "half_ops-1.0.dist-info" / "entry_points.txt").write_text("[irexec.plugins]\nhalf = half_ops\n")
    (site / "half_ops.py").write_text(OPERATION)
    path = os.pathsep.join([str(ROOT), str(site)])
    assert _irexec(folder, "validate", "m.xml", PYTHONPATH=path)[0] == "m.xml: no findings\n"
    (site / "half_ops.py").write_text("import no_such_module")
    error = _irexec(folder, "validate", "m.xml", code=3, PYTHONPATH=path)[1]
    assert error == "error: plug-in 'half' (half_ops): ModuleNotFoundError: No module named 'no_such_module'\n"


def _registers(type: str, domain: str = "test.ops", rule: str = "-> Fact", parameter: str = "data: FloatTensor") -> str:
    return textwrap.dedent(f"""
        from irexec.plugins import Fact, FloatTensor, operation
        @operation({type!r}, domain={domain!r})
        def kernel({parameter}):
            return data
        @kernel.shape_rule
        def _(data){rule}:
            return data
        """)


_FAULTS = {
    "import no_such_module": ", line 1: ModuleNotFoundError: No module named 'no_such_module'",
    "x = 1\ndef (": ", line 2: SyntaxError: invalid syntax",
    "import sys\nsys.exit(3)": ", line 2: SystemExit: 3",
    _registers("Relu"): ", line 3: Relu is an operation of irexec, a plug-in cannot replace it; use another type",
    _registers("Third", "opset4"): ", line 3: domain 'opset4' of Third is reserved; use another domain",
    _registers("Third", "irexec"): ", line 3: domain 'irexec' of Third is reserved; use another domain",
    _registers("Third", rule=""): ": the shape rule of Third has no annotation of its result",
    _registers("Third", parameter="data"): ": parameter 'data' of the kernel of Third has no annotation",
    _registers("Third").partition("@kernel")[0]: ": Third of test.ops has no shape rule",
    OPERATION: ", line 4: Half of test.ops is registered twice, by plug-in 'ops.py' ({folder}/ops.py) too",
}


@pytest.mark.parametrize("source", _FAULTS)
@pytest.mark.sampled(4)
def test_a_fault_of_a_plugin_is_one_sentence(folder: Path, source: str) -> None:
    (folder / "bad.py").write_text(source)
    error = _irexec(folder, "validate", "m.xml", "--plugin", "ops.py", "--plugin", "bad.py", code=3)[1]
    expected = _FAULTS[source].format(folder=folder)
    assert error == f"error: plug-in 'bad.py' ({folder / 'bad.py'}){expected}\n"


def test_a_plugin_that_does_not_exist(folder: Path) -> None:
    error = _irexec(folder, "explain", "IR103", "--plugin", "none.py", code=3)[1]
    assert error == f"error: plug-in 'none.py' ({folder / 'none.py'}): does not exist\n"
    assert "is not a file" in _irexec(folder, "explain", "IR103", "--plugin", ".", code=3)[1]
    assert "No module named 'none'" in _irexec(folder, "explain", "IR103", "--plugin", "none", code=3)[1]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("data.no", "the kernel of Half of test.ops (plug-in 'ops.py' ({folder}/ops.py)) raises AttributeError"),
        ("data.tolist()", "returns list, expected an array"),
        ("data[:2]", "returns float32[2], its shape rule f32[3]"),
        ("data.astype('i8')", "returns int64[3], its shape rule f32[3]"),
        ("(data, data)", "returns 2 outputs, its shape rule 1"),
    ],
)
@pytest.mark.sampled(8)
def test_a_fault_of_a_kernel_is_located(folder: Path, result: str, message: str) -> None:
    (folder / "ops.py").write_text(OPERATION.replace("(data / 2**times).astype(data.dtype)", result))
    error = _irexec(folder, "infer", "m.xml", "-i", "x.npy", "--plugin", "ops.py", code=3)[1]
    assert error.startswith("error: layer 1 'y' (Half of test.ops, line ")
    assert message.format(folder=folder) in error


_RULE = "return Fact(data.element, data.shape)"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("return None", "returns NoneType, expected a Fact"),
        ("return 3", "returns int, expected a Fact"),
        ("return (data, data)", "returns 2 facts, its annotation has 1"),
        ("return Fact('f32', data.shape)", "returns the element type 'f32', expected one such as irexec.f32"),
        ("return Fact(data.element, 4)", "returns the shape 4, expected a tuple of int and Dim"),
        ("return Fact(data.element, (2, 'a'))", "returns the shape (2, 'a'), expected a tuple of int and Dim"),
        ("return Fact(data.element, (2.5,))", "returns the shape (2.5,), expected a tuple of int and Dim"),
        ("return data.none", "raises AttributeError: 'Fact' object has no attribute 'none'"),
    ],
)
@pytest.mark.sampled(12)
def test_a_fault_of_a_shape_rule_is_located(folder: Path, result: str, message: str) -> None:
    (folder / "ops.py").write_text(OPERATION.replace(_RULE, result))
    found = _irexec(folder, "validate", "m.xml", "--format", "github", "--plugin", "ops.py", code=1)[0]
    assert f"1 y (Half): the shape rule of Half of test.ops (plug-in 'ops.py' ({folder}/ops.py)) {message}" in found
    error = _irexec(folder, "infer", "m.xml", "-i", "x.npy", "--plugin", "ops.py", code=3)[1]
    assert error.startswith("error: layer 1 'y' (Half of test.ops, line ") and message in error


def test_a_shape_rule_may_return_sizes_of_numpy(folder: Path) -> None:
    (folder / "ops.py").write_text(
        OPERATION.replace(_RULE, "return Fact(data.element, [__import__('numpy').int64(3)])")
    )
    assert _irexec(folder, "validate", "m.xml", "--plugin", "ops.py")[0] == "m.xml: no findings\n"


@pytest.mark.slow
def test_a_plugin_does_not_replace_a_translator_of_irexec(folder: Path) -> None:
    pytest.importorskip("onnx")
    (folder / "bad.py").write_text(OPERATION.replace('"test.domain", "Halve"', '"ai.onnx", "Relu"'))
    error = _irexec(folder, "validate", str(DIGITS / "classifier.onnx"), "--plugin", "bad.py", code=3)[1]
    assert error.endswith("irexec translates ai.onnx.Relu, a plug-in cannot replace it\n")


def test_a_failed_plugin_leaves_nothing_registered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.VARIABLE, str(folder / "bad.py"))
    (folder / "bad.py").write_text(OPERATION.replace("test.ops", "failed.ops") + "\nraise ValueError('no')")
    failing = Plugins()
    monkeypatch.setattr("irexec.schema.extension.plugins", failing)
    for _ in range(2):
        with pytest.raises(PluginError, match="line 17: ValueError: no"):
            failing.load()
    monkeypatch.delenv(module.VARIABLE)
    with pytest.raises(AttributeError, match=r"failed\.ops"):
        irexec.opset.extension("failed.ops")


def test_a_plugin_that_fails_is_not_used_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.VARIABLE, "json")
    failing = Plugins()
    with pytest.raises(PluginError, match=r"does not exist$"):
        failing.use([str(folder / "none.py")])
    assert os.environ[module.VARIABLE] == "json"
    failing.load()


def test_an_entry_point_with_operations_alone_waits_for_an_operation(folder: Path) -> None:
    site = folder / "site"
    (site / "half_ops-1.0.dist-info").mkdir(parents=True)
    (site / "half_ops-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: half-ops\nVersion: 1.0\n")
    (site / "half_ops-1.0.dist-info" / "entry_points.txt").write_text("[irexec.operations]\nhalf = half_ops\n")
    (site / "half_ops.py").write_text(OPERATION)
    path = os.pathsep.join([str(ROOT), str(site)])
    program = (
        "import sys, irexec.ops; from irexec.schema.registry import is_known_type; from irexec.schema.plugins import plugins\n"
        "plugins.load(); print('half_ops' in sys.modules, is_known_type('Relu'), 'half_ops' in sys.modules)\n"
        "print(is_known_type('Half'), is_known_type('BPETokenizer'), 'half_ops' in sys.modules)"
    )
    assert said(folder, "-c", program, PYTHONPATH=path)[0] == "False True False\nTrue True True\n"


def test_nothing_is_imported_where_there_is_no_plugin(folder: Path) -> None:
    program = "import sys; from irexec.schema.plugins import plugins; plugins.load(); print('importlib.metadata' in sys.modules)"
    assert said(folder, "-c", program)[0] == "False\n"
