"""The parts of a model and their cost."""
