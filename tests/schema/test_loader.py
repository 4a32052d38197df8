"""Modules are imported for what they register; fast kernels of plug-ins."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.errors import NodeError
from irexec.native.library import library
from irexec.plugins import Candidate, Fact, FloatTensor, Kernel, KernelContext, Scratch, Task, operation
from irexec.schema.registry import discard
from irexec.testing.kernels import check_kernels

# In a new process: import one module after the other, and note what each registers.
_SCRIPT = """
import importlib, json, sys
import irexec.ops, irexec.backend
from irexec.schema import plugins
from irexec.schema import registry as operations
from irexec.backend import registry as kernels

def keys():
    return {
        "operation": {(t, str(v)) for t, versions in operations._REGISTRY.items() for v in versions},
        "kernels": {(t, str(v), len(found)) for (t, v), found in kernels._CANDIDATES.items()},
        "block": {(t, str(v)) for t, v in kernels._BLOCK_OPERATIONS},
    }

missing = []
for modules in (plugins.operations, kernels.loader):
    modules.modules_for("")
    for module in list(modules._pending):
        before, known = keys(), set(sys.modules)
        importlib.import_module(module)
        imported = {module} | (set(sys.modules) - known)
        for kind, found in keys().items():
            for type, *version in sorted(found - before[kind]):
                if not imported & set(modules.modules_for(type)):
                    missing.append([kind, type, *version, module])
print(json.dumps(missing))
"""


def test_every_registration_is_found_by_name() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("type", ["Add", "Convolution", "TensorIterator"])
def test_one_operation_does_not_import_all(type: str) -> None:
    script = f"""
import sys
from irexec.schema.registry import resolve
import irexec.ops
before = len([name for name in sys.modules if name.startswith("irexec.ops.")])
print(resolve({type!r}, "opset1").type, len([name for name in sys.modules if name.startswith("irexec.ops.")]) - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    name, count = done.stdout.split()
    assert name == type
    assert 0 < int(count) < 15


def test_every_module_with_kernels_is_imported() -> None:
    """A module in a package of kernels is imported by the package, or its kernels are never offered."""
    code = """
import sys
from pathlib import Path
from irexec.backend import registry
registry.loader.load()
registry.add_native()
registry.loader.load()
root = Path(registry.__file__).parent
for path in sorted(root.rglob("*.py")):
    name = ".".join(("irexec", "backend", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
    if "\\n@kernels(" in path.read_text("utf-8") and name not in sys.modules:
        print(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unimported = done.stdout.split()
    assert unimported == [] or (library() is None and all(".native." in name for name in unimported))


# Fast kernels of plug-ins: selected for static and dynamic shapes, and their faults name the plug-in and the layer.


_DOMAINS = map("kernel{}.ops".format, itertools.count())


class Doubled(Kernel):
    """The data times two, row by row."""

    def __init__(self, task: Task) -> None:
        super().__init__("doubled", splits=True, records=True)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        def row(index: int, scratch: Scratch) -> None:
            np.multiply(inputs[0][index], 2, out=outputs[0][index])

        context.parallel(len(inputs[0]), row)


def _no(*arguments: object) -> Any:
    raise ValueError("no")


class DoesNotPack(Doubled):
    """A kernel that cannot pack."""

    pack = _no


class DoesNotRun(Doubled):
    """A kernel that cannot run."""

    run = _no


class DoesNotFinish(Doubled):
    """A kernel of which a block on another thread fails."""

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        context.parallel(len(inputs[0]), _no)


@pytest.fixture
def doubled() -> Iterator[Any]:
    """An operation of a plug-in."""

    @operation("Doubled", domain=next(_DOMAINS))
    def doubled(data: FloatTensor) -> np.ndarray:
        """The data times two."""
        return data + data

    @doubled.shape_rule
    def _(data: Fact) -> Fact:
        return Fact(data.element, data.shape)

    yield doubled
    discard(doubled)


def _model(operation: Any, shape: Sequence[int]) -> irexec.Model:
    x = irexec.opset.parameter(shape, "f32", "x")
    return irexec.Model([irexec.opset.extension(operation.version).doubled(x * 3, name="y") + 1], [x])


@pytest.mark.parametrize("shape", [[4, 3], [-1, 3]], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_fast_kernel_runs(doubled: Any, shape: list[int], threads: int) -> None:
    asked = []

    @doubled.fast_kernel
    def candidates(task: Task) -> Iterator[Candidate]:
        asked.append(task.shape(0))
        yield Candidate(100.0, lambda: Doubled(task))

    compiled = irexec.compile_model(_model(doubled, shape), threads=threads)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for _ in range(3):
        np.testing.assert_array_equal(compiled([x])[0], 6 * x + 1)
    assert set(asked) == {(4, 3)}
    assert ("doubled" if shape[0] > 0 else "by shape") in str(compiled.plan)
    irexec.compile_model(_model(doubled, shape), optimize=False)
    assert len(set(asked)) == 1


def test_a_fast_kernel_agrees_for_every_order_in_memory(doubled: Any) -> None:
    doubled.fast_kernel(lambda task: [Candidate(1.0, lambda: Doubled(task))])
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert check_kernels("Doubled", doubled.version, [x])


class Flat(Kernel):
    """The data times two, written into one row."""

    def __init__(self, task: Task) -> None:
        super().__init__("flat")

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        np.multiply(inputs[0].reshape(-1), 2, out=outputs[0].reshape(-1))


def test_outputs_are_contiguous(doubled: Any) -> None:
    """Also where an output lies in the memory of a Concat."""
    doubled.fast_kernel(lambda task: [Candidate(1.0, lambda: Flat(task))])
    x, function = irexec.opset.parameter([2, 3, 4], "f32", "x"), irexec.opset.extension(doubled.version).doubled
    joined = irexec.opset.concat(function(x), function(x * 2), axis=1)
    compiled = irexec.compile_model(irexec.Model([joined], [x]))
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(compiled([values])[0], np.concatenate([2 * values, 4 * values], axis=1))
    assert "flat" in str(compiled.plan)


def test_without_candidates_the_reference_kernel_runs(doubled: Any) -> None:
    doubled.fast_kernel(lambda task: [])
    compiled = irexec.compile_model(_model(doubled, [2]))
    np.testing.assert_array_equal(compiled([np.ones(2, np.float32)])[0], [7, 7])
    assert "reference" in str(compiled.plan)


_FAULTS: dict[str, tuple[Callable[[Task], Any], str]] = {
    "raises": (_no, "raises ValueError: no"),
    "not iterable": (lambda task: None, "raises TypeError: 'NoneType' object is not iterable"),
    "not a candidate": (lambda task: [Doubled], "yields ABCMeta, expected a Candidate"),
    "not a kernel": (lambda task: [Candidate(1.0, list)], "makes list, expected a Kernel"),
    "not made": (lambda task: [Candidate(1.0, lambda: _no())], "raises ValueError: no"),
    "not packed": (lambda task: [Candidate(1.0, lambda: DoesNotPack(task))], "raises ValueError: no"),
    "not run": (lambda task: [Candidate(1.0, lambda: DoesNotRun(task))], "raises ValueError: no"),
    "not finished": (lambda task: [Candidate(1.0, lambda: DoesNotFinish(task))], "raises ValueError: no"),
}


@pytest.mark.parametrize("shape", [[4, 3], [-1, 3]], ids=str)
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_of_a_fast_kernel_is_located(doubled: Any, shape: list[int], fault: str) -> None:
    candidates, message = _FAULTS[fault]
    doubled.fast_kernel(candidates)
    with pytest.raises(NodeError) as caught:
        compiled = irexec.compile_model(_model(doubled, shape))
        for _ in range(2):
            compiled([np.ones((4, 3), np.float32)])
    text = str(caught.value)
    assert text.startswith(f"layer 3 'y' (Doubled of {doubled.version}")
    assert f"the fast kernel of Doubled of {doubled.version} (module 'tests.schema.test_loader')" in text
    assert message in text
