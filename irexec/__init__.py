"""irexec reads, checks, runs, explains, makes and writes OpenVINO IR in Python on NumPy.

model = irexec.read_model("model.xml")
compiled = irexec.compile_model(model)
result = compiled({"x": array})
"""

# isort: off
import irexec.startup  # first, so that Ctrl-C during the imports below is handled

# isort: on
import importlib
from typing import TYPE_CHECKING, Any

import irexec.records

if TYPE_CHECKING:
    from irexec import opset, plugins, testing
    from irexec.analysis.builder import Builder
    from irexec.analysis.codes import explain, findings
    from irexec.analysis.cost import Cost
    from irexec.analysis.model import Model, Port
    from irexec.analysis.shape_inference import Inference
    from irexec.analysis.validate import finding_check, finding_code
    from irexec.api import Core, compile_model, infer, save_model, to_onnx, validate
    from irexec.authoring.editor import Editor
    from irexec.authoring.tensor import Tensor
    from irexec.compile.plan_report import PlanReport, StepRow
    from irexec.compile.plan_report import Reason as PlanReason
    from irexec.conformance import CaseResult, Conformance, ConformOptions, Corpus, build_corpus, conform
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
    from irexec.errors import (
        ConversionError,
        ConversionWarning,
        EngineError,
        InputError,
        IrexecError,
        ModelError,
        NodeError,
        OpError,
        PluginError,
        RunTimeoutError,
        UnsupportedError,
    )
    from irexec.ir.codes import Code
    from irexec.ir.constants import Constant
    from irexec.ir.dims import Dim
    from irexec.ir.facts import Fact
    from irexec.ir.findings import Finding, Findings
    from irexec.ir.graph import Body, Graph, Node, Value
    from irexec.reading import convert, read_model
    from irexec.runtime.compiled_model import CompiledModel
    from irexec.runtime.inputs import Outputs
    from irexec.runtime.profile import Profile, ProfileRow
    from irexec.runtime.session import Session, StepRun
    from irexec.schema.extension import Operation, operation, translates
    from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
    from irexec.tools.arrays.statistics import Histogram, Statistics, constant_histogram, histogram
    from irexec.tools.batch.columns import ColumnPredictor
    from irexec.tools.batch.predictor import Batching, Predictor, PredictorOptions
    from irexec.tools.batch.run import BatchReport, BatchWatch, PartDone, batch
    from irexec.tools.bisecting import Bisection, JudgedRelease, ReleaseChange, ReleaseRun, bisect
    from irexec.tools.bisecting.releases import BisectOptions
    from irexec.tools.compare import (
        ComparedLayer,
        CompareOptions,
        Comparison,
        Divergence,
        InputRow,
        Suspect,
        TensorRow,
        Uncompared,
        compare,
    )
    from irexec.tools.diff import Change, Diff, Following, LayerDiff, LayerRef, ValueChange, diff
    from irexec.tools.engines.engine import EngineJob
    from irexec.tools.engines.runtimes import Runtime, Worker, open_runtime
    from irexec.tools.graph import Drawing, GraphFile, graph_fragment, graph_page, write_graph
    from irexec.tools.graph.draw import draw as graph
    from irexec.tools.graph.drawing import DrawnFrame, DrawnLayer
    from irexec.tools.images import ImageOptions
    from irexec.tools.inside import Inside, InsideCheck, InsideOptions, inside
    from irexec.tools.inspect.cost import CostReport, LayerCost, TypeCost, cost
    from irexec.tools.inspect.memory import LiveTensor, MemoryReport, PlannedMemory, memory
    from irexec.tools.inspect.precision import LayerPrecision, PrecisionReport, precision
    from irexec.tools.inspect.summary import Summary, TreeBranch, TreeReport, tree
    from irexec.tools.inspect.summary import summarize as inspect
    from irexec.tools.inspect.weights import StoredWeights
    from irexec.tools.joining import join
    from irexec.tools.judge import JudgedLayer, Judgement, JudgeOptions, StepOptions, judge
    from irexec.tools.measure import BenchOptions, BenchReport, EngineResult, ProfileOptions, bench, profile
    from irexec.tools.reduce import (
        Blame,
        Candidate,
        Check,
        CommandCheck,
        DoesNotFail,
        Failure,
        FindingCheck,
        OtherModelCheck,
        ReduceOptions,
        Reduction,
        RuntimeCheck,
        ValuesCheck,
        check_against,
        reduce,
    )
    from irexec.tools.reduce.checks import Files as CheckFiles
    from irexec.tools.reduce.reduction import ReducedLayer
    from irexec.tools.reduce.search import Step as ReduceStep
    from irexec.tools.report import ReportOptions, WrittenReport, report
    from irexec.tools.report import page_of as report_page
    from irexec.tools.run.input_sources import InputSource
    from irexec.tools.script import Script, script
    from irexec.tools.sensitivity import LayerSensitivity, MixedPrecision, Sensitivity, SensitivityOptions, sensitivity
    from irexec.tools.trapping.report import Ranges, Trap, TrappedTensor, TrapReport
    from irexec.tools.trapping.trap import record_ranges, trap

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "BatchReport",
    "BatchWatch",
    "Batching",
    "BenchOptions",
    "BenchReport",
    "BisectOptions",
    "Bisection",
    "Blame",
    "Body",
    "Builder",
    "Candidate",
    "CaseResult",
    "Change",
    "Check",
    "CheckFiles",
    "Code",
    "ColumnPredictor",
    "CommandCheck",
    "CompareOptions",
    "ComparedLayer",
    "Comparison",
    "CompiledModel",
    "ConformOptions",
    "Conformance",
    "Constant",
    "ConversionError",
    "ConversionWarning",
    "Core",
    "Corpus",
    "Cost",
    "CostReport",
    "Diff",
    "Dim",
    "Divergence",
    "DoesNotFail",
    "Drawing",
    "DrawnFrame",
    "DrawnLayer",
    "Editor",
    "Element",
    "EngineError",
    "EngineJob",
    "EngineResult",
    "Fact",
    "Failure",
    "Finding",
    "FindingCheck",
    "Findings",
    "Following",
    "Graph",
    "GraphFile",
    "Histogram",
    "ImageOptions",
    "Inference",
    "InputError",
    "InputRow",
    "InputSource",
    "Inside",
    "InsideCheck",
    "InsideOptions",
    "IrexecError",
    "JudgeOptions",
    "JudgedLayer",
    "JudgedRelease",
    "Judgement",
    "LayerCost",
    "LayerDiff",
    "LayerPrecision",
    "LayerRef",
    "LayerSensitivity",
    "LiveTensor",
    "MemoryReport",
    "MixedPrecision",
    "Model",
    "ModelError",
    "Node",
    "NodeError",
    "OpError",
    "Operation",
    "OtherModelCheck",
    "Outputs",
    "PartDone",
    "PlanReason",
    "PlanReport",
    "PlannedMemory",
    "PluginError",
    "Port",
    "PrecisionReport",
    "Predictor",
    "PredictorOptions",
    "Profile",
    "ProfileOptions",
    "ProfileRow",
    "Ranges",
    "ReduceOptions",
    "ReduceStep",
    "ReducedLayer",
    "Reduction",
    "ReleaseChange",
    "ReleaseRun",
    "ReportOptions",
    "RunTimeoutError",
    "Runtime",
    "RuntimeCheck",
    "Script",
    "Sensitivity",
    "SensitivityOptions",
    "Session",
    "Statistics",
    "StepOptions",
    "StepRow",
    "StepRun",
    "StoredWeights",
    "Summary",
    "Suspect",
    "Tensor",
    "TensorRow",
    "Tolerance",
    "Trap",
    "TrapReport",
    "TrappedTensor",
    "TreeBranch",
    "TreeReport",
    "TypeCost",
    "Uncompared",
    "UnsupportedError",
    "Value",
    "ValueChange",
    "ValuesCheck",
    "Worker",
    "WrittenReport",
    "agreement_of",
    "batch",
    "bench",
    "bf16",
    "bisect",
    "boolean",
    "build_corpus",
    "check_against",
    "compare",
    "compile_model",
    "conform",
    "constant_histogram",
    "convert",
    "cost",
    "diff",
    "explain",
    "f4e2m1",
    "f8e4m3",
    "f8e5m2",
    "f8e8m0",
    "f16",
    "f32",
    "f64",
    "finding_check",
    "finding_code",
    "findings",
    "graph",
    "graph_fragment",
    "graph_page",
    "histogram",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "infer",
    "inside",
    "inspect",
    "join",
    "judge",
    "memory",
    "nf4",
    "open_runtime",
    "operation",
    "opset",
    "plugins",
    "precision",
    "profile",
    "read_model",
    "record_ranges",
    "reduce",
    "report",
    "report_page",
    "save_model",
    "script",
    "sensitivity",
    "string",
    "testing",
    "to_onnx",
    "translates",
    "trap",
    "tree",
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
    "write_graph",
]

# The public API: the names that each module exports, imported at their first use so that importing irexec takes no
# time. A name of another form in irexec is written "own as public".
_MODULES: dict[str, str] = {
    "irexec.analysis.builder": "Builder",
    "irexec.analysis.codes": "explain, findings",
    "irexec.analysis.cost": "Cost",
    "irexec.analysis.model": "Model, Port",
    "irexec.analysis.validate": "finding_check, finding_code",
    "irexec.analysis.shape_inference": "Inference",
    "irexec.authoring.editor": "Editor",
    "irexec.conformance": "CaseResult, ConformOptions, Conformance, Corpus, build_corpus, conform",
    "irexec.tools.inspect.summary": "Summary, TreeBranch, TreeReport, summarize as inspect, tree",
    "irexec.tools.inside": "Inside, InsideCheck, InsideOptions, inside",
    "irexec.tools.joining": "join",
    "irexec.tools.measure": "BenchOptions, BenchReport, EngineResult, ProfileOptions, bench, profile",
    "irexec.tools.sensitivity": "LayerSensitivity, MixedPrecision, Sensitivity, SensitivityOptions, sensitivity",
    "irexec.tools.judge": "JudgeOptions, JudgedLayer, Judgement, StepOptions, judge",
    "irexec.api": "Core, compile_model, infer, save_model, to_onnx, validate",
    "irexec.reading": "convert, read_model",
    "irexec.authoring.tensor": "Tensor",
    "irexec.compile.plan_report": "PlanReport, Reason as PlanReason, StepRow",
    "irexec.dtypes.elements": (
        "Element, BF16 as bf16, BOOLEAN as boolean, F4E2M1 as f4e2m1, F8E4M3 as f8e4m3, F8E5M2 as f8e5m2, "
        "F8E8M0 as f8e8m0, F16 as f16, F32 as f32, F64 as f64, I4 as i4, I8 as i8, I16 as i16, I32 as i32, "
        "I64 as i64, NF4 as nf4, STRING as string, U1 as u1, U2 as u2, U3 as u3, U4 as u4, U6 as u6, U8 as "
        "u8, U16 as u16, U32 as u32, U64 as u64"
    ),
    "irexec.errors": (
        "ConversionError, ConversionWarning, EngineError, InputError, IrexecError, ModelError, NodeError, "
        "OpError, PluginError, RunTimeoutError, UnsupportedError"
    ),
    "irexec.ir.codes": "Code",
    "irexec.ir.dims": "Dim",
    "irexec.ir.facts": "Fact",
    "irexec.ir.findings": "Finding, Findings",
    "irexec.ir.constants": "Constant",
    "irexec.ir.graph": "Body, Graph, Node, Value",
    "irexec.runtime.compiled_model": "CompiledModel",
    "irexec.runtime.inputs": "Outputs",
    "irexec.runtime.profile": "Profile, ProfileRow",
    "irexec.runtime.session": "Session, StepRun",
    "irexec.schema.extension": "Operation, operation, translates",
    "irexec.tools.arrays.agreement": "Agreement, Tolerance, agreement_of",
    "irexec.tools.arrays.statistics": "Histogram, Statistics, constant_histogram, histogram",
    "irexec.tools.batch.run": "BatchReport, BatchWatch, PartDone, batch",
    "irexec.tools.batch.columns": "ColumnPredictor",
    "irexec.tools.batch.predictor": "Batching, Predictor, PredictorOptions",
    "irexec.tools.bisecting": "Bisection, JudgedRelease, ReleaseChange, ReleaseRun, bisect",
    "irexec.tools.bisecting.releases": "BisectOptions",
    "irexec.tools.compare": (
        "CompareOptions, Comparison, Divergence, InputRow, ComparedLayer, Suspect, TensorRow, Uncompared, compare"
    ),
    "irexec.tools.diff": "Change, Diff, Following, LayerDiff, LayerRef, ValueChange, diff",
    "irexec.tools.engines.engine": "EngineJob",
    "irexec.tools.engines.runtimes": "Runtime, Worker, open_runtime",
    "irexec.tools.graph": "Drawing, GraphFile, graph_fragment, graph_page, write_graph",
    "irexec.tools.graph.drawing": "DrawnFrame, DrawnLayer",
    "irexec.tools.graph.draw": "draw as graph",
    "irexec.tools.images": "ImageOptions",
    "irexec.tools.inspect.cost": "CostReport, LayerCost, TypeCost, cost",
    "irexec.tools.inspect.memory": "LiveTensor, MemoryReport, PlannedMemory, memory",
    "irexec.tools.inspect.precision": "LayerPrecision, PrecisionReport, precision",
    "irexec.tools.inspect.weights": "StoredWeights",
    "irexec.tools.reduce": (
        "Blame, Candidate, Check, CommandCheck, DoesNotFail, Failure, FindingCheck, OtherModelCheck, "
        "ReduceOptions, Reduction, RuntimeCheck, ValuesCheck, check_against, reduce"
    ),
    "irexec.tools.reduce.checks": "Files as CheckFiles",
    "irexec.tools.reduce.reduction": "ReducedLayer",
    "irexec.tools.reduce.search": "Step as ReduceStep",
    "irexec.tools.report": "ReportOptions, WrittenReport, page_of as report_page, report",
    "irexec.tools.run.input_sources": "InputSource",
    "irexec.tools.script": "Script, script",
    "irexec.tools.trapping.report": "Ranges, Trap, TrapReport, TrappedTensor",
    "irexec.tools.trapping.trap": "record_ranges, trap",
}
_PUBLIC: dict[str, tuple[str, str]] = {
    entry.rpartition(" ")[2]: (module, entry.partition(" ")[0])
    for module, names in _MODULES.items()
    for entry in names.split(", ")
}
_SUBMODULES = ("opset", "plugins", "testing")


# The tools draw the displays of objects of any layer, the API writes models, and the editor changes them; no layer
# below imports any of them.
irexec.records.renderers = lambda: importlib.import_module("irexec.tools.sections")
irexec.records.writer = lambda: importlib.import_module("irexec.api").save_model
irexec.records.editor = lambda: importlib.import_module("irexec.authoring.editor").Editor


def __getattr__(name: str) -> Any:
    """Import a public name at its first use; it is an attribute from then on."""
    if name in _SUBMODULES:
        return importlib.import_module(f"irexec.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'irexec' has no attribute {name!r}")
    module, own = _PUBLIC[name]
    value = getattr(importlib.import_module(module), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
