"""Operations, one file per family. Importing this package makes them known to irexec.schema.registry."""

from irexec.schema.plugins import operations

operations.add_package(__name__, __path__)
