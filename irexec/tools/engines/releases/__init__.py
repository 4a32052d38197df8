"""Releases of OpenVINO and ONNX Runtime, each in an environment of Python of its own."""
