"""Models that answer requests: ``served_model`` runs them, ``batcher`` joins requests of about the same time.

No module of this package knows a protocol or a server; irexec.integrations has both.
"""
