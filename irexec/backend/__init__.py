"""Fast kernels, each tested against the reference kernel of its operation.

Importing this package registers them.
"""

from irexec.backend.registry import loader

loader.add_package(__name__, __path__)
