"""The items of a batch: files, rows of tables, and the arrays that are read of them.

Files of a folder that earlier jobs have written are not items: the manifests beside their outputs tell.
"""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np

from irexec.analysis.model import Port, expected, find_port
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.io.reading import open_regular, reading
from irexec.messages import silent
from irexec.tools.arrays.files import ArrayItems
from irexec.tools.batch.predictor import Predictor
from irexec.tools.images import IMAGE_SUFFIXES, ImageOptions, Notify, read_image


def load_pyarrow() -> Any:
    """pyarrow with its parquet module; raises UnsupportedError if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UnsupportedError(".parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    return pyarrow


class ParquetTable:
    """A .parquet, of which one group of rows is held at a time.

    Attributes:
        count: of rows.
        column: the column of the items.

    Raises:
        ModelError: it cannot be read.
        InputError: it has no such column.
        UnsupportedError: pyarrow is not installed.
    """

    def __init__(self, path: str, column: str | None) -> None:
        self._path, self._arrow = path, load_pyarrow()
        try:
            self._file = self._arrow.parquet.ParquetFile(path)
        except (OSError, self._arrow.ArrowException) as error:
            raise ModelError(f"{path}: cannot be read: {error}") from None
        names = self._file.schema_arrow.names
        if column is None and len(names) != 1:
            raise InputError(f"{path} has the columns {', '.join(names)}: choose one with --column")
        if column is not None and column not in names:
            raise InputError(f"{path} has no column {column!r}, but {', '.join(names)}")
        self.column: str = column or names[0]
        self.count: int = self._file.metadata.num_rows
        self._ends = np.cumsum([self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)])
        self._held: tuple[int, Any] | None = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def value(self, row: int) -> Any:
        """The value in a row: bytes, text, a number, or an array of what is a list.

        Raises:
            ModelError: the file is damaged, or the value is none of these.
        """
        group = int(np.searchsorted(self._ends, row, side="right"))
        if self._held is None or self._held[0] != group:
            self._held = None
            try:
                self._held = group, self._file.read_row_group(group, columns=[self.column]).column(0).combine_chunks()
            except (OSError, self._arrow.ArrowException) as error:
                raise ModelError(f"{self._path}: cannot be read: {error}") from None
        start = int(self._ends[group - 1]) if group else 0
        found = unwrapped(self._held[1][row - start].as_py())
        if found is None or isinstance(found, dict):
            raise ModelError(
                f"{self._path}, row {row}: column {self.column!r} has {'no value' if found is None else 'a record'}"
            )
        return found


def unwrapped(value: Any) -> Any:
    """The bytes of a record of them and a path, as data sets of images have it; any other value as it is."""
    return value["bytes"] if isinstance(value, dict) and isinstance(value.get("bytes"), bytes) else value


MANIFEST, PARTS = ".sqlite", ".parts"
"""Suffixes of the manifest of an output, and of the folder of its parts while the output is not complete."""

APPLICATION = 0x69724261
"""The application id in the header of each manifest, which can be read while another process has the manifest open."""

_MAGIC, _APPLICATION_AT = b"SQLite format 3\0", 68
_PAGE = 4096
_TABLES = (b"CREATE TABLE job (key TEXT PRIMARY KEY, value TEXT)", b"CREATE TABLE parts (number INTEGER PRIMARY KEY)")
"""Tables that the first page of a manifest declares; the first manifests had no application id."""


class EarlierOutputs:
    """Tells the outputs of jobs from other files.

    Args:
        root: the folder in which files are looked for; it may itself be the output of a job, since the user names it.

    Attributes:
        found: paths of the outputs that a file was part of.
    """

    def __init__(self, root: str) -> None:
        self._below = os.path.join(os.path.realpath(root), "")
        self._outputs: dict[str, frozenset[str]] = {}
        self.found: set[str] = set()

    def has(self, path: str) -> bool:
        """True if a file is the output of a job, or lies in such a folder; links in its path are resolved."""
        while True:
            folder, name = os.path.split(path)
            if folder not in self._outputs:
                self._outputs[folder] = _outputs_in(folder)
            if name in self._outputs[folder]:
                self.found.add(path)
                return True
            if not folder.startswith(self._below):
                return False
            path = folder


def _outputs_in(folder: str) -> frozenset[str]:
    """Names of the outputs in a folder, and of the folders of their parts."""
    try:
        names = [name.removesuffix(MANIFEST) for name in os.listdir(folder) if name.endswith(MANIFEST)]
    except OSError:
        return frozenset()
    return frozenset(
        f"{name}{end}" for name in names if _is_manifest(os.path.join(folder, name + MANIFEST)) for end in ("", PARTS)
    )


def _is_manifest(path: str) -> bool:
    try:
        with open_regular(path) as file:
            page = file.read(_PAGE)
    except OSError:
        return False
    has_id = page[_APPLICATION_AT : _APPLICATION_AT + 4] == APPLICATION.to_bytes(4, "big")
    return page.startswith(_MAGIC) and (has_id or all(table in page for table in _TABLES))


Kind = Literal["image", "arrays", "table"]
_LIST = ".txt"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(IMAGE_SUFFIXES, "image"), ".npy": "arrays", ".npz": "arrays", ".parquet": "table",
}  # fmt: skip
SUFFIXES = tuple(_KINDS)
_LISTED = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


@dataclass(frozen=True, slots=True)
class Item:
    """One item: a file, or what is at an index in it.

    Attributes:
        path: the file.
        kind: the kind of the item.
        index: along the first axis of the arrays, or the row of the table; 0 for an image.
    """

    path: str
    kind: Kind
    index: int = 0

    @property
    def name(self) -> str:
        """Name in the output and in messages: the path, with escapes (``\\udcff``) for bytes that are not UTF-8."""
        path = self.path.encode("utf-8", "backslashreplace").decode()
        return path if self.kind == "image" else f"{path}[{self.index}]"


class Items:
    """All items, which are made when they are asked for: files are held, not items.

    Args:
        files: path, kind and number of items of each.
        order: the positions in the order of work; None for that of the files.
    """

    def __init__(self, files: Sequence[tuple[str, Kind, int]], order: np.ndarray | None = None) -> None:
        self._files, self._order = files, order
        self._ends = list(accumulate(count for _, _, count in files))

    @property
    def has_images(self) -> bool:
        """Whether any file is an image."""
        return any(kind == "image" for _, kind, _ in self._files)

    def __len__(self) -> int:
        total = self._ends[-1] if self._ends else 0
        return total if self._order is None else len(self._order)

    def __iter__(self) -> Iterator[Item]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, position: int) -> Item:
        if not 0 <= position < len(self):
            raise IndexError(position)
        position = position if self._order is None else int(self._order[position])
        file = bisect_right(self._ends, position)
        path, kind, count = self._files[file]
        return Item(path, kind, position - (self._ends[file] - count))


def find_items(
    sources: Sequence[str],
    *,
    limit: int | None = None,
    shuffle_seed: int | None = None,
    column: str | None = None,
    exclude: Sequence[Path] = (),
    note: Callable[[str], None] = silent,
) -> Items:
    """The items of files, folders, patterns and lists, in the order given; the files of a folder by name.

    Outputs of earlier jobs are left out of folders and patterns, not of the given paths.

    Args:
        sources: images, .npy and .npz (items along the first axis), .parquet (a row each), a .txt with a path in each
            line (relative to the folder of the .txt), folders (searched with their subfolders for all of these but
            .txt), and patterns such as ``**/*.png``.
        limit: maximum number of items, after shuffling.
        shuffle_seed: take them in a random order, the same for the same seed.
        column: of the tables.
        exclude: files and folders that are not items where a folder or a pattern has them.
        note: takes a sentence with the outputs that were left out.

    Raises:
        InputError: a source is of another kind, or has no items.
        ModelError: a source does not exist or cannot be read.
    """
    files: list[tuple[str, Kind, int]] = []
    excluded = [os.path.realpath(path) for path in exclude]
    for source in sources:
        root = source
        # A pattern looks for files in what is before its first wildcard.
        while glob.has_magic(root) and not os.path.isdir(root):
            root = os.path.dirname(root)
        earlier = EarlierOutputs(root)
        found = [(path, _kind(path, source)) for path in _paths(source, excluded, earlier)]
        if earlier.found:
            shown = sorted(map(os.path.relpath, earlier.found))
            more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
            note(f"{source}: left out what earlier jobs have written: {', '.join(shown[:5])}{more}")
        if not found:
            raise InputError(f"{source}: {'has' if os.path.exists(source) else 'matches'} no {_LISTED}")
        files += [(path, kind, _count(path, kind, column)) for path, kind in found]
    items = Items(files)
    order = None if shuffle_seed is None else np.random.default_rng(shuffle_seed).permutation(len(items))
    if limit is not None and limit < len(items):
        order = np.arange(limit) if order is None else order[:limit]
    return items if order is None else Items(files, order)


def _paths(source: str, excluded: Sequence[str], earlier: EarlierOutputs) -> Iterator[str]:
    path = Path(source)
    if path.is_dir():
        yield from sorted(_outside(_inside(path), excluded, earlier))
    elif path.suffix.lower() == _LIST and path.exists():
        yield from _lines(path)
    elif path.exists() or not glob.has_magic(source):
        if not path.exists():
            raise ModelError(f"{source}: no such file or folder")
        yield source
    else:
        files = (file for file in glob.iglob(source, recursive=True) if Path(file).suffix.lower() in SUFFIXES)
        yield from sorted(_outside(files, excluded, earlier))


def _inside(folder: Path) -> Iterator[str]:
    """The files in a folder and its subfolders. os.walk is used since it takes a quarter of the time of pathlib."""
    for inner, _, names in os.walk(folder):
        # The prefix is without "./", like the paths of pathlib.
        prefix = str(Path(inner, "_"))[:-1]
        for name in names:
            if os.path.splitext(name)[1].lower() in SUFFIXES and os.path.isfile(prefix + name):
                yield prefix + name


def _outside(files: Iterable[str], excluded: Sequence[str], earlier: EarlierOutputs) -> Iterator[str]:
    """The files that are neither excluded nor part of an earlier output.

    Links to their folders are followed, once for each folder.
    """
    folders: dict[str, str] = {}
    for file in files:
        folder, name = os.path.split(file)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        path = os.path.join(folders[folder], name)
        if not any(path == each or path.startswith(each + os.sep) for each in excluded) and not earlier.has(path):
            yield file


def _lines(path: Path) -> Iterator[str]:
    """The paths in a list; empty lines are left out. Whether they exist is seen when they are read."""
    try:
        with reading(path), open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: is not a readable list of paths: {error}") from None
    for line in text.splitlines():
        if line.strip():
            yield str(path.parent / line.strip())


def _kind(path: str, source: str) -> Kind:
    if kind := _KINDS.get(Path(path).suffix.lower()):
        return kind
    listed = f"{source}: the path {path}" if path != source else f"{path}:"
    raise InputError(f"{listed} is not a {_LISTED}")


def _count(path: str, kind: Kind, column: str | None) -> int:
    if kind == "image":
        return 1
    with closing(ParquetTable(path, column) if kind == "table" else ArrayItems(path)) as items:
        return items.count


class ItemReader:
    """Reads items. The file of the last item stays open, since the next is most often in it, too.

    Attributes:
        notify: takes what the user might not expect.
    """

    def __init__(self, predictor: Predictor, image: ImageOptions, column: str | None, memory: MemoryLimit) -> None:
        self._ports, self._image, self._column, self._memory = predictor.inputs, image, column, memory
        self._batching = predictor.batching
        self._open: tuple[str, ArrayItems | ParquetTable] | None = None
        self.notify: Notify = silent

    def read(self, item: Item) -> dict[str, np.ndarray]:
        """The arrays of an item.

        Raises:
            ModelError: its file cannot be read.
            InputError: it does not fit the model's inputs.
            UnsupportedError: a package is not installed that reads it.
        """
        if item.kind == "image":
            return self.from_image(item.path, None)
        file = self._file(item)
        if isinstance(file, ParquetTable):
            return self.from_value(item.name, file.value(item.index))
        arrays = file.item(item.index)
        if list(arrays) == [""]:
            return {self._only_port(item.path).name: arrays[""]}
        return {find_port(self._ports, name).name: array for name, array in arrays.items()}

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def from_image(self, path: str, content: bytes | np.ndarray | None) -> dict[str, np.ndarray]:
        """The array of the only input for an image.

        Args:
            path: of its file, or the name of the item in messages.
            content: the bytes of a file, or uint8 [height, width] or [height, width, channels]; None reads the file.

        Raises:
            ModelError, InputError, UnsupportedError: as for ``read``.
        """
        port = self._only_port(path)
        if self._batching.has_axis and port.shape:
            port = replace(port, shape=(1, *port.shape[1:]))
        return {port.name: read_image(path, port, self._image, self.notify, self._memory, content)}

    def from_value(self, name: str, value: Any) -> dict[str, np.ndarray]:
        """The array of the only input: the bytes of an image, or a value or list that is an array.

        Args:
            name: the name of the item in messages.
            value: of it.

        Raises:
            ModelError, InputError, UnsupportedError: as for ``read``.
        """
        value = unwrapped(value)
        port = self._only_port(name)
        if isinstance(value, bytes) and not _is_text(port):
            return self.from_image(name, value)
        return {port.name: self.array(name, port, value)}

    @staticmethod
    def array(name: str, port: Port, value: Any) -> np.ndarray:
        """The array of an input for a value, or lists of them, in the type that an item's array has.

        Raises:
            InputError: it is not an array.
        """
        if value is None:
            raise InputError(f"{name}: has no value for input {port}")
        try:
            array = np.array(_dense(value), object if _is_text(port) else None)
        except ValueError as error:
            raise InputError(f"{name}: is not an array: {error}") from None
        if array.dtype.kind == "f" and port.element is not None and port.element.is_float:
            # The values of a column have lost its type, and Python has no other floats than those of 64 bits.
            with np.errstate(all="ignore"):
                array = array.astype(port.element.carrier, copy=False)
        return array

    def _only_port(self, path: str) -> Port:
        if len(self._ports) != 1:
            raise InputError(
                f"{path} is for one input, and the model has {expected(self._ports)}: a .npz has an array for each"
            )
        return self._ports[0]

    def _file(self, item: Item) -> ArrayItems | ParquetTable:
        if self._open is None or self._open[0] != item.path:
            self.close()
            is_table = item.kind == "table"
            file = ParquetTable(item.path, self._column) if is_table else ArrayItems(item.path, self._memory)
            self._open = item.path, file
        return self._open[1]


def _is_text(port: Port) -> bool:
    return port.element is not None and port.element.kind == "string"


def _dense(value: Any) -> Any:
    """Lists in place of arrays of arrays, as which pyarrow gives a column of lists of lists."""
    return [_dense(each) for each in value] if isinstance(value, np.ndarray) and value.dtype == object else value
