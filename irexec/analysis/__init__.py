"""What inference, validation and the builder find out about a model. It needs every operation's definition."""

import irexec.ops  # noqa: F401 - makes the operations known to the registry
