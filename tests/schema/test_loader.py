"""Modules are imported for what they register: everything that is registered under a name is found by it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from irexec.native.library import library

# In a new process: import one module after the other, and note what each registers.
_SCRIPT = """
import importlib, json, sys
import irexec.ops, irexec.backend
from irexec.schema import loader
from irexec.schema import registry as operations
from irexec.backend import registry as kernels

def keys():
    return {
        "operation": {(t, str(v)) for t, versions in operations._REGISTRY.items() for v in versions},
        "kernels": {(t, str(v), len(found)) for (t, v), found in kernels._CANDIDATES.items()},
        "block": {(t, str(v)) for t, v in kernels._BLOCK_OPERATIONS},
    }

missing = []
for modules in (loader.operations, kernels.loader):
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
