"""A plug-in for irexec: the operation SoftTopK of the domain my.ops, its translator from ONNX, and a check."""

from soft_top_k import checks, onnx_operators
from soft_top_k.operations import soft_top_k

__all__ = ["checks", "onnx_operators", "soft_top_k"]
