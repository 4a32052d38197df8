"""The extensions that Model Explorer loads: an adapter, and providers of node data.

Source: adapter.py and node_data_provider.py of google-ai-edge/model-explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dacite import Config, from_dict
from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs
from model_explorer.graph_builder import Graph
from model_explorer.node_data_builder import GraphNodeData
from model_explorer.node_data_provider import (
    GetConfigEditorsResult,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)

from irexec.analysis.validate import validate
from irexec.errors import IrexecError
from irexec.messages import silent
from irexec.tools.graph.draw import GraphOptions, create
from irexec.tools.graph.explorer import explorer_graph
from irexec.tools.inspect.cost import cost
from irexec.tools.judge import JudgeOptions, judge
from irexec.tools.measure import ProfileOptions, profile
from irexec.tools.node_data import NodeData, of_cost, of_findings, of_judgement, of_profile
from irexec.tools.run.shapes import read_with_shapes

_SUFFIXES = ["xml", "onnx"]
_WORDS = Config(check_types=False)
"""Model Explorer shows words as values, and declares numbers."""
_SOURCE = "https://github.com/irexec/irexec"


class IrexecAdapter(Adapter):  # type: ignore[misc]
    """Graphs of IRs, and of ONNX models as irexec converts them: layers by module, types and shapes on edges."""

    metadata = AdapterMetadata(
        id="irexec", name="OpenVINO IR (irexec)", description="Models of OpenVINO, and ONNX as irexec reads it.",
        source_repo=_SOURCE, fileExts=_SUFFIXES,
    )  # fmt: skip

    def convert(self, model_path: str, settings: Mapping[str, Any]) -> ModelExplorerGraphs:
        """The graph of a file, with the findings of validation among the attributes."""
        drawing = create(model_path, (), GraphOptions(cluster=True, findings=True), silent)
        return {"graphs": [from_dict(Graph, explorer_graph(drawing))]}


PROVIDERS: dict[str, tuple[str, str, Callable[[str], list[NodeData]]]] = {
    "irexec_findings": (
        "irexec: findings",
        "What irexec validate finds.",
        lambda path: [of_findings(validate(read_with_shapes(path, None, {})))],
    ),
    "irexec_cost": (
        "irexec: cost",
        "MACs and bytes of each layer.",
        lambda path: of_cost(cost(read_with_shapes(path, None, {}))),
    ),
    "irexec_times": (
        "irexec: times",
        "Milliseconds of each layer in irexec, with random inputs.",
        lambda path: [of_profile(profile(path, (), ProfileOptions(), silent))],
    ),
    "irexec_verdicts": (
        "irexec: verdicts on OpenVINO",
        "Each layer of OpenVINO beside the interval of correct results, with random inputs.",
        lambda path: [of_judgement(judge(path, options=JudgeOptions()))],
    ),
}
"""Name, description and function of each provider, by its id."""


class IrexecNodeData(NodeDataProvider):  # type: ignore[misc]
    """Findings, costs, times and verdicts of a model."""

    metadata = [  # noqa: RUF012 - as Model Explorer declares it
        NodeDataProviderMetadata(
            id=id, name=name, description=description, source_repo=_SOURCE, icon="fact_check",
            filter=NodeDataProviderFilter(modelFileExts=_SUFFIXES),
        )
        for id, (name, description, _) in PROVIDERS.items()
    ]  # fmt: skip

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Nothing is asked."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: Mapping[str, Any], graph: Graph | None
    ) -> NodeDataProviderResult:
        """The node data of a file, or why there is none."""
        try:
            found = PROVIDERS[provider_id][2](model_path)
        except IrexecError as error:
            return NodeDataProviderResult(error=str(error))
        return NodeDataProviderResult(result=[from_dict(GraphNodeData, one, _WORDS) for one in found])
