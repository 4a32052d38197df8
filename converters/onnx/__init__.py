"""From ONNX to IR: loading, checking, scopes of names, bodies and functions. The translations of operators are in
ops."""
