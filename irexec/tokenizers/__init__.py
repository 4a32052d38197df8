"""The operations of OpenVINO's tokenizers: the namespace "extension" of tokenizer and detokenizer models.

A plug-in by an entry point of irexec's own wheel, loaded when a model has an operation that nothing else knows. String
tensors travel as UTF-8 bytes: begins and ends (i32) are offsets of each string in chars (u8). A ragged tensor has the
begins and ends of its rows in a flat tensor of values or strings before these.
Source: openvinotoolkit/openvino_tokenizers.
"""

from irexec.tokenizers import encodings, models, normalization, packed, strings

__all__ = ["encodings", "models", "normalization", "packed", "strings"]
