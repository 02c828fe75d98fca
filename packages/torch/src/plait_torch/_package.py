"""Archives of `torch.package`: the data in them is read, and their modules are not executed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import plait
from plait_core._checkpoints._format import (
    Locations,
    Options,
    SafeGlobals,
    build,
    open_source,
    reading,
    run,
)
from plait_torch._file_names import NAMES
from plait_torch._serialization import listed_globals
from plait_torch.files import ZipArchive, reading_zip

__all__ = ["GlobGroup", "PackageImporter", "PackagingError"]


class PackagingError(plait.CheckpointError):
    """What an archive of `torch.package` has and plait does not read: a program."""


class _Package(ZipArchive):
    """The records of an archive of `torch.package`."""

    def _name_of(self, key: str) -> str:
        return f"{self._prefix}.data/{key}.storage"

    def storage(self, reference: Any) -> Any:
        """Return the storage that a persistent id names, here by a number."""
        if type(reference) is tuple and len(reference) == 5 and type(reference[2]) is int:
            reference = (*reference[:2], str(reference[2]), *reference[3:])
        return super().storage(reference)

    def names(self) -> list[str]:
        """Return the names of all records, without what they all begin with."""
        return [name.removeprefix(self._prefix) for name in self._records]

    def read(self, name: str) -> bytes:
        """Return the bytes of a record."""
        return self.record(self._prefix + name)


class PackageImporter:
    """Reads the data of an archive that ``torch.package.PackageExporter`` of PyTorch wrote.

    Pickles are read as `torch.load` reads them with ``weights_only=True``: tensors and containers,
    and classes that ``torch.serialization.add_safe_globals`` listed. Modules of the archive are
    programs, and none is executed.

    Args:
        file_or_buffer: a path, or an open file.
        module_allowed: has no effect: no module is imported.

    Raises:
        CheckpointError: the archive is damaged, or is another zip.

    Example:
        >>> import io
        >>> from plait_torch._package import PackageImporter
        >>> PackageImporter(io.BytesIO(b"no zip"))
        Traceback (most recent call last):
        plait_core._checkpoints._errors.CheckpointError: load: <BytesIO> is cut off or damaged: ...
    """

    def __init__(self, file_or_buffer: Any, module_allowed: Any = None) -> None:
        self.filename = str(file_or_buffer)
        self._source = open_source(file_or_buffer)
        options = Options(Locations("cpu"), True, False, None, SafeGlobals(()))
        with contextlib.ExitStack() as stack:
            stack.callback(self._source.close)
            with reading(self._source.name, options), reading_zip(self._source):
                self._archive = _Package(self._source, options, is_package=True)
            stack.pop_all()

    def load_binary(self, package: str, resource: str) -> bytes:
        """Return the bytes of a resource of a package of the archive."""
        return self._archive.read(_path(package, resource))

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """Return a resource as text."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """Return the object in a pickle of a package, of tensors and other data.

        Raises:
            PackagingError: it is made of classes of the archive, or of others that are not listed.
        """
        text = self.load_binary(package, resource)
        safe = listed_globals()
        archive = self._archive
        archive.options = Options(Locations(map_location), True, False, None, safe)
        with reading(f"{resource} of {self._source.name}", archive.options):
            try:
                return run(text, 0, NAMES.finding(safe), archive.storage, build, safe)[0]
            except plait.CheckpointError as error:
                raise PackagingError(
                    f"{error}; {resource} of {self._source.name} is of torch.package: save "
                    "the state_dict() of what load_pickle of PyTorch returns"
                ) from error

    def import_module(self, name: str, package: str | None = None) -> Any:
        """Raise: the module is a program in the archive, which is not executed.

        Raises:
            PackagingError: always.
        """
        raise PackagingError(
            f"import_module: {name} is a program in {self._source.name}, which plait does not "
            "execute; load_text reads its text, and load_pickle tensors and other data"
        )

    def file_structure(self) -> list[str]:
        """Return the names of the files in the archive."""
        return self._archive.names()


class GlobGroup:
    """Patterns of names of modules: a name fits if it fits one of ``include`` and no ``exclude``.

    ``*`` in a segment of a pattern is any text without the separator; the segment ``**`` is any
    number of segments, also none.

    Args:
        include: a pattern, or several.
        exclude: patterns of names that do not fit.
        separator: what is between two segments.

    Raises:
        ValueError: if ``**`` is a part of a segment.

    Example:
        >>> from plait_torch._package import GlobGroup
        >>> group = GlobGroup("torch.**", exclude="**.tests")
        >>> [group.matches(name) for name in ("torch", "torch.nn", "torch.nn.tests", "numpy")]
        [True, True, False, False]
    """

    def __init__(
        self,
        include: str | Sequence[str],
        *,
        exclude: str | Sequence[str] = (),
        separator: str = ".",
    ) -> None:
        self._shown = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = _patterns(include, separator)
        self.exclude = _patterns(exclude, separator)

    def matches(self, candidate: str) -> bool:
        """Return whether a name fits."""
        # each segment has a separator before it, also the first
        name = self.separator + candidate
        excluded = any(pattern.fullmatch(name) for pattern in self.exclude)
        return not excluded and any(pattern.fullmatch(name) for pattern in self.include)

    def __repr__(self) -> str:
        return self._shown


def _patterns(globs: str | Sequence[str], separator: str) -> list[re.Pattern[str]]:
    """Return what names that fit a pattern look like, with a separator before each segment."""
    between = re.escape(separator)
    some = f"[^{between}]"
    result = []
    for glob in (globs,) if isinstance(globs, str) else globs:
        text = ""
        for segment in glob.split(separator):
            if "**" in segment and segment != "**":
                raise ValueError("GlobGroup: ** can only appear as an entire path segment")
            plain = f"{some}*".join(re.escape(part) for part in segment.split("*"))
            text += f"({between}{some}+)*" if segment == "**" else between + plain
        result.append(re.compile(text))
    return result


def _path(package: str, resource: str) -> str:
    return f"{package.replace('.', '/')}/{resource}" if package else resource
