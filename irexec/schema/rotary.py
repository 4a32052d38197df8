"""Attributes of rotary position embeddings, which the kernel and the exporter share."""

from __future__ import annotations

from dataclasses import dataclass

from irexec.schema.attributes import NonNegative


@dataclass(frozen=True, kw_only=True)
class RotaryAttributes:
    """RoPE, under the names that OpenVINO writes."""

    config_slice_start: NonNegative = 0
    config_slice_stop: NonNegative = 0
    config_input_trans0213: bool = False
    config_output_trans0213: bool = False
    config_is_interleaved: bool = False
    config_rotary_ndims: NonNegative = 0
    config_is_chatglm: bool = False
    config_support_2d_rope: bool = False
    config_support_3d_rope: bool = False
    config_is_qwen: bool = False
    config_use_rope_cache: bool = False
    config_is_ltx_video: bool = False
    config_head_cnt: NonNegative = 0
    config_head_size: NonNegative = 0
    config_gather_position_arg_id: NonNegative = 0
