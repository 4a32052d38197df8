"""Engines that run a model, each in a process of its own."""
