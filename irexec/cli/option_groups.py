"""Option groups: options of a command that arrive as one frozen dataclass, under a heading of their own in --help.

Options that would have no effect are refused.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from irexec.cli.settings_file import defaults_of
from irexec.cli.values import Text

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """An option: its flags and a name of the parameter, if it has another one, and the settings of click.option."""

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


class GroupedOption(click.Option):
    """An option with the heading of its group."""

    heading = ""


@dataclass(frozen=True)
class OptionGroup:
    """Options that several commands share.

    Attributes:
        heading: the heading in --help.
        build: makes the dataclass from the values by name: its type, or a function that checks the values first.
        options: the options by the names of the arguments of ``build``.
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
                settings = declared.settings | ({"help": change} if isinstance(change, str) else dict(change))
                settings["help"] = f"{prefix}{settings['help']}"
                click.option(*declared.flags, name, cls=_option_class(self.heading), **settings)(run)
            return run

        return decorate


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
        made.params.append(
            click.Option(
                ["--plugin"],
                multiple=True,
                type=Text(),
                metavar="FILE|MODULE",
                expose_value=False,
                is_eager=True,
                callback=_use_plugins,
                help="Load a plug-in, which adds operations: a .py or a module; may be repeated.",
            )
        )
        return made

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
