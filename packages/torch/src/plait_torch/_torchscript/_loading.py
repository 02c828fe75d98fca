"""Reads archives of `torch.jit.save`: `load`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import binding
from plait_core._checkpoints._format import (
    CheckpointError,
    Named,
    build,
    empty_bytes,
    open_source,
    run,
)
from plait_torch._file_names import NAMES, Stored
from plait_torch._source_file import SourceFile
from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._late import late
from plait_torch._torchscript._module import RecursiveScriptModule, ScriptObject
from plait_torch._torchscript._unit import ROOT, Class, Unit
from plait_torch._torchscript._values import enumeration, named_tuple
from plait_torch.files import described

_MOST_CODE = 64 << 20  # limit of the bytes of code, unpacked
_LITTLE_CODE = 1 << 20  # that an archive of any size may have


class _State:
    """An object of the pickle, before its class is read."""

    def __init__(self, name: str) -> None:
        self.name, self.values = name, {}  # type: ignore[var-annotated]
        self.made: Any = None


class _Value:
    """A value of a named tuple or of an enumeration."""

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args = name, args


def _restored(value: Any, kind: Any = None) -> Any:
    return value


_LISTS = ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist")


class Archive:
    """The records of an archive."""

    def __init__(self, source: Any, location: Callable[[str], str]) -> None:
        self._source, self._location = source, location
        try:
            self._zip = zipfile.ZipFile(SourceFile(source))
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            ValueError,
            EOFError,
            OverflowError,
        ) as error:
            raise CheckpointError(
                f"load: {source.name} is not a TorchScript archive, or damaged: {error}"
            ) from error
        self._infos = {info.filename: info for info in self._zip.infolist()}
        ends = [name for name in self._infos if name == "data.pkl" or name.endswith("/data.pkl")]
        if not ends:
            raise CheckpointError(f"load: {source.name} is not a TorchScript archive: no data.pkl")
        self.prefix = min(ends, key=len).removesuffix("data.pkl")
        if f"{self.prefix}constants.pkl" not in self._infos:
            raise CheckpointError(
                f"load: {source.name} is not a TorchScript archive: it has no constants.pkl; "
                "torch.load reads files of torch.save"
            )
        code = sum(
            info.file_size for name, info in self._infos.items()
            if name.startswith(f"{self.prefix}code/")
        )  # fmt: skip
        # a tree of code takes some hundred times its text, and packed text may be a thousandth
        if code > min(_MOST_CODE, max(_LITTLE_CODE, 16 * source.size)):
            raise CheckpointError(
                f"load: {source.name} has {code} bytes of code, which is too much"
            )
        self._storages: dict[tuple[str, str], plait.Tensor] = {}

    def names(self) -> list[str]:
        """Return the records' names, without the archive's."""
        return [name.removeprefix(self.prefix) for name in self._infos]

    def record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        info = self._infos.get(self.prefix + name)
        if info is None:
            raise CheckpointError(f"load: {self._source.name} has no record {name!r}")
        return self._bytes(info)

    def _bytes(self, info: zipfile.ZipInfo) -> bytes:
        try:
            if info.file_size > max(_MOST_CODE, self._source.size):
                raise CheckpointError(
                    f"load: the record {info.filename!r} of {self._source.name} has "
                    f"{info.file_size} bytes, which is too much"
                )
            with self._zip.open(info) as file:
                data = file.read(info.file_size + 1)
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            NotImplementedError,
            ValueError,
            EOFError,
            OSError,
            RuntimeError,
            zlib.error,
        ) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(
                f"load: the record {info.filename!r} of {self._source.name} is damaged: {error}"
            ) from error  # fmt: skip
        if len(data) != info.file_size:
            raise CheckpointError(
                f"load: the record {info.filename!r} of {self._source.name} is damaged: it has "
                f"{len(data)} bytes, the directory says {info.file_size}"
            )
        return data

    def version(self) -> int:
        """Return the version of the operators that the code means."""
        names = [name for name in ("version", ".data/version") if self.prefix + name in self._infos]
        text = self.record(names[0]).strip() if names else b"1"
        if not text.isdigit() or len(text) > 9:
            raise CheckpointError(
                f"load: {self._source.name} is damaged: its version is not a number"
            )
        return int(text)

    def text(self, name: str) -> str | None:
        """Return a file of code, or None."""
        if f"{self.prefix}code/{name}" not in self._infos:
            return None
        try:
            return self.record(f"code/{name}").decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(
                f"load: the record 'code/{name}' of {self._source.name} is not text: {error}"
            ) from error

    def unpickled(self, name: str, folder: str) -> Any:
        """Return the object of a pickle, whose tensors lie in a folder."""

        def persistent(reference: Any) -> Stored:
            dtype, key, location, count, _ = described(reference)
            storage = self._storage(folder, key, dtype, count, location)
            return Stored(storage, binding.dtype(dtype))

        return run(self.record(name), 0, _find, persistent, _built)[0]

    def _storage(
        self, folder: str, key: str, dtype: str, count: int, location: str
    ) -> plait.Tensor:
        if (folder, key) not in self._storages:
            name, size = f"{self.prefix}{folder}/{key}", count * binding.dtype(dtype).itemsize
            info = self._infos.get(name)
            if info is None:
                raise CheckpointError(f"load: {self._source.name} has no record {name!r}")
            if info.file_size != size:
                raise CheckpointError(
                    f"load: the record {name!r} of {self._source.name} must have {size} bytes, "
                    f"got {info.file_size}"
                )
            data = empty_bytes(size)
            data.numpy()[:] = memoryview(self._bytes(info))
            place = self._location(location)
            self._storages[folder, key] = data if place == "cpu" else data.to(place)
        return self._storages[folder, key]


def _find(module: str, name: str) -> Any:
    if module.split(".")[0] == ROOT:
        full = f"{module}.{name}"
        return Named(full, lambda *args: _Value(full, args) if args else _State(full))
    if module == "torch.jit._pickle":
        if name in _LISTS:
            return Named(name, list)
        if name == "restore_type_tag":
            return Named(name, _restored)
    return NAMES.find(module, name)


def _built(target: Any, state: Any) -> Any:
    if type(target) is _State:
        if isinstance(state, dict):
            target.values = state
        else:
            target.values = {"": state}  # of a class with __getstate__
        return target
    return build(target, state)


class _Objects:
    """Makes modules and objects of what a pickle held."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._seen: dict[int, Any] = {}

    def made(self, value: Any) -> Any:
        """Return a value with its objects."""
        kind = type(value)
        if kind is _State:
            if value.made is None:
                value.made = self._object(value)
            return value.made
        if kind is _Value:
            return self._named(value)
        if kind in (list, tuple, dict):
            known = self._seen.get(id(value))
            if known is not None:
                return known[1]
            result = self._container(value, kind)
            self._seen[id(value)] = (value, result)
            return result
        return value

    def _container(self, value: Any, kind: type) -> Any:
        if kind is dict:
            return {self.made(key): self.made(each) for key, each in value.items()}
        return kind(self.made(each) for each in value)

    def _class(self, name: str) -> Class:
        found = self._unit.find(name)
        if not isinstance(found, Class):
            raise ScriptError(f"TorchScript: {name} is not a class")
        return found

    def _named(self, value: _Value) -> Any:
        found = self._class(value.name)
        try:
            if found.base == "Enum":
                return enumeration(found)(*value.args)
            if found.base == "NamedTuple":
                return named_tuple(found)(*map(self.made, value.args))
        except (TypeError, ValueError) as error:
            raise ScriptError(f"TorchScript: a value of {value.name} is wrong: {error}") from error
        raise ScriptError(f"TorchScript: the pickle calls {value.name}, which load does not allow")

    def _object(self, state: _State) -> Any:
        found = self._class(state.name)
        if "__setstate__" in found.methods and found.base != "Module":
            plain = ScriptObject(found)
            found.methods["__setstate__"].call(plain, self.made(state.values.get("")))
            return plain
        values = {
            key: self.made(each) for key, each in state.values.items() if type(key) is str
        }  # fmt: skip
        if "__setstate__" in found.methods and "" in values:
            result = RecursiveScriptModule(found, {})
            found.methods["__setstate__"].call(result, values[""])
            return result
        if found.base == "Module":
            return RecursiveScriptModule(found, values)
        return ScriptObject(found, values)


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> Any:
    """Return the module of an archive of `torch.jit.save`.

    The archive's code is translated to Python from a closed set of statements and operators; no
    Python of the file is executed.

    Args:
        f: a path, or a file object open for reading bytes.
        map_location: the device of the tensors, or a function of name that returns it; None: the
            device that the archive names, and the CPU where that is not there.
        _extra_files: a dict whose keys name files of the archive; their bytes become the values.

    Raises:
        CheckpointError: if the file is damaged or no archive.
        ScriptError: if the code is not TorchScript, or uses an operator that plait lacks.
    """
    source = open_source(f)
    try:
        archive = Archive(source, _located(map_location))
        constants = archive.unpickled("constants.pkl", "constants")
        if type(constants) is not tuple:
            raise CheckpointError(f"load: {source.name} is damaged: its constants are no tuple")
        unit = Unit(archive.text)
        unit.version = archive.version()
        objects = _Objects(unit)
        try:
            unit.constants = tuple(map(objects.made, constants))
            result = objects.made(archive.unpickled("data.pkl", "data"))
        except RecursionError as error:
            raise CheckpointError(f"load: {source.name} is nested without end") from error
        if not isinstance(result, RecursiveScriptModule):
            raise CheckpointError(f"load: {source.name} holds no module")
        _read_extra(archive, _extra_files)
        _set_unit(result, unit)
        for name in archive.names():  # so that the file may go
            if name.startswith("code/") and name.endswith(".py"):
                unit.read(name.removeprefix("code/").removesuffix(".py").replace("/", "."))
        return result
    finally:
        source.close()


def _set_unit(module: RecursiveScriptModule, unit: Unit) -> None:
    for each in module.modules():
        each.__dict__["script_unit"] = unit


def _read_extra(archive: Archive, files: Any) -> None:
    for name in files or ():
        if f"extra/{name}" in archive.names():
            files[name] = archive.record(f"extra/{name}")


def _located(map_location: Any) -> Callable[[str], str]:
    if map_location is None:
        return lambda place: "cpu" if place == "cpu" else _available(place)
    if callable(map_location):
        return lambda place: str(map_location(place))
    if isinstance(map_location, dict):
        return lambda place: str(map_location.get(place, place))
    return lambda place: str(plait.device(map_location))


def _available(place: str) -> str:
    try:
        plait.empty(0, device=place)
    except (RuntimeError, ValueError, TypeError):
        return "cpu"
    return place


late.load = load
