"""IR written as ONNX."""
