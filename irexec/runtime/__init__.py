"""Running: compiled models, sessions, inputs, outputs, variables, limits and profiles."""
