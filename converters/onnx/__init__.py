"""ONNX to IR: loading, checking, scopes of names, bodies and functions; the translators of operators are in ops."""
