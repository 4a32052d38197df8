"""What convolution and pooling share: padding by auto_pad. It translates no operator."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.errors import OpError

_AUTO_PADS = {"NOTSET": "explicit", "": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower", "VALID": "valid"}


def ir_auto_pad(text: str) -> str:
    """IR's name of an ONNX auto_pad."""
    if text not in _AUTO_PADS:
        raise OpError(f"auto_pad is {text!r}, expected {', '.join(filter(None, _AUTO_PADS))}")
    return _AUTO_PADS[text]


def same_pads(sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], *, upper: bool) -> list[int]:
    """Pads (begins, then ends) that give ceil(size / stride) windows; an odd one goes to the end if ``upper``."""
    begins, ends = [], []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // s) - 1) * s + d * (k - 1) + 1 - size)
        less = total // 2
        begins.append(less if upper else total - less)
        ends.append(total - less if upper else less)
    return begins + ends
