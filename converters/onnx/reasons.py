"""Reasons why well-known operators cannot be expressed in IR."""

from __future__ import annotations

_TEXTS = "it computes strings, for which IR has no operations"
_MAPS = "it works on maps, which IR does not have"

_REASONS: dict[tuple[str, str], str] = {
    ("ai.onnx.ml", "ZipMap"): "its output is a sequence of maps, which IR does not have (sklearn-onnx and onnxmltools: zipmap=False)",
    ("ai.onnx.ml", "CastMap"): _MAPS,
    ("ai.onnx.ml", "DictVectorizer"): _MAPS,
    ("", "RegexFullMatch"): _TEXTS,
    ("", "StringConcat"): _TEXTS,
    ("", "StringNormalizer"): _TEXTS,
    ("", "StringSplit"): _TEXTS,
}  # fmt: skip


_OF_DOMAINS = {
    "com.microsoft.nchwc": "ONNX Runtime writes these operators for the processor it runs on; "
    "save the optimized model with ORT_ENABLE_EXTENDED in place of ORT_ENABLE_ALL",
}


def because(domain: str, operator: str) -> str:
    """A colon and the reason, to append to a message; empty if no reason is known."""
    reason = _REASONS.get((domain, operator), _OF_DOMAINS.get(domain))
    return "" if reason is None else f": {reason}"
