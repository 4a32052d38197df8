"""Operators of the domain com.microsoft.nchwc: those of ai.onnx on blocks of channels."""
