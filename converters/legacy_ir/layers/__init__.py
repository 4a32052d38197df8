"""Translators of layers, one file per family; the registry imports them."""
