"""Language models of random weights, as exporters write them: converted, validated, and run step by step beside others.

A name is an architecture, a way to build it and a type of weights. Models of onnxruntime-genai's model builder need the
packages onnxruntime-genai, onnxscript and onnx_ir; without them they are counted as skipped.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import irexec
from irexec.cli.main import run
from irexec.tools.generating import GenerateOptions, generate
from tests.sweep.kind import Case, Kind, Outcome, temporary

STEPS = 8
# The model builder takes the first product with as many columns as the vocabulary for that of the logits.
_SIZES: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_HEAD = {"head_dim": 16}
_WINDOW = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
_TIMES = {
    "head_dim": 32, "rope_parameters": {
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}  # fmt: skip
_IMAGES = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 64}
_SHARED = {**_EXPERTS, "shared_expert_intermediate_size": 32}
_CONV = {"layer_types": ["conv", "full_attention"], "conv_L_cache": 3}

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "mistral": ("Mistral", {**_HEAD, "sliding_window": None}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", _HEAD),
    "gemma": ("Gemma", _HEAD),
    "gemma2": ("Gemma2", {**_HEAD, **_WINDOW, "query_pre_attn_scalar": 16}),
    "phi": ("Phi", {"num_key_value_heads": 4}),
    "phi3": ("Phi3", {"original_max_position_embeddings": 128}),
    "granite": ("Granite", {}),
    "olmo": ("Olmo", {}),
    "smollm3": ("SmolLM3", {}),
    "gptoss": ("GptOss", {**_HEAD, **_WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3moe": ("Qwen3Moe", {**_HEAD, **_EXPERTS}),
    "qwen35": ("Qwen3_5", {**_TIMES, **_DELTA}),
    "qwen35moe": ("Qwen3_5Moe", {**_TIMES, **_DELTA, **_SHARED}),
    "lfm2": ("Lfm2", _CONV),
    "lfm2moe": ("Lfm2Moe", {**_CONV, **_EXPERTS, "num_dense_layers": 1}),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
}
"""The class in transformers without its suffix, and the values of its configuration beside those of ``_SIZES``."""


def transformers() -> Any:
    """The package, which imports torchvision where it is installed; models of text do not need it."""
    loaded: dict[str, Any] = sys.modules
    loaded.setdefault("torchvision", None)
    return importlib.import_module("transformers")


def module_of(name: str) -> Any:
    """A model of transformers with random weights under which every layer matters."""
    hf = transformers()
    kind, more = CONFIGURATIONS[name]
    sizes = {**_SIZES, **more}
    torch.manual_seed(0)
    if kind.startswith("Qwen3_5"):
        config = getattr(hf, f"{kind}Config")(text_config=sizes, vision_config=_IMAGES, tie_word_embeddings=False)
        module = getattr(hf, f"{kind}ForConditionalGeneration")(config)
    else:
        module = getattr(hf, f"{kind}{'LMHeadModel' if kind == 'GPT2' else 'ForCausalLM'}")(
            getattr(hf, f"{kind}Config")(**sizes)
        )
    with torch.no_grad():
        for path, tensor in module.named_parameters():
            if tensor.dim() > 1:
                tensor.normal_(0, 1.5 / tensor.shape[-1] ** 0.5)
            elif "norm" in path and path.endswith("weight"):
                tensor.add_(0.2 * torch.randn_like(tensor))
            elif path.endswith("bias"):
                tensor.normal_(0, 0.1)
    return module.eval()


def with_builder(name: str, precision: str, folder: Path, **options: Any) -> Path:
    """The model.onnx that the model builder of onnxruntime-genai writes."""
    spec = importlib.util.find_spec("onnxruntime_genai")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("onnxruntime_genai")
    module_of(name).save_pretrained(folder / "hf")
    if name == "gptoss":
        _add_blocks(folder / "hf" / "model.safetensors")
    beside = str(Path(spec.origin).parent / "models")
    if beside not in sys.path:
        sys.path.insert(0, beside)
    builder, base = map(importlib.import_module, ("builder", "builders.base"))

    class NoTokenizer:
        """In place of a tokenizer, which a model of random weights does not have."""

        eos_token_id = 2

        @classmethod
        def from_pretrained(cls, *args: Any, **settings: Any) -> NoTokenizer:
            return cls()

        def get_vocab(self) -> dict[str, int]:
            return {}

    builder.AutoTokenizer = base.AutoTokenizer = NoTokenizer
    base.Model.save_processing = lambda *args: None
    target = options.pop("provider", "cpu")
    words = [f"{key}={value}" for key, value in options.items()]
    where = (None, str(folder / "hf"), str(folder / "onnx"), precision, target, str(folder / "cache"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        builder.create_model(*where, **builder.parse_extra_options(*where, words))
    return folder / "onnx" / "model.onnx"


class _Caching(torch.nn.Module):
    """A model with keys and values as tensors in and out."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *past: Any) -> Any:
        cache = transformers().DynamicCache(config=self.inner.config)
        for layer, keys, values in zip(cache.layers, past[::2], past[1::2], strict=True):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values, layer.is_initialized = keys, values, True
        found = self.inner(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache,
            use_cache=True,
        )  # fmt: skip
        return (found.logits, *(x for layer in cache.layers for x in (layer.keys, layer.values)))


def exported(name: str, folder: Path, dynamo: bool, half: bool = False) -> Path:
    """A model.onnx that torch.onnx writes, with caches as inputs and outputs."""
    module = module_of(name)
    config = module.config
    module.set_attn_implementation("eager" if not dynamo else "sdpa")
    groups = getattr(config, "num_key_value_heads", None) if config.model_type != "gpt2" else config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    kind = torch.float16 if half else torch.float32
    past = [torch.randn(2, groups, 3, size, dtype=kind) for _ in range(2 * config.num_hidden_layers)]
    tokens = torch.randint(3, 90, (2, 2))
    example = (tokens, torch.ones(2, 5, dtype=torch.long), torch.tensor([[3, 4]] * 2), *past)
    names = [f"{i}.{part}" for i in range(config.num_hidden_layers) for part in ("key", "value")]
    inputs = ["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{one}" for one in names)]
    axes: list[Any] = [{0: "batch", 1: "tokens"}, {0: "batch", 1: "total"}, {0: "batch", 1: "tokens"}]
    axes += [{0: "batch", 2: "past"}] * len(past)
    settings: dict[str, Any] = {"dynamic_axes": dict(zip(inputs, axes, strict=True))}
    if dynamo:
        settings = {"dynamic_shapes": (*(dict.fromkeys(one, torch.export.Dim.AUTO) for one in axes[:3]),
                                       tuple(dict.fromkeys(one, torch.export.Dim.AUTO) for one in axes[3:]))}  # fmt: skip
    path = folder / "model.onnx"
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(
            _Caching(module.to(kind)), example, str(path), input_names=inputs,
            output_names=["logits", *(f"present.{one}" for one in names)], dynamo=dynamo, **settings,
        )  # fmt: skip
    return path


def _add_blocks(path: Path) -> None:
    """Add random weights of experts in MXFP4, which the builder takes the weights of int4 from."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    width, inner = _SIZES["hidden_size"], _SIZES["intermediate_size"]
    for layer in range(_SIZES["num_hidden_layers"]):
        for projection, shape in (("gate_up", (2 * inner, width // 32)), ("down", (width, inner // 32))):
            name = f"model.layers.{layer}.mlp.experts.{projection}_proj"
            tensors[f"{name}_blocks"] = torch.randint(0, 256, (4, *shape, 16), dtype=torch.uint8)
            tensors[f"{name}_scales"] = torch.randint(123, 126, (4, *shape), dtype=torch.uint8)
    save_file(tensors, path, metadata={"format": "pt"})


def four_bits(path: Path) -> Path:
    """The model with its weights in four bits, as onnxruntime's quantizer writes MatMulNBits."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(path), block_size=32, is_symmetric=False)
    quantizer.process()
    target = path.with_name("four_bits.onnx")
    onnx.save(quantizer.model.model, target)
    return target


def compressed(path: Path) -> Path:
    """An IR of the model, whose weights NNCF compresses to four bits."""
    import nncf
    import openvino as ov

    model = nncf.compress_weights(
        ov.convert_model(path), mode=nncf.CompressWeightsMode.INT4_ASYM, group_size=32, all_layers=True
    )
    target = path.with_name("compressed.xml")
    ov.save_model(model, target, compress_to_fp16=False)
    return target


Build = Callable[[Path], Path]
MODELS: dict[str, tuple[str, Build]] = {
    **{
        f"{name}-builder-{precision}": (
            name, lambda folder, name=name, precision=precision: with_builder(name, precision, folder)
        )
        for name, precision in [
            *((name, "fp32") for name in CONFIGURATIONS if name not in ("mixtral", "qwen3moe", "gpt2")),
            *((name, "int4") for name in ("llama", "qwen3", "gptoss", "qwen35", "qwen35moe", "lfm2moe")),
            ("llama", "int8"),
        ]
    },
    "llama-builder-fp16": ("llama", lambda folder: with_builder("llama", "fp16", folder, provider="cuda")),
    "llama-builder-paged": ("llama", lambda folder: with_builder("llama", "fp16", folder, provider="cuda", use_paged_attention="true")),
    **{
        f"{name}-{'dynamo' if dynamo else 'legacy'}": (
            name, lambda folder, name=name, dynamo=dynamo: exported(name, folder, dynamo)
        )
        for dynamo in (True, False)
        for name in ("llama", "qwen2", "qwen3", "gemma", "phi3", "gpt2", "mixtral", "qwen3moe")
    },
    "llama-legacy-f16": ("llama", lambda folder: exported("llama", folder, False, half=True)),
    "llama-legacy-int4": ("llama", lambda folder: four_bits(exported("llama", folder, False))),
    "llama-legacy-nncf": ("llama", lambda folder: compressed(exported("llama", folder, False))),
}  # fmt: skip
"""The configuration and what builds the model, by name."""


class Sweep(Kind):
    """Language models."""

    cases = 1
    is_isolated = True

    def names(self) -> list[str]:
        """The models."""
        return list(MODELS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """Build the model; each case has another prompt."""
        configuration, build = MODELS[name]
        with temporary() as folder:
            try:
                path = build(folder)
            except ModuleNotFoundError as error:
                text = f"{error.name or error} is not installed"
                yield lambda number: [Outcome("skipped", text)]
                return
            except torch.onnx.errors.OnnxExporterError as error:
                text = str(error).strip().splitlines()[0]
                yield lambda number: [Outcome("not exported", text)]
                return
            yield lambda number: _checked(name, configuration, path, number)


def _checked(name: str, configuration: str, path: Path, number: int) -> Iterator[Outcome]:
    target = path.with_name("converted.xml")
    if path.suffix == ".onnx":
        code, text = _command("convert", str(path), "-o", str(target), "--overwrite")
        yield Outcome("converted", text) if code == 0 else Outcome("not converted", text, True)
        if code:
            return
    else:
        target = path
    findings = irexec.validate(irexec.read_model(target))
    codes = sorted({one.code for one in findings})
    yield Outcome(
        f"findings {' '.join(codes)}".strip(), str(findings[:2]), any(one.severity == "error" for one in findings)
    )
    prompt = np.random.default_rng(number).integers(3, 90, 7).tolist()
    own = generate(str(target), prompt, GenerateOptions(max_new_tokens=STEPS))
    # ONNX Runtime rounds the data of MatMulNBits to 8 bits where accuracy_level is 4, as the model builder writes it.
    loose = (
        0.25
        if "builder-int" in name
        else 0.05
        if "16" in name or "int" in name or "nncf" in name or "paged" in name
        else 5e-4
    )
    others = ["onnxruntime"] if path.suffix == ".onnx" else []
    others += ["openvino"] if "IR110" not in codes else []
    for runtime in others:
        source = str(path if runtime == "onnxruntime" else target)
        try:
            found = generate(source, prompt, GenerateOptions(max_new_tokens=STEPS, runtime=runtime))
        except irexec.EngineError as error:
            yield Outcome(f"{runtime} refuses it", str(error)[:300], runtime == "openvino")
            continue
        worst = max(token.beside.difference for token in found.tokens if token.beside is not None)
        is_right = found.agrees and worst <= loose
        yield Outcome(
            f"{runtime} agrees" if is_right else f"{runtime} differs", f"{worst:.2g} {found.summary}", not is_right
        )
    if "int" in name or "nncf" in name:
        return
    module, tokens, worst = module_of(configuration), list(prompt), 0.0
    for token in own.tokens:
        with torch.no_grad():
            logits = module(input_ids=torch.tensor([tokens])).logits[0, -1]
        worst = max(worst, abs(float(torch.softmax(logits, 0)[token.choice.id]) - token.choice.probability))
        same = int(logits.argmax()) == token.choice.id
        tokens.append(token.choice.id)
        if not same:
            break
    is_right = same and worst <= (0.01 if "16" in name or "paged" in name else 1e-4)
    yield Outcome(
        "transformers agrees" if is_right else "transformers differs", f"{worst:.2g} in step {token.step}", not is_right
    )


def _command(*words: str) -> tuple[int, str]:
    """The exit code of irexec and what it shows."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = run([*words])
    return code, shown.getvalue()[-600:]
