"""Image files as inputs and results."""
