"""Sections of what the layers below the tools return: these say what they hold, and how it looks is registered here, by
type."""
