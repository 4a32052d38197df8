"""Conformance: a corpus of cases generated from the registry, which any runtime can be held to."""

from irexec.conformance.building import Corpus, build_corpus
from irexec.conformance.running import CaseResult, Conformance, ConformOptions, conform

__all__ = ["CaseResult", "ConformOptions", "Conformance", "Corpus", "build_corpus", "conform"]
