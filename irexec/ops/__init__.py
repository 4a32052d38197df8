"""Operations: the registry and one file per family. See irexec.ops.registry."""
