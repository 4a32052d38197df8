"""Why well-known operators cannot be expressed in IR."""

from __future__ import annotations

_TEXTS = "it computes texts, for which IR has no operations"
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


def because(domain: str, operator: str) -> str:
    """A colon and the reason, to append to a message; empty if there is none to give."""
    reason = _REASONS.get((domain, operator))
    return "" if reason is None else f": {reason}"
