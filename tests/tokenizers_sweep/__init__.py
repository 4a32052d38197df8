"""Tokenizers: trained in the configurations of model families, converted by OpenVINO, compared token for token.

``python -m tests.sweep tokenizers --lines 10000`` needs openvino-tokenizers, tokenizers, transformers and sentencepiece.
"""
