"""Fast kernels, each tested against the reference kernel of its operation."""
