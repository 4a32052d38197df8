"""Loading what registers operations: the modules of irexec when they are first needed, and plug-ins, which add more.

A plug-in is a file (``ops.py``), a module (``my_package.ops``), or an entry point of the group ``irexec.plugins`` or
``irexec.operations``. Each is loaded once, when an operation is looked up that irexec does not have; those of
``irexec.operations`` have operations alone, so that nothing else looks for them. The environment variable
IREXEC_PLUGINS lists files and modules; processes that irexec starts inherit it. The entry points of irexec itself are
in its pyproject.toml, which a checkout that is not installed has beside the package.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irexec.errors import IrexecError, OpError, PluginError
from irexec.ir.process import new_rlock

# Bytes, since decoding the sources takes as long as searching them. Names of layers that are emitted register nothing.
# The look-behind comes after the quote, which a search finds a dozen times faster than a position without "emit(".
_NAME = re.compile(rb'"(?<!emit\(")([A-Z]\w*)"')


class Loader:
    """Imports the modules of the packages it was given; a new file in one of them registers itself.

    A model uses few families of operations, and importing all of them takes longer than compiling a small model. So
    modules are looked through for the names that they have in double quotes, and the modules that have the name in
    question are imported.
    """

    def __init__(self) -> None:
        self._packages: list[tuple[str, list[str]]] = []
        self._pending: dict[str, None] = {}
        self._by_name: dict[str, list[str]] = {}
        self._loaded: set[str] = set()
        self._lock = new_rlock()
        self._loading = False

    def add_package(self, name: str, path: list[str]) -> None:
        """The modules below the package of this ``__name__`` and ``__path__`` are imported when they are needed."""
        with self._lock:
            self._packages.append((name, path))
            self._loaded.clear()

    def load(self) -> None:
        """Import what has not been imported yet. Other threads wait until it is done; modules being imported do not."""
        if not self._packages and not self._pending:
            return
        with self._lock:
            self._find_modules()
            self._import(list(self._pending))

    def load_for(self, name: str) -> None:
        """Import the modules that have ``name`` in quotes. What is registered under a name that is put together is not
        found so."""
        if name in self._loaded or (not self._packages and not self._pending):
            return
        with self._lock:
            self._find_modules()
            modules = self._by_name.get(name, ())
            self._import([module for module in modules if module in self._pending])
            if not any(module in self._pending for module in modules):
                self._loaded.add(name)

    def modules_for(self, name: str) -> list[str]:
        """The modules that have ``name`` in quotes."""
        with self._lock:
            self._find_modules()
            return self._by_name.get(name, [])

    def _find_modules(self) -> None:
        """Look through the modules of the packages that were added; one without its source is imported."""
        packages, self._packages = self._packages, []
        found: dict[str, list[str]] = defaultdict(list, self._by_name)
        for name, path in packages:
            for module in pkgutil.iter_modules(path):
                whole = f"{name}.{module.name}"
                self._pending[whole] = None
                files = [file for folder in path for file in _sources(Path(folder), module.name)]
                if not files:
                    self._import([whole])
                for quoted in {quoted for file in files for quoted in _NAME.findall(file.read_bytes())}:
                    found[quoted.decode()].append(whole)
        self._by_name = dict(found)

    def _import(self, modules: list[str]) -> None:
        if self._loading:
            return
        self._loading = True
        try:
            for module in modules:
                importlib.import_module(module)
                self._pending.pop(module, None)
        finally:
            self._loading = False


operations = Loader()
"""Imports the families of operations, which irexec.ops names, when the first operation is looked up."""


def _sources(folder: Path, name: str) -> list[Path]:
    """The source files of a module or package."""
    file = folder / f"{name}.py"
    return [file] if file.is_file() else sorted((folder / name).glob("**/*.py"))


VARIABLE, GROUP, OPERATIONS = "IREXEC_PLUGINS", "irexec.plugins", "irexec.operations"
IN_MAIN = "module '__main__'"
"""Origin of what a program or notebook registers itself; what is registered again replaces it."""
_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@dataclass(eq=False)
class Plugin:
    """One plug-in.

    Attributes:
        name: the file name, the module or the name of the entry point.
        place: the path of the file, or the module.
        run: imports the module.
        checks: checks of what the plug-in has registered, called when its module is imported.
        undo: removals of what the plug-in has registered, called when it fails.
    """

    name: str
    place: str
    run: Callable[[], Any]
    checks: list[Callable[[], object]] = field(default_factory=list)
    undo: list[Callable[[], object]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"plug-in {self.name!r} ({self.place})"

    def load(self) -> None:
        """Import the module and check what it registers.

        Raises:
            PluginError: the module cannot be imported, or registers something that is not valid; nothing of the plug-in
                stays registered.
        """
        try:
            self.run()
            for check in self.checks:
                check()
        except (Exception, SystemExit) as error:
            for undo in self.undo:
                undo()
            raise PluginError(f"{self}{self._line(error)}: {_reason(error)}") from error

    def _line(self, error: BaseException) -> str:
        """The line of the plug-in's file at which an error was raised."""
        if isinstance(error, SyntaxError):
            return f", line {error.lineno}"
        import traceback

        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == self.place]
        return f", line {lines[-1]}" if lines else ""


class Plugins:
    """All plug-ins of the process.

    Attributes:
        current: the plug-in that is being loaded.
        given: the files and modules of ``use``, which another process does not load by itself.
    """

    def __init__(self) -> None:
        self.current: Plugin | None = None
        self.given: list[str] = []
        self._loaded: dict[str, PluginError | None] = {}
        self._entry_points: dict[str, list[Plugin]] = {}
        self._lock = new_rlock()

    def load(self, operations: bool = False) -> None:
        """Load the plug-ins that are not loaded yet. Other threads wait until it is done; plug-ins being loaded do not.

        Args:
            operations: load those of the group ``irexec.operations`` too.

        Raises:
            PluginError: a plug-in cannot be loaded; raised again by every later call.
        """
        with self._lock:
            if self.current is not None:
                return
            for plugin in self._found(operations):
                if plugin.place not in self._loaded:
                    self._load(plugin)
                error = self._loaded[plugin.place]
                if error is not None:
                    raise error

    def use(self, names: Sequence[str]) -> None:
        """Load these files and modules now; processes that are started later load them, too.

        Raises:
            PluginError: one of them cannot be loaded; IREXEC_PLUGINS then stays as it was.
        """
        added = [_absolute(name) for name in names]
        for name in added:
            if os.pathsep in name:
                raise PluginError(f"plug-in {name!r}: its path contains {os.pathsep!r}, which separates plug-ins")
        before = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*_listed(), *added]))
        try:
            self.load()
        except PluginError:
            os.environ[VARIABLE] = before
            raise
        self.given = list(dict.fromkeys([*self.given, *names]))

    def _load(self, plugin: Plugin) -> None:
        self.current = plugin
        try:
            plugin.load()
            self._loaded[plugin.place] = None
        except PluginError as error:
            self._loaded[plugin.place] = error
        finally:
            self.current = None

    def _found(self, operations: bool) -> Iterator[Plugin]:
        for name in _listed():
            yield _file(Path(_absolute(name))) if _is_file(name) else _module(name, name)
        for group in (GROUP, *([OPERATIONS] if operations else [])):
            if group not in self._entry_points:
                self._entry_points[group] = list(_entry_points(group))
            yield from self._entry_points[group]


plugins = Plugins()
"""The plug-ins of this process."""


def origin_of(function: Callable[..., Any]) -> str:
    """The plug-in that is being loaded, or the module of a function."""
    return str(plugins.current or f"module {function.__module__!r}")


def guarded(function: Callable[..., Any], what: str, kind: type[IrexecError] = OpError) -> Callable[..., Any]:
    """The function with its exceptions as those of ``kind``: a fault of a plug-in is not one of irexec."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (IrexecError, MemoryError):
            raise
        except Exception as error:
            raise kind(f"{what} raises {type(error).__name__}: {error}") from error

    return run


def _listed() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _is_file(name: str) -> bool:
    return name.endswith(".py") or name.startswith(".") or os.sep in name or "/" in name


def _absolute(name: str) -> str:
    return os.path.abspath(name) if _is_file(name) else name


def _file(path: Path) -> Plugin:
    def run() -> None:
        from importlib import util

        if not path.is_file():
            raise PluginError("is not a file" if path.exists() else "does not exist")
        module_name = f"irexec_plugin_{path.stem}_{zlib.crc32(os.fsencode(path)):08x}"
        spec = util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise PluginError("is not a Python file")
        sys.modules[module_name] = module = util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise

    return Plugin(path.name, str(path), run)


def _module(name: str, module: str) -> Plugin:
    return Plugin(name, module, lambda: importlib.import_module(module))


def _entry_points(group: str) -> Iterator[Plugin]:
    if any(_has_group(Path(folder), group) for folder in sys.path):
        # Not before: importlib.metadata takes longer to import than most commands need.
        from importlib import metadata

        for entry in sorted(metadata.entry_points(group=group), key=lambda entry: entry.name):
            yield _module(entry.name, entry.value.partition(":")[0].strip())
    if group == OPERATIONS and _PROJECT.is_file():
        import tomllib

        own = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["entry-points"]
        yield from (_module(name, module) for name, module in own[group].items())


def _has_group(folder: Path, group: str) -> bool:
    """Whether a distribution in a folder of sys.path has an entry point of the group."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    files = [folder / name / "entry_points.txt" for name in names if name.endswith((".dist-info", ".egg-info"))]
    return any(group.encode() in file.read_bytes() for file in files if file.is_file())


def _reason(error: BaseException) -> str:
    if isinstance(error, IrexecError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
