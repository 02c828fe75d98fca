"""Writes archives that `torch.jit.load` and PyTorch in C++ read: `save`."""

from __future__ import annotations

import enum
import os
import pickle
from typing import Any

import plait
from plait_core._checkpoints._format import Writer, path_of, replace, write_stream
from plait_torch._file_writer import Archive, Pickler
from plait_torch._torchscript._compiling import compiled
from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._late import late
from plait_torch._torchscript._module import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
)
from plait_torch._torchscript._values import Scripted
from plait_torch._zip_records import Zip

_LISTS = ((int, "build_intlist"), (float, "build_doublelist"), (bool, "build_boollist"))


class _ScriptPickler(Pickler):
    """A pickler of modules and objects in the opcodes that PyTorch's reader in C++ knows."""

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, Scripted) and id(obj) not in self.memo:
            module, _, name = obj.script_class.name.rpartition(".")
            self.write(f"c{module}\n{name}\n".encode() + pickle.EMPTY_TUPLE + pickle.NEWOBJ)
            self.save(_state(obj))
            self.write(pickle.BUILD)
            self.memoize(obj)  # PyTorch's reader has the object from here on
        elif isinstance(obj, enum.Enum):
            raise ScriptError("TorchScript: attributes that are enumerations are not written")
        elif isinstance(obj, tuple) and type(obj) is not tuple and hasattr(obj, "_fields"):
            super().save(tuple(obj))
        elif type(obj) is list and obj and (name := _list_of(obj)) and id(obj) not in self.memo:
            self.write(f"ctorch.jit._pickle\n{name}\n".encode() + pickle.MARK)
            self._plain_list(obj)
            self.write(pickle.TUPLE + pickle.REDUCE)
            self.memoize(obj)
        else:
            super().save(obj)

    def _plain_list(self, obj: list[Any]) -> None:
        self.write(pickle.EMPTY_LIST)
        self._batch_appends(obj)

    # always the form for many: the reader knows no other
    def _batch_appends(self, items: Any, obj: Any = None) -> None:
        self.write(pickle.MARK)
        for each in items:
            self.save(each)
        self.write(pickle.APPENDS)

    def _batch_setitems(self, items: Any, obj: Any = None) -> None:
        self.write(pickle.MARK)
        for key, value in items:
            self.save(key)
            self.save(value)
        self.write(pickle.SETITEMS)


def _list_of(values: list[Any]) -> str:
    if all(plait.is_tensor(each) for each in values):
        return "build_tensorlist"
    for kind, name in _LISTS:
        if all(type(each) is kind for each in values):
            return name
    return ""


def _state(obj: Scripted) -> dict[str, Any]:
    """Return an object's attributes as the archive's class declares them."""
    found = obj.script_class
    if "__getstate__" in found.methods:
        raise ScriptError(
            f"TorchScript: {found.name} has a __getstate__; such classes are not written"
        )
    if isinstance(obj, ScriptObject):
        return dict(obj._values)
    names = [name for name in found.types if name not in found.values]
    return {name: _data(obj.script_get(name)) for name in names}


def _data(value: Any) -> Any:
    # parameters are tensors that require gradients, in an archive
    return value.detach().requires_grad_(value.requires_grad) if _is_parameter(value) else value


def _is_parameter(value: Any) -> bool:
    return isinstance(value, plait.nn.Parameter)


class _Record(Archive):
    _pickler = _ScriptPickler


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a module of TorchScript as an archive.

    Args:
        m: what `torch.jit.load`, `trace` or `script` returned.
        f: a path, or a file object open for writing bytes.
        _extra_files: a dict of names and texts or bytes, which become files of the archive.
    """
    if not isinstance(m, (ScriptModule, ScriptFunction)):
        raise ScriptError(
            f"torch.jit.save: a module of torch.jit.trace, script or load is required, got a "
            f"{type(m).__name__}; torch.save writes its state_dict()"
        )
    module = m if isinstance(m, RecursiveScriptModule) else compiled(m)
    data, constants = _Record(module, False), _Record(_constants(module), False)
    unit = module.script_unit
    name = os.path.splitext(os.path.basename(os.fspath(f)))[0] if _is_path(f) else "archive"

    def write(writer: Writer) -> None:
        archive = Zip(writer)
        data.add_storages(archive, f"{name}/data")
        archive.add(f"{name}/data.pkl", data.pickle)
        for record, text in unit.texts().items():
            archive.add(f"{name}/code/{record}", text.encode())
        constants.add_storages(archive, f"{name}/constants")
        archive.add(f"{name}/constants.pkl", constants.pickle)
        for key, value in (_extra_files or {}).items():
            archive.add(f"{name}/extra/{key}", value.encode() if type(value) is str else value)
        archive.add(f"{name}/version", f"{unit.version}\n".encode())
        archive.add(f"{name}/byteorder", b"little")
        archive.finish()

    if _is_path(f):
        replace(path_of(f, "save"), lambda file: write(Writer(file.write)))
    else:
        write_stream(f, write)


def _is_path(f: Any) -> bool:
    return isinstance(f, (str, os.PathLike))


def _constants(module: RecursiveScriptModule) -> tuple[Any, ...]:
    return tuple(module.script_unit.constants)


late.save = save
