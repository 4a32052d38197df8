"""Engines of others that run models, each behind an extra: thin layers over irexec.tools, imported when they are asked
for."""
