"""irexec reads, checks, runs, explains and writes OpenVINO IR in Python on NumPy.

model = irexec.read_model("model.xml")
compiled = irexec.compile_model(model)
result = compiled({"x": array})
"""

from irexec.analysis.builder import Builder
from irexec.analysis.findings import Finding
from irexec.analysis.model import Model, Port
from irexec.analysis.validate import validate
from irexec.api import read_model, save_model
from irexec.errors import ConversionError, InputError, IrexecError, ModelError, NodeError, OpError, UnsupportedError
from irexec.ir.dims import Dim
from irexec.runtime.session import CompiledModel, Outputs, Session, compile_model

__version__ = "0.1.0"

__all__ = [
    "Builder",
    "CompiledModel",
    "ConversionError",
    "Dim",
    "Finding",
    "InputError",
    "IrexecError",
    "Model",
    "ModelError",
    "NodeError",
    "OpError",
    "Outputs",
    "Port",
    "Session",
    "UnsupportedError",
    "compile_model",
    "read_model",
    "save_model",
    "validate",
]
