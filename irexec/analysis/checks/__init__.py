"""The checks of validate, one file per subject. To add a check, add it to CHECKS of ``irexec.analysis.validate``."""
