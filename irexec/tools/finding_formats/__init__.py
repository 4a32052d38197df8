"""Findings of validation in the formats of other programs: SARIF, workflow commands of GitHub, and JUnit XML."""
