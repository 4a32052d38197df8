"""Operators of the domain com.microsoft, which ONNX Runtime adds."""
