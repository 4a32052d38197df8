"""PyTorch models recorded by module, beside what their exporters write, with a fault planted in a module's weights.

Cases: 0 OpenVINO's frontend, 1 the exporter of ONNX by torch.jit, 2 the one by torch.export; 3 to 5 the same with a fault.
Without a fault no pair may differ, and 95 % of the tensors of modules are compared. A fault is in the model that is
exported: the first pair that differs is that of its module, of a module around it, or of the one that it was folded into.
Needs torch, transformers, onnxscript and OpenVINO.
"""

from __future__ import annotations

import contextlib
import copy
import io
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import torch
import transformers
from torch import nn

from irexec.tools.compare import CompareOptions, Comparison, compare
from tests.support.modules import recorder, settle
from tests.sweep.kind import Case, Kind, Outcome, temporary

FORMS = ("openvino", "jit", "export")
_PAIRED = 0.95


class _Bare(nn.Module):
    """A model of transformers that gives tuples."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self._name = model, name

    def forward(self, x: Any) -> Any:
        return tuple(one for one in self.model(**{self._name: x}, return_dict=False) if isinstance(one, torch.Tensor))


def _of_transformers(
    name: str, data: str, *shape: int, **settings: Any
) -> Callable[[], tuple[nn.Module, tuple[Any, ...]]]:
    def made() -> tuple[nn.Module, tuple[Any, ...]]:
        config = getattr(transformers, f"{name}Config")(**settings)
        # Attention by single operations is what all exporters take.
        config._attn_implementation = "eager"
        model = getattr(transformers, f"{name}Model")(config)
        x = torch.randint(1, 60, shape) if data == "input_ids" else torch.randn(*shape)
        return _Bare(model, data), (x,)

    return made


class _Separable(nn.Module):
    """Depthwise and pointwise convolutions with a gate of the mean, as in MobileNet and EfficientNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(channels, 2 * channels, 1, bias=False), nn.BatchNorm2d(2 * channels), nn.ReLU6()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(2 * channels, 2 * channels, 3, padding=1, groups=2 * channels, bias=False),
            nn.BatchNorm2d(2 * channels), nn.Hardswish(),
        )  # fmt: skip
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(2 * channels, 2 * channels, 1), nn.Hardsigmoid())
        self.project = nn.Conv2d(2 * channels, channels, 1)

    def forward(self, x: Any) -> Any:
        y = self.depthwise(self.expand(x))
        return x + self.project(y * self.gate(y))


class _UNet(nn.Module):
    """Two scales with a skipped connection and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([self._block(3, 8), self._block(8, 16)])
        self.pool, self.up, self.last = nn.MaxPool2d(2), nn.ConvTranspose2d(16, 8, 2, stride=2), self._block(16, 4)

    @staticmethod
    def _block(before: int, after: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(2, after), nn.LeakyReLU(0.1))

    def forward(self, x: Any) -> Any:
        first = self.down[0](x)
        return self.last(torch.cat([first, self.up(self.down[1](self.pool(first)))], 1))


class _Twice(nn.Module):
    """One module called three times, one activation in all places, and a pair of results."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.act, self.norm, self.head = nn.Linear(12, 12), nn.GELU(), nn.LayerNorm(12), nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = self.norm(x + self.act(self.shared(x)))
        return self.head(x), x


class _Recurrent(nn.Module):
    """A recurrent layer over embedded words, and its states."""

    def __init__(self, kind: str, **settings: Any) -> None:
        super().__init__()
        self.words, self.cells = nn.Embedding(60, 10), getattr(nn, kind)(10, 8, batch_first=True, **settings)
        self.head = nn.Linear(8 * (1 + self.cells.bidirectional), 4)

    def forward(self, x: Any) -> Any:
        return self.head(torch.tanh(self.cells(self.words(x))[0]))


class _Cached(nn.Module):
    """One step of attention with a cache of keys and values that is given and returned."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.norm = nn.RMSNorm(16)
        self.ffn = nn.ModuleDict({"up": nn.Linear(16, 32), "act": nn.SiLU(), "down": nn.Linear(32, 16)})

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        y = self.norm(x)
        keys, values = torch.cat([keys, self.k(y)], 1), torch.cat([values, self.v(y)], 1)
        weights = torch.softmax(self.q(y) @ keys.transpose(1, 2) / 4, -1)
        x = x + self.out(weights @ values)
        return x + self.ffn["down"](self.ffn["act"](self.ffn["up"](x))), {"keys": keys, "values": values}


def _of(
    module: Callable[[], nn.Module], *shape: int, words: bool = False
) -> Callable[[], tuple[nn.Module, tuple[Any, ...]]]:
    return lambda: (module(), (torch.randint(0, 60, shape) if words else torch.randn(*shape),))


_TEXT = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
_DECODER = {**_TEXT, "num_key_value_heads": 1, "use_cache": False, "head_dim": 8, "pad_token_id": 0}
_IMAGE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 16,
          "patch_size": 4}  # fmt: skip
_PIXELS = ("pixel_values", 1, 3, 32, 32)
_STAGES = {"hidden_sizes": [8, 16], "depths": [1, 2]}

MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "separable": _of(lambda: nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), _Separable(8), _Separable(8)), 1, 3, 16, 16),
    "unet": _of(_UNet, 1, 3, 16, 16),
    "twice": _of(_Twice, 2, 5, 12),
    "mlp": _of(lambda: nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Dropout(), nn.Linear(8, 8), nn.PReLU(8), nn.Softmax(-1)), 2, 6),
    "volumes": _of(lambda: nn.Sequential(nn.Conv3d(1, 4, 3), nn.BatchNorm3d(4), nn.ReLU(), nn.AvgPool3d(2)), 1, 1, 8, 8, 8),
    "signal": _of(lambda: nn.Sequential(nn.Conv1d(2, 6, 5, dilation=2), nn.InstanceNorm1d(6, affine=True), nn.GLU(1)), 2, 2, 30),
    "lstm": _of(lambda: _Recurrent("LSTM", num_layers=2), 2, 7, words=True),
    "gru": _of(lambda: _Recurrent("GRU", bidirectional=True), 2, 7, words=True),
    "rnn": _of(lambda: _Recurrent("RNN"), 2, 7, words=True),
    "encoder": _of(lambda: nn.Sequential(nn.TransformerEncoderLayer(16, 2, 24, batch_first=True), nn.Linear(16, 3)), 2, 5, 16),
    "cached": lambda: (_Cached(), (torch.randn(1, 1, 16), torch.randn(1, 4, 16), torch.randn(1, 4, 16))),
    "resnet": _of_transformers("ResNet", *_PIXELS, embedding_size=8, layer_type="basic", **_STAGES),
    "bottleneck": _of_transformers("ResNet", *_PIXELS, embedding_size=8, **_STAGES),
    "regnet": _of_transformers("RegNet", *_PIXELS, embedding_size=8, groups_width=4, **_STAGES),
    "mobilenet1": _of_transformers("MobileNetV1", *_PIXELS, depth_multiplier=0.25),
    "mobilenet2": _of_transformers("MobileNetV2", *_PIXELS, depth_multiplier=0.25),
    "convnext": _of_transformers("ConvNext", *_PIXELS, num_stages=2, **_STAGES),
    "convnext2": _of_transformers("ConvNextV2", *_PIXELS, num_stages=2, **_STAGES),
    "vit": _of_transformers("ViT", "pixel_values", 1, 3, 16, 16, **_IMAGE),
    "clip": _of_transformers("CLIPVision", "pixel_values", 1, 3, 16, 16, **_IMAGE),
    "swin": _of_transformers("Swin", *_PIXELS, image_size=32, patch_size=4, embed_dim=8, depths=[2, 2], num_heads=[2, 2], window_size=4),
    "segformer": _of_transformers("Segformer", *_PIXELS, depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2]),
    "bert": _of_transformers("Bert", "input_ids", 1, 6, **_TEXT),
    "albert": _of_transformers("Albert", "input_ids", 1, 6, embedding_size=8, **_TEXT),
    "distilbert": _of_transformers("DistilBert", "input_ids", 1, 6, vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=24),
    "electra": _of_transformers("Electra", "input_ids", 1, 6, embedding_size=8, **_TEXT),
    "gpt2": _of_transformers("GPT2", "input_ids", 1, 6, vocab_size=60, n_embd=16, n_layer=2, n_head=2, use_cache=False),
    "opt": _of_transformers("OPT", "input_ids", 1, 6, vocab_size=60, hidden_size=16, num_hidden_layers=2, ffn_dim=24,
                            num_attention_heads=2, word_embed_proj_dim=16, use_cache=False),
    "llama": _of_transformers("Llama", "input_ids", 1, 6, **_DECODER),
    "qwen3": _of_transformers("Qwen3", "input_ids", 1, 6, **_DECODER),
    "wav2vec": _of_transformers("Wav2Vec2", "input_values", 1, 800, **_TEXT, conv_dim=[8, 8], conv_stride=[5, 2], conv_kernel=[10, 3],
                                num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, num_feat_extract_layers=2),
}  # fmt: skip


class Sweep(Kind):
    """Models by name."""

    cases = 2 * len(FORMS)
    told = frozenset({"not exported"})

    def names(self) -> Sequence[str]:
        return list(MODELS)

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        with temporary() as folder:
            record = recorder(folder)
            torch.manual_seed(0)
            model, arguments = MODELS[name]()
            settle(model)
            record(model, str(folder / "torch.npz"), *arguments)

            def case(number: int) -> Iterator[Outcome]:
                form, is_faulty = FORMS[number % len(FORMS)], number >= len(FORMS)
                scope, exported = "", copy.deepcopy(model)
                if is_faulty:
                    scope = plant(exported, random.Random(number))
                path = folder / f"{number}{'.xml' if form == 'openvino' else '.onnx'}"
                try:
                    export(exported, arguments, form, path)
                except Exception as error:
                    yield Outcome("not exported", f"{form}: {type(error).__name__}: {str(error).splitlines()[0]}")
                    return
                found = compare(str(folder / "torch.npz"), str(path), None, CompareOptions())
                recording = folder / "torch.npz"
                yield (
                    _blamed(found, scope, form, recording) if is_faulty else _agreeing(found, form, _sources(recording))
                )

            yield case


def plant(model: nn.Module, chance: random.Random) -> str:
    """Change the weights of a module by a fifth of their size; its name."""
    leaves = [name for name, module in model.named_modules()
              if not list(module.children()) and any(p.is_floating_point() for p in module.parameters(recurse=False))]  # fmt: skip
    scope = chance.choice(leaves)
    with torch.no_grad():
        for held in model.get_submodule(scope).parameters(recurse=False):
            held.add_(0.2 * held.abs().mean() * torch.randn(held.shape) + 0.05)
    return scope


def export(model: nn.Module, arguments: tuple[Any, ...], form: str, path: Path) -> None:
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        if form == "openvino":
            ov.save_model(ov.convert_model(model, example_input=arguments), path, compress_to_fp16=False)
        elif form == "jit":
            torch.onnx.export(model, arguments, path, dynamo=False)
        else:
            torch.onnx.export(model, arguments, path, dynamo=True, verbose=False)


def _sources(recording: Path) -> dict[str, list[str]]:
    """The tensors that each call of a module was given, by the tensors that it gave."""
    with np.load(recording) as file:
        given = {name.removeprefix("source:"): file[name].tolist() for name in file.files if name.startswith("source:")}
        keys = [name for name in file.files if name.startswith("module:")]
    return {key: given[key.removeprefix("module:").partition("[")[0]] for key in keys}


def _of_same_tensor(recording: Path, key: str) -> list[str]:
    with np.load(recording) as file:
        return [name for name in file.files if name == key or np.array_equal(file[name], file[key])]


def _agreeing(found: Comparison, form: str, sources: Mapping[str, list[str]]) -> Outcome:
    wrong = [f"{row.recorded} / {row.b.name}" for row in found.rows if not row.agreement.agrees]
    paired = {row.recorded for row in found.rows}
    # A convolution into whose weights what follows was folded has no tensor of its own, and no model has unread ones.
    folded = {one for key, given in sources.items() if key in paired and len(given) == 1 for one in given}
    read = {one for given in sources.values() for one in given}
    names = [one.name for one in found.uncompared if one.side == "A" and one.name.startswith("module:")]
    unpaired = [name for name in names if name not in folded and (name in read or name.endswith("[0]"))]
    # A layer that does nothing in inference has no tensor of its own.
    unpaired = [name for name in unpaired if not re.search(r"drop\w*#", name)]
    count = len([name for name in paired if name.startswith("module:")])
    text = f"{count} of {count + len(unpaired)}, {len(names) - len(unpaired)} folded; not {', '.join(unpaired[:8])}"
    if wrong:
        return Outcome(f"{form}: false pair", ", ".join(wrong[:3]), fails=True)
    is_paired = count >= _PAIRED * (count + len(unpaired))
    return Outcome(f"{form}: {'agrees' if is_paired else 'few pairs'}", text, not is_paired)


def _blamed(found: Comparison, scope: str, form: str, recording: Path) -> Outcome:
    sources = _sources(recording)
    wrong = [row for row in found.rows if not row.agreement.agrees]
    if not wrong:
        return Outcome(f"{form}: fault not seen", scope, fails=True)
    own, key = f"module:{scope}#", wrong[0].recorded
    is_folded = any(one.startswith(own) for one in sources.get(key, ()))
    # A Dropout and the module around it give the tensor of the module before it.
    blamed = [one.removeprefix("module:").partition("#")[0] for one in _of_same_tensor(recording, key)]
    is_right = any(one == scope or scope.startswith(f"{one}.") or not one for one in blamed)
    # Without a tensor of its own, the first beside it shows the fault.
    is_near = is_folded or any(f".{one}".startswith(f".{scope.rpartition('.')[0]}.") for one in blamed)
    is_right |= is_near and not any(row.recorded.startswith(own) for row in found.rows)
    text = f"{scope}: {wrong[0].recorded} / {wrong[0].b.name}"
    return Outcome(f"{form}: {'' if is_right else 'not '}named", text, not is_right)
