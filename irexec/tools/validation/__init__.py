"""Validation of many files, in several processes, against a baseline of known findings."""

from irexec.tools.validation.baseline import Baseline, read_baseline
from irexec.tools.validation.files import (
    STDIN,
    FileReport,
    find_files,
    parse_codes,
    report,
    report_always,
    reports_sections,
)

__all__ = [
    "STDIN",
    "Baseline",
    "FileReport",
    "find_files",
    "parse_codes",
    "read_baseline",
    "report",
    "report_always",
    "reports_sections",
]
