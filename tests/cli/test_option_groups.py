"""Option groups: what arrives of them, and what --help shows."""

from __future__ import annotations

import importlib
import inspect

import click
import pytest

from irexec.cli.commands import COMMANDS, GROUPS
from tests.cli.calling import Capture, stdout

_MOST = 14


def _command(name: str) -> click.Command:
    found: click.Command = getattr(importlib.import_module(f"irexec.cli.{name}"), name)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_groups_and_not_every_option_by_itself(name: str) -> None:
    function = inspect.unwrap(_command(name).callback)  # type: ignore[arg-type]
    parameters = inspect.signature(function).parameters.values()
    assert len(parameters) <= _MOST
    assert not [p for p in parameters if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_options_share_a_parameter_or_a_flag(name: str) -> None:
    parameters = _command(name).params
    names = [parameter.name for parameter in parameters]
    flags = [flag for parameter in parameters for flag in parameter.opts]
    assert len(set(names)) == len(names)
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_help_once_at_80_columns(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = stdout(capsys, name, "--help")
    assert max(map(len, text.splitlines())) <= 80
    text = text[text.index("\nOptions:\n") :]
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            lines = [line for line in text.splitlines() if line.lstrip().startswith(parameter.opts[0])]
            assert len([line for line in lines if line.split()[0].rstrip(",") == parameter.opts[0]]) == 1


def test_groups_have_headings(capsys: Capture) -> None:
    text = stdout(capsys, "infer", "--help")
    headings = [line.rstrip(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Options",
        "Inputs",
        "Steps and state",
        "Weights",
        "Images",
        "Results",
        "Tolerance",
        "Trap",
        "Computation",
        "Limits",
    ]


def test_the_list_of_commands_is_grouped(capsys: Capture) -> None:
    text = stdout(capsys, "--help")
    positions = [text.index(f"\n{heading}:\n") for heading in GROUPS]
    assert positions == sorted(positions)
    for name, summary in COMMANDS.items():
        assert f"  {name}" in text
        assert summary in " ".join(text.split())
