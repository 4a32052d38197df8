"""Runs that stop at the first layer with a value that should not be there, and recorded ranges of tensors."""
