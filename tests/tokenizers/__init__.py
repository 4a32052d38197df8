"""Tokenizers: recorded IRs against OpenVINO's answers, and the parts of the operations."""
