"""Settings of a project: defaults of options in ``.irexec.toml`` or in ``[tool.irexec]`` of ``pyproject.toml``.

Only options that neither write a file nor run a program can be set: a settings file may come from a stranger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

KEYS = {
    "validate": ("weights", "portability", "for", "ignore", "baseline", "jobs"),
    "diff": ("ignore",),
}
"""The options that can be set, by command."""

VARIABLE = "IREXEC_SETTINGS"
"""The environment variable with the path of the settings file; empty for no settings."""

_OWN, _PROJECT = ".irexec.toml", "pyproject.toml"


class Settings(NamedTuple):
    """Settings.

    Attributes:
        path: the file.
        tables: the values by command and option.
    """

    path: Path
    tables: dict[str, dict[str, Any]]


def defaults_of(command: click.Command, name: str) -> dict[str, Any]:
    """The defaults of the parameters of a command, from the settings file of the working folder.

    Raises:
        click.UsageError: the file is not TOML, or a key or value is not known.
    """
    found = read_settings() if name in KEYS else None
    if found is None:
        return {}
    parameters = {flag.lstrip("-"): parameter for parameter in command.params for flag in parameter.opts}
    defaults = {}
    for key, value in found.tables.get(name, {}).items():
        parameter = parameters[key]
        assert parameter.name is not None
        defaults[parameter.name] = _value(found.path, f"[{name}] {key}", parameter, value)
    return defaults


def read_settings() -> Settings | None:
    """The settings of the working folder, or of the nearest parent with settings, up to the root of the repository."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return _read(Path(chosen)) if chosen else None
    for folder in _folders(Path.cwd()):
        for name in (_OWN, _PROJECT):
            path = folder / name
            if path.is_file() and (found := _read(path)) is not None:
                return found
    return None


def _folders(start: Path) -> Iterator[Path]:
    for folder in (start, *start.parents):
        yield folder
        if (folder / ".git").exists():
            return


def _read(path: Path) -> Settings | None:
    """The settings of a file; None for a pyproject.toml without [tool.irexec]."""
    # Imported here: no command without settings should wait for it.
    import tomllib

    try:
        data = path.read_bytes()
        if path.name == _PROJECT and b"irexec" not in data:
            return None
        document: Any = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise click.UsageError(f"{path}: not TOML: {error}") from None
    if path.name == _PROJECT:
        tool = document.get("tool")
        document = tool.get("irexec") if isinstance(tool, dict) else None
        if document is None:
            return None
    return Settings(path, _checked(path, document))


def _checked(path: Path, document: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(document, dict):
        raise click.UsageError(f"{path}: the settings are not a table")
    for name, table in document.items():
        if name not in KEYS:
            raise click.UsageError(f"{path}: [{name}] cannot be set; there are {', '.join(f'[{key}]' for key in KEYS)}")
        if not isinstance(table, dict):
            raise click.UsageError(f"{path}: {name} is not a table of options")
        for key in table:
            if key not in KEYS[name]:
                raise click.UsageError(f"{path}: [{name}] {key} cannot be set; there are {', '.join(KEYS[name])}")
    return document


def _value(path: Path, where: str, parameter: click.Parameter, value: Any) -> Any:
    """A value as the option has it; relative paths are relative to the folder of the file."""
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    if is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{path}: {where} is {value!r}, expected true or false")
        return value
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in values):
        raise click.UsageError(f"{path}: {where} is {value!r}, expected text or a number")
    if len(values) != 1 and not parameter.multiple:
        raise click.UsageError(f"{path}: {where} is {value!r}, expected one value")
    texts = [str(one) for one in values]
    for text in texts:
        try:
            parameter.type.convert(text, parameter, None)
        except click.BadParameter as error:
            raise click.UsageError(f"{path}: {where}: {error.message}") from None
    if isinstance(parameter.type, click.Path):
        texts = [os.path.relpath(path.parent / text) for text in texts]
    return texts if parameter.multiple else texts[0]
