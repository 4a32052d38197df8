"""Architectures that use operations and forms of graphs which the others do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers as hf

from tests.networks.network import Calling, Network, RandomInput, convert, ids, network, randomise

_SMALL = {
    "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
    "max_position_embeddings": 64,
}  # fmt: skip


def tokens_alone(
    name: str, module: Callable[[], Any], batches: Sequence[Sequence[int]] = ([7, 7], [6], [9, 5, 2])
) -> None:
    """Register a network of tokens and their mask, run on batches of these lengths: no cache, every size dynamic."""

    def builder(wide: bool) -> Network:
        def call(inner: Any, tokens: torch.Tensor, mask: torch.Tensor) -> Any:
            return inner(input_ids=tokens, attention_mask=mask)[0]

        made = module()
        made.config.use_cache = False
        model = convert(Calling(randomise(made), call), [torch.ones(2, 7, dtype=torch.long)] * 2, [[-1, -1]] * 2)
        runs = []
        for lengths in batches:
            mask = [[int(i < n) for i in range(max(lengths))] for n in lengths]
            runs.append(
                [ids(len(lengths), max(lengths), below=60), RandomInput((len(lengths), max(lengths)), values=mask)]
            )
        return Network(model, runs)

    network(name)(builder)


tokens_alone("bloom", lambda: hf.BloomForCausalLM(hf.BloomConfig(vocab_size=60, hidden_size=24, n_layer=2, n_head=3)))
tokens_alone(
    "gemma2",
    lambda: hf.Gemma2ForCausalLM(
        hf.Gemma2Config(**_SMALL, num_key_value_heads=1, head_dim=8, sliding_window=4, attn_implementation="eager")
    ),
)
tokens_alone(
    "mistral", lambda: hf.MistralForCausalLM(hf.MistralConfig(**_SMALL, num_key_value_heads=1, sliding_window=3))
)
tokens_alone("phi3", lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**_SMALL, num_key_value_heads=3, pad_token_id=0)))
tokens_alone("gpt_neox", lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**_SMALL)))
tokens_alone(
    "deberta",
    lambda: hf.DebertaV2Model(
        hf.DebertaV2Config(**_SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], conv_kernel_size=3)
    ),
)
tokens_alone(
    "roformer", lambda: hf.RoFormerModel(hf.RoFormerConfig(**{**_SMALL, "num_attention_heads": 4, "hidden_size": 32}))
)
tokens_alone("xlnet", lambda: hf.XLNetModel(hf.XLNetConfig(vocab_size=60, d_model=24, n_layer=2, n_head=3, d_inner=48)))
tokens_alone(
    "mamba",
    lambda: hf.MambaForCausalLM(
        hf.MambaConfig(vocab_size=60, hidden_size=16, state_size=4, num_hidden_layers=2, use_mambapy=False)
    ),
    [[7], [7, 7]],
)  # its recurrence is unrolled
tokens_alone(
    "fnet", lambda: hf.FNetModel(hf.FNetConfig(**{k: v for k, v in _SMALL.items() if k != "num_attention_heads"}))
)
tokens_alone("xlm_roberta", lambda: hf.XLMRobertaForSequenceClassification(hf.XLMRobertaConfig(**_SMALL)))
tokens_alone("albert", lambda: hf.AlbertModel(hf.AlbertConfig(**_SMALL, embedding_size=12)))
tokens_alone("mpnet", lambda: hf.MPNetModel(hf.MPNetConfig(**_SMALL)))


def pixels_alone(
    name: str,
    module: Callable[[], Any],
    output: Callable[[Any], Any],
    shapes: Sequence[tuple[int, int, int]],
    size: int = 64,
) -> None:
    """Register a network of images."""

    def builder(wide: bool) -> Network:
        fixed = len({shape[1:] for shape in shapes}) == 1
        sides = [size, size] if fixed else [-1, -1]
        module_ = Calling(randomise(module()), lambda inner, pixels: output(inner(pixel_values=pixels)))
        model = convert(module_, [torch.randn(2, 3, size, size)], [[-1, 3, *sides]])
        return Network(model, [[RandomInput((n, 3, h, w))] for n, h, w in shapes])

    network(name)(builder)


def _backbone() -> hf.ResNetConfig:
    return hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]
    )


_DEFORMABLE = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2,
}  # fmt: skip
pixels_alone(
    "deformable_detr",
    lambda: hf.DeformableDetrForObjectDetection(
        hf.DeformableDetrConfig(
            use_timm_backbone=False,
            backbone_config=_backbone(),
            backbone=None,
            num_feature_levels=4,
            num_queries=7,
            num_labels=5,
            **_DEFORMABLE,
        )
    ),
    lambda found: (found.logits, found.pred_boxes),
    [(1, 64, 64), (2, 64, 64)],
)
pixels_alone(
    "regnet",
    lambda: hf.RegNetForImageClassification(
        hf.RegNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], groups_width=4, num_labels=5)
    ),
    lambda found: found.logits,
    [(1, 64, 64), (2, 40, 72)],
)
pixels_alone(
    "mobilevit",
    lambda: hf.MobileViTForImageClassification(
        hf.MobileViTConfig(
            hidden_sizes=[16, 20, 24], neck_hidden_sizes=[8, 8, 12, 16, 20, 24, 40], num_attention_heads=2, num_labels=5
        )
    ),
    lambda found: found.logits,
    [(1, 64, 64), (2, 64, 64)],
)
pixels_alone(
    "beit",
    lambda: hf.BeitForImageClassification(
        hf.BeitConfig(
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=48,
            image_size=32,
            patch_size=8,
            num_labels=5,
            use_relative_position_bias=True,
        )
    ),
    lambda found: found.logits,
    [(1, 32, 32), (3, 32, 32)],
    32,
)
pixels_alone(
    "poolformer",
    lambda: hf.PoolFormerForImageClassification(
        hf.PoolFormerConfig(hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1], num_labels=5)
    ),
    lambda found: found.logits,
    [(1, 64, 64), (2, 96, 64)],
)
pixels_alone(
    "dpt",
    lambda: hf.DPTForDepthEstimation(
        hf.DPTConfig(
            hidden_size=24,
            num_hidden_layers=4,
            num_attention_heads=3,
            intermediate_size=48,
            image_size=32,
            patch_size=8,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 8, 12, 16],
            fusion_hidden_size=8,
        )
    ),
    lambda found: found.predicted_depth,
    [(1, 32, 32), (2, 32, 32)],
    32,
)
pixels_alone(
    "upernet",
    lambda: hf.UperNetForSemanticSegmentation(
        hf.UperNetConfig(
            backbone_config=hf.ConvNextConfig(
                hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"]
            ),
            hidden_size=12,
            num_labels=4,
            auxiliary_in_channels=16,
        )
    ),
    lambda found: found.logits,
    [(1, 64, 64), (2, 64, 96)],
)


def sound(name: str, module: Callable[[], Any], output: Callable[[Any], Any]) -> None:
    def builder(wide: bool) -> Network:
        model = convert(
            Calling(randomise(module()), lambda inner, x: output(inner(x))), [torch.randn(1, 800)], [[-1, -1]]
        )
        return Network(model, [[RandomInput((1, 800))], [RandomInput((2, 611))]])

    network(name)(builder)


_CONVOLVING = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48,
    "conv_dim": (8, 8, 8), "conv_kernel": (10, 3, 2), "conv_stride": (5, 2, 2), "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "vocab_size": 20,
}  # fmt: skip
sound("wav2vec2", lambda: hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**_CONVOLVING)), lambda found: found.logits)
sound(
    "wavlm",
    lambda: hf.WavLMModel(hf.WavLMConfig(**_CONVOLVING, num_buckets=16, max_bucket_distance=20)),
    lambda found: found.last_hidden_state,
)
