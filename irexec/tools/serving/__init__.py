"""Models that answer requests: ``served_model`` runs them, ``batcher`` puts requests together that come at about the same time.

Nothing here knows a protocol or a server; irexec.integrations has these.
"""
