"""Conformance: a corpus of cases generated from the registry, which any runtime can be held to."""

from irexec.conformance.building import Corpus, build_corpus
from irexec.conformance.result import CaseResult, Conformance
from irexec.conformance.running import ConformOptions, conform

__all__ = ["CaseResult", "ConformOptions", "Conformance", "Corpus", "build_corpus", "conform"]
