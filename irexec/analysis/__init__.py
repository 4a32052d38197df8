"""Inference, validation, the builder, and costs of a model. The package needs every operation's definition."""

import irexec.ops  # noqa: F401 - makes the operations known to the registry
