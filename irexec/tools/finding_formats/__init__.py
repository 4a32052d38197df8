"""Findings of validation in the formats of other programs: SARIF, workflow commands of GitHub, and JUnit XML."""

from irexec.tools.finding_formats.github import github_lines
from irexec.tools.finding_formats.junit import junit_xml
from irexec.tools.finding_formats.sarif import sarif_log

__all__ = ["github_lines", "junit_xml", "sarif_log"]
