"""Operators of the domain org.openvinotoolkit, which are operations of IR in ONNX."""
