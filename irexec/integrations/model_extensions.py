"""Triton's extensions of the Open Inference Protocol: model configuration, statistics, repository index.

Source: docs/protocol/extension_model_configuration.md, extension_statistics.md and extension_model_repository.md of
triton-inference-server/server, and protobuf/grpc_service.proto and model_config.proto of
triton-inference-server/common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irexec.analysis.model import Port
from irexec.errors import InputError
from irexec.integrations.tensors import DATATYPES, datatype_of, sizes_of
from irexec.tools.serving import ModelStatistics, ServedModel

PLATFORM = "irexec"
VERSION = "1"
"""The only version of each model."""
EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository(index)", "statistics")

_SERVICE = "inference.GRPCInferenceService"
_CONFIG_TYPES = [f"TYPE_{name}" for name in (*DATATYPES, "STRING")]
"""The types of model_config.proto in the order of their numbers, from 1 on."""


class UnknownModelError(InputError):
    """A request for a model, or a version of a model, that does not exist."""


class Extensions:
    """The answers of the extensions, as the documents of HTTP.

    Args:
        models: the served models.
        statistics: the statistics of each model, by its name.
        max_batch: the maximum number of items of a run.
        server: the version of the server.
    """

    def __init__(
        self, models: Sequence[ServedModel], statistics: Mapping[str, ModelStatistics], max_batch: int, server: str
    ) -> None:
        self.models = {model.name: model for model in models}
        self.server = server
        self._statistics, self._max_batch = statistics, max_batch

    def model(self, name: str, version: str = "") -> ServedModel:
        """The model of a name; raises UnknownModelError if the model or this version of it does not exist."""
        if name not in self.models:
            raise UnknownModelError(f"there is no model {name!r}")
        if version not in ("", VERSION):
            raise UnknownModelError(f"there is no version {version!r} of model {name!r}, only {VERSION!r}")
        return self.models[name]

    def config(self, name: str, version: str = "") -> dict[str, Any]:
        """The configuration of a model. ``dims`` lack axis 0 if the model accepts batches."""
        model = self.model(name, version)
        skipped = 1 if model.takes_batches and self._max_batch > 1 else 0
        return {
            "name": name,
            "platform": PLATFORM,
            "backend": PLATFORM,
            "max_batch_size": self._max_batch if skipped else 0,
            "input": [_tensor_config(port, skipped) for port in model.inputs],
            "output": [_tensor_config(port, skipped) for port in model.outputs],
        }

    def statistics(self, name: str = "", version: str = "") -> dict[str, Any]:
        """The statistics of a model, or of all models."""
        names = list(self.models) if not name else [self.model(name, version).name]
        return {"model_stats": [self._statistics[each].as_dict(each, VERSION) for each in names]}

    def index(self, ready: bool = False) -> list[dict[str, str]]:
        """The models of the repository. All models are loaded: ``ready`` changes nothing."""
        return [{"name": name, "version": VERSION, "state": "READY", "reason": ""} for name in self.models]


def _tensor_config(port: Port, skipped: int) -> dict[str, Any]:
    datatype = datatype_of(port.element)
    sizes = sizes_of(port) if port.shape is None else sizes_of(port)[skipped:]
    return {"name": port.name, "data_type": f"TYPE_{'STRING' if datatype == 'BYTES' else datatype}", "dims": sizes}


def http_routes(app: Any, extensions: Extensions) -> None:
    """Add the routes of the extensions to a FastAPI application, in front of those of the protocol."""
    from fastapi.responses import JSONResponse

    def route(path: str, method: str, answer: Callable[..., Any]) -> None:
        app.add_api_route(path, answer, methods=[method], response_class=JSONResponse)

    async def refuse(request: Any, error: Exception) -> Any:
        return JSONResponse({"error": str(error)}, 404)

    async def all_statistics() -> Any:
        return extensions.statistics()

    async def statistics(model_name: str) -> Any:
        return extensions.statistics(model_name)

    async def config(model_name: str) -> Any:
        return extensions.config(model_name)

    async def index() -> Any:
        return extensions.index()

    app.add_exception_handler(UnknownModelError, refuse)
    route("/v2/models/stats", "GET", all_statistics)
    route("/v2/models/{model_name}/stats", "GET", statistics)
    route("/v2/models/{model_name}/config", "GET", config)
    route("/v2/repository/index", "POST", index)


# The fields of each message: number and type, with an asterisk for repeated ones. Other fields are left out, which
# clients read as their defaults.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "ModelConfigRequest": {"name": (1, "string"), "version": (2, "string")},
    "TensorConfig": {"name": (1, "string"), "data_type": (2, "int32"), "dims": (4, "int64*")},
    "OutputConfig": {"name": (1, "string"), "data_type": (2, "int32"), "dims": (3, "int64*")},
    "ModelConfig": {
        "name": (1, "string"), "platform": (2, "string"), "max_batch_size": (4, "int32"), "input": (5, "TensorConfig*"),
        "output": (6, "OutputConfig*"), "backend": (17, "string"),
    },
    "ModelConfigResponse": {"config": (1, "ModelConfig")},
    "ModelStatisticsRequest": {"name": (1, "string"), "version": (2, "string")},
    "StatisticDuration": {"count": (1, "uint64"), "ns": (2, "uint64")},
    "InferStatistics": {
        "success": (1, "StatisticDuration"), "fail": (2, "StatisticDuration"), "queue": (3, "StatisticDuration"),
        "compute_input": (4, "StatisticDuration"), "compute_infer": (5, "StatisticDuration"),
        "compute_output": (6, "StatisticDuration"),
    },
    "InferBatchStatistics": {
        "batch_size": (1, "uint64"), "compute_input": (2, "StatisticDuration"),
        "compute_infer": (3, "StatisticDuration"), "compute_output": (4, "StatisticDuration"),
    },
    "ModelStatistics": {
        "name": (1, "string"), "version": (2, "string"), "last_inference": (3, "uint64"),
        "inference_count": (4, "uint64"),
        "execution_count": (5, "uint64"), "inference_stats": (6, "InferStatistics"),
        "batch_stats": (7, "InferBatchStatistics*"),
    },
    "ModelStatisticsResponse": {"model_stats": (1, "ModelStatistics*")},
    "RepositoryIndexRequest": {"repository_name": (1, "string"), "ready": (2, "bool")},
    "ModelIndex": {"name": (1, "string"), "version": (2, "string"), "state": (3, "string"), "reason": (4, "string")},
    "RepositoryIndexResponse": {"models": (1, "ModelIndex*")},
}  # fmt: skip


def message_types() -> dict[str, Any]:
    """The classes of the messages by name, in a package name of irexec: clients compare no names."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="irexec_extensions.proto", package="irexec.inference", syntax="proto3"
    )
    for name, columns in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for column, (number, kind) in columns.items():
            base = kind.removesuffix("*")
            added = message.field.add(name=column, number=number)
            added.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
            if base in _MESSAGES:
                added.type, added.type_name = field.TYPE_MESSAGE, f".irexec.inference.{base}"
            else:
                added.type = getattr(field, f"TYPE_{base.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"irexec.inference.{name}") for name in _MESSAGES)
    return {descriptor.name: message_factory.GetMessageClass(descriptor) for descriptor in found}


def grpc_handler(extensions: Extensions) -> Any:
    """The handler of the extensions' calls, for a server that also has the handler of the protocol."""
    import grpc

    types = message_types()

    def config(request: Any) -> Any:
        found = extensions.config(request.name, request.version)
        for side in ("input", "output"):
            found[side] = [{**each, "data_type": _CONFIG_TYPES.index(each["data_type"]) + 1} for each in found[side]]
        return types["ModelConfigResponse"](config=found)

    def statistics(request: Any) -> Any:
        return types["ModelStatisticsResponse"](**extensions.statistics(request.name, request.version))

    def index(request: Any) -> Any:
        return types["RepositoryIndexResponse"](models=extensions.index(request.ready))

    def handler(answer: Callable[[Any], Any], name: str) -> Any:
        async def answered(request: Any, context: Any) -> Any:
            try:
                return answer(request)
            except UnknownModelError as error:
                await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

        return grpc.unary_unary_rpc_method_handler(
            answered, types[f"{name}Request"].FromString, types[f"{name}Response"].SerializeToString
        )

    calls = {"ModelConfig": config, "ModelStatistics": statistics, "RepositoryIndex": index}
    return grpc.method_handlers_generic_handler(
        _SERVICE, {name: handler(answer, name) for name, answer in calls.items()}
    )
