"""Adapters of irexec.tools to frameworks, each behind an extra and imported when it is needed."""
