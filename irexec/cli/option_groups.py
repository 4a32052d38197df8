"""Option groups: options of a command that arrive as one frozen dataclass, with defaults from the project's settings.

Only options that neither write a file nor run a program can be set: a settings file may come from a stranger.

Options that would have no effect are refused.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from irexec.cli.values import Text

KEYS = {
    "validate": ("weights", "portability", "for", "ignore", "baseline", "jobs"),
    "diff": ("ignore",),
}
"""The options that can be set, by command."""

VARIABLE = "IREXEC_SETTINGS"
"""The environment variable with the path of the settings file; empty for no settings."""

_OWN, _PROJECT = ".irexec.toml", "pyproject.toml"


Settings = tuple[Path, dict[str, dict[str, Any]]]
"""The settings file, and its values by command and option."""


def defaults_of(command: click.Command, name: str) -> dict[str, Any]:
    """The defaults of the parameters of a command, from the settings file of the working folder.

    Raises:
        click.UsageError: the file is not TOML, or a key or value is not known.
    """
    found = read_settings() if name in KEYS else None
    if found is None:
        return {}
    path, tables = found
    parameters = {flag.lstrip("-"): parameter for parameter in command.params for flag in parameter.opts}
    defaults = {}
    for key, value in tables.get(name, {}).items():
        parameter = parameters[key]
        assert parameter.name is not None
        defaults[parameter.name] = _value(path, f"[{name}] {key}", parameter, value)
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
    return path, _checked(path, document)


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


T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """An option: its flags and a name of the parameter, if it has another one, and the settings of click.option.

    In a group the flag is that of the name by default: ``--max-memory`` of ``max_memory``.
    """

    flags: tuple[str, ...]
    settings: dict[str, Any]

    def __call__(self, command: Command) -> Command:
        """Decorator that adds the option to a command."""
        return click.option(*self.flags, **self.settings)(command)


def option(*texts: str, choices: Collection[str] = (), **settings: Any) -> Option:
    """An option.

    Args:
        texts: the flags, the name of the parameter unless a flag has it, and the help.
        choices: the values that it accepts; any by default.
        settings: of click.option; a default is shown in the help unless ``show_default`` is False.
    """
    *flags, help = texts
    shown = {"show_default": True} if settings.get("default") is not None else {}
    is_text = not settings.get("is_flag") and isinstance(settings.get("default", ""), str)
    kind = {"type": click.Choice(tuple(choices))} if choices else {"type": Text()} if is_text else {}
    return Option(tuple(flags), {**shown, **kind, "help": help, **settings})


def flag(*texts: str, value: bool = True, **settings: Any) -> Option:
    """An option without a value, the parameter of which is ``value`` if it is given, and otherwise the opposite."""
    off: dict[str, Any] = {} if value else {"flag_value": False, "default": True, "show_default": False}
    return option(*texts, is_flag=True, **off, **settings)


OVERWRITE = flag(
    "--overwrite", "Replace a file beside the output, such as its .bin, that belongs to no model; default: refuse."
)
json_option = flag("--json", "as_json", "Versioned JSON instead of text.")
node_data_option = option(
    "--format",
    "form",
    "model-explorer: node data of Google's Model Explorer instead of text.",
    choices=["model-explorer"],
)


def is_node_data(form: str | None, as_json: bool) -> bool:
    """True if node data is asked for, and not JSON as well."""
    if form is not None and as_json:
        raise click.UsageError(f"--format {form} and --json both say what is printed")
    return form is not None


class GroupedOption(click.Option):
    """An option with the heading of its group."""

    heading = ""


@dataclass(frozen=True)
class OptionGroup:
    """Options that several commands share.

    Attributes:
        heading: the heading in --help.
        build: makes the dataclass from the values by name: its type, or a function that checks the values first.
        options: the options by the names of the arguments of ``build``; a number or text that is the default of a field
            is that of its option.
    """

    heading: str
    build: Callable[..., Any]
    options: Mapping[str, Option]

    def __call__(
        self, parameter: str, *, only: tuple[str, ...] = (), prefix: str = "", **changes: Mapping[str, Any] | str
    ) -> Callable[[Any], Any]:
        """Decorator that adds the options to a command, whose ``parameter`` receives the dataclass.

        Args:
            parameter: the name of the command's parameter.
            only: the names of the options that the command has; all by default.
            prefix: text in front of the help of every option.
            changes: settings of single options that differ in this command, or the help alone.
        """
        names = only or tuple(self.options)

        def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(command)
            def run(**values: Any) -> Any:
                own = {name: values.pop(name) for name in names}
                return command(**values, **{parameter: self.build(**own)})

            for name in reversed(names):
                declared, change = self.options[name], changes.get(name, {})
                settings = self._default(name) | declared.settings
                settings |= {"help": change} if isinstance(change, str) else dict(change)
                settings["help"] = f"{prefix}{settings['help']}"
                flags = declared.flags or (f"--{name.replace('_', '-')}",)
                click.option(*flags, name, cls=_option_class(self.heading), **settings)(run)
            return run

        return decorate

    def of(self, group: Any) -> dict[str, Any]:
        """The values of these options in a dataclass that has more fields, by name."""
        return {name: getattr(group, name) for name in self.options}

    def _default(self, name: str) -> dict[str, Any]:
        """The default of an option that is a number or a text: the one of the field of its name."""
        default = getattr(getattr(self.build, "__dataclass_fields__", {}).get(name), "default", None)
        return {"default": default, "show_default": True} if type(default) in (int, float, str) else {}


@functools.cache
def _option_class(heading: str) -> type[GroupedOption]:
    return type("GroupedOption", (GroupedOption,), {"heading": heading})


class GroupedCommand(click.Command):
    """A command with defaults from the project's settings; --help lists the options of each group under a heading."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of a call, with the defaults of the settings file."""
        if not {"-h", "--help"} & set(args):
            extra.setdefault("default_map", defaults_of(self, info_name or ""))
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: those of no group first, then group by group in the order of the decorators."""
        sections: dict[str, list[tuple[str, str]]] = {"": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "heading", ""), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading or "Options"):
                formatter.write_dl(records)


def command(
    name: str | None = None, kind: type[GroupedCommand] = GroupedCommand
) -> Callable[[Callable[..., Any]], GroupedCommand]:
    """Decorator that makes a command of irexec from a function. Every command has --plugin."""

    def make(function: Callable[..., Any]) -> GroupedCommand:
        made = click.command(name, cls=kind)(function)
        return option(
            "--plugin",
            "Load a plug-in, which adds operations: a .py or a module; may be repeated.",
            multiple=True,
            metavar="FILE|MODULE",
            expose_value=False,
            is_eager=True,
            callback=_use_plugins,
        )(made)

    return make


def _use_plugins(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> None:
    if names:
        # Not before: a command without plug-ins needs none of it.
        from irexec.schema.plugins import plugins

        plugins.use(names)


def settings(kind: type[T], *groups: Any, **more: Any) -> T:
    """An object of ``kind``: its fields from the groups that have them, and from ``more``."""
    names = inspect.signature(kind).parameters
    found = {
        field.name: getattr(group, field.name) for group in groups for field in fields(group) if field.name in names
    }
    return kind(**found | more)


def is_given(name: str) -> bool:
    """Whether the parameter of the running command is on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_without(options: str | Sequence[str], *names: str) -> None:
    """Raise UsageError if one of the parameters is given: they are for ``--option``, which is not.

    Args:
        options: without the dashes; of several, none of which is given, each would do.
        names: of parameters.
    """
    wanted = [options] if isinstance(options, str) else options
    for given in given_flags(names):
        needed = " or ".join(f"--{option}" for option in wanted)
        raise click.UsageError(f"{given} is for {needed}, which {'is' if len(wanted) == 1 else 'are'} not given")


def given_flags(names: Collection[str]) -> list[str]:
    """The flags of these parameters that are on the command line."""
    parameters = click.get_current_context().command.params
    return [each.opts[-1] for each in parameters if each.name in names and is_given(each.name)]
