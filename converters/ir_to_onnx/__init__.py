"""IR to ONNX: registry of translators, emission of nodes, whole models; the translators of operations are in ops."""
