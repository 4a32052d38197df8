"""A model in memory: graphs of layers and values, sizes, facts, constants and findings. XML is not known here."""
