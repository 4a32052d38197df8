"""com.ms.internal.nhwc: normalization of channels-last data."""

from __future__ import annotations

from converters.onnx.algorithms.channels_last import add_channels_last
from converters.onnx.ops.ai_onnx.normalization import (
    batch_normalization_9,
    batch_normalization_14,
    instance_normalization,
)

add_channels_last("BatchNormalization", 1, batch_normalization_9)
add_channels_last("BatchNormalization", 14, batch_normalization_14)
add_channels_last("InstanceNormalization", 1, instance_normalization)
