"""Operators of the domain com.ms.internal.nhwc: those of ai.onnx with channels last."""
