"""irexec reads, checks, runs, explains and writes OpenVINO IR in Python on NumPy.

model = irexec.read_model("model.xml")
compiled = irexec.compile_model(model)
result = compiled({"x": array})
"""

# isort: off
import irexec.startup  # noqa: F401 - first, so that Ctrl-C during the imports below is handled

# isort: on
import importlib
from typing import TYPE_CHECKING, Any

from irexec.errors import (
    ConversionError,
    ConversionWarning,
    EngineError,
    InputError,
    IrexecError,
    ModelError,
    NodeError,
    OpError,
    RunTimeoutError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from irexec.analysis.builder import Builder
    from irexec.analysis.model import Model, Port
    from irexec.api import compile_model, read_model, save_model, validate
    from irexec.compile.plan_report import PlanReport
    from irexec.dtypes.elements import BF16 as bf16
    from irexec.dtypes.elements import BOOLEAN as boolean
    from irexec.dtypes.elements import F4E2M1 as f4e2m1
    from irexec.dtypes.elements import F8E4M3 as f8e4m3
    from irexec.dtypes.elements import F8E5M2 as f8e5m2
    from irexec.dtypes.elements import F8E8M0 as f8e8m0
    from irexec.dtypes.elements import F16 as f16
    from irexec.dtypes.elements import F32 as f32
    from irexec.dtypes.elements import F64 as f64
    from irexec.dtypes.elements import I4 as i4
    from irexec.dtypes.elements import I8 as i8
    from irexec.dtypes.elements import I16 as i16
    from irexec.dtypes.elements import I32 as i32
    from irexec.dtypes.elements import I64 as i64
    from irexec.dtypes.elements import NF4 as nf4
    from irexec.dtypes.elements import STRING as string
    from irexec.dtypes.elements import U1 as u1
    from irexec.dtypes.elements import U2 as u2
    from irexec.dtypes.elements import U3 as u3
    from irexec.dtypes.elements import U4 as u4
    from irexec.dtypes.elements import U6 as u6
    from irexec.dtypes.elements import U8 as u8
    from irexec.dtypes.elements import U16 as u16
    from irexec.dtypes.elements import U32 as u32
    from irexec.dtypes.elements import U64 as u64
    from irexec.dtypes.elements import Element
    from irexec.ir.dims import Dim
    from irexec.ir.findings import Finding
    from irexec.runtime.compiled_model import CompiledModel
    from irexec.runtime.observation import StepRun
    from irexec.runtime.outputs import Outputs
    from irexec.runtime.profile import Profile
    from irexec.runtime.session import Session
    from irexec.tools.diff import Diff, diff

__version__ = "0.1.0"

__all__ = [
    "Builder",
    "CompiledModel",
    "ConversionError",
    "ConversionWarning",
    "Diff",
    "Dim",
    "Element",
    "EngineError",
    "Finding",
    "InputError",
    "IrexecError",
    "Model",
    "ModelError",
    "NodeError",
    "OpError",
    "Outputs",
    "PlanReport",
    "Port",
    "Profile",
    "RunTimeoutError",
    "Session",
    "StepRun",
    "UnsupportedError",
    "bf16",
    "boolean",
    "compile_model",
    "diff",
    "f4e2m1",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "f16",
    "f32",
    "f64",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "nf4",
    "read_model",
    "save_model",
    "string",
    "u1",
    "u2",
    "u3",
    "u4",
    "u6",
    "u8",
    "u16",
    "u32",
    "u64",
    "validate",
]

# What is imported when it is first asked for, so that importing the package takes no time: the names of each module, and the names
# of element types, which are constants in irexec.dtypes.elements.
_MODULES: dict[str, tuple[str, ...]] = {
    "irexec.analysis.builder": ("Builder",),
    "irexec.analysis.model": (
        "Model",
        "Port",
    ),
    "irexec.api": ("compile_model", "read_model", "save_model", "validate"),
    "irexec.compile.plan_report": ("PlanReport",),
    "irexec.ir.dims": ("Dim",),
    "irexec.ir.findings": ("Finding",),
    "irexec.runtime.observation": ("StepRun",),
    "irexec.runtime.outputs": ("Outputs",),
    "irexec.runtime.profile": ("Profile",),
    "irexec.runtime.compiled_model": ("CompiledModel",),
    "irexec.runtime.session": ("Session",),
    "irexec.tools.diff": ("Diff", "diff"),
    "irexec.dtypes.elements": ("Element",),
}
_ELEMENTS = (
    "bf16", "boolean", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "f16", "f32", "f64", "i4", "i8", "i16",
    "i32", "i64", "nf4", "string", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what is asked for; a name that was found is an attribute from then on."""
    if name in _ELEMENTS:
        value = getattr(importlib.import_module("irexec.dtypes.elements"), name.upper())
    else:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module 'irexec' has no attribute {name!r}")
        value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
