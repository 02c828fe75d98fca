"""`torch.save`, `torch.load` and the names that files may use, as PyTorch has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from os import PathLike
from typing import IO, Any, TypeAlias

import plait
from plait_abi.frames import warn
from plait_core._checkpoints._format import BLOCKED, RefusedName, SafeGlobals
from plait_torch import files
from plait_torch._file_names import NAMES, hint
from plait_torch._names_in_files import of_torch
from plait_torch._zip_records import PyTorchFileReader

__all__ = [
    "DEFAULT_PROTOCOL",
    "FILE_LIKE",
    "MAP_LOCATION",
    "FileLike",
    "SourceChangeWarning",
    "_is_zipfile",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2  # of the pickles in PyTorch's files
FileLike: TypeAlias = "str | PathLike[str] | IO[bytes]"
FILE_LIKE = FileLike
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | plait.device | str | dict[str, str] | None"

_TRUE = ("1", "y", "yes", "true")
_listed: list[Any] = []


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write the zip that PyTorch reads.

    Args:
        obj: tensors and containers, such as a ``state_dict``, or an object of any class, such as a
            whole module, which is pickled under the names of its classes.
        f: a path or a file object open for writing bytes, also one that cannot seek.
        pickle_module, pickle_protocol: have no effect: pickles have protocol 2.

    Example:
        >>> import io, plait
        >>> from plait_torch._serialization import load, save
        >>> file = io.BytesIO()
        >>> save({"epoch": 3, "w": plait.ones(2)}, file)
        >>> load(io.BytesIO(file.getvalue()))
        {'epoch': 3, 'w': tensor([1., 1.])}
    """
    try:  # an object that is no data is refused before the first byte is written
        plait.save(obj, f, format="torch")
    except plait.CheckpointError as error:
        if isinstance(error, OSError):
            raise
        plait.save(obj, f, format="torch", weights_only=False)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file of `torch.save`, of PyTorch or of plait.

    Args:
        f, map_location, mmap: see `plait.load`.
        pickle_module: has no effect but that `weights_only` is False if it is not given.
        pickle_load_args: ``encoding`` and other arguments for pickles have no effect.
        weights_only: None and True execute no code of the file but what `add_safe_globals` listed.
            False may execute any code. The variables of the environment
            ``TORCH_FORCE_WEIGHTS_ONLY_LOAD`` (it is always True) and
            ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` (None means False) change it.

    A TorchScript archive is read by `torch.jit.load` if `weights_only` is False, with a warning.

    Raises:
        CheckpointError: for damaged files and refused objects, and for TorchScript archives if
            `weights_only` is true. It is also a
            ``pickle.UnpicklingError`` if the file uses a name that is not listed.
        RuntimeError: if both variables are set, or `pickle_module` with ``weights_only=True``.

    Example:
        >>> import io, plait
        >>> from plait_torch._serialization import load, safe_globals, save
        >>> file = io.BytesIO()
        >>> save(plait.nn.Linear(1, 2), file)
        >>> with safe_globals([plait.nn.Linear]):
        ...     load(io.BytesIO(file.getvalue()))
        Linear(in_features=1, out_features=2, bias=True)
    """
    only = _weights_only(weights_only, pickle_module)
    start = f.tell() if hasattr(f, "tell") else 0
    try:
        return plait.load(
            f,
            map_location,
            weights_only=only,
            mmap=bool(mmap),
            safe_globals=listed_globals() or (),
        )
    except files.ScriptArchive as error:
        warn(
            "'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
            "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)",
            UserWarning,
        )
        if only:
            raise files.ScriptArchive(
                "Cannot use ``weights_only=True`` with TorchScript archives passed to "
                f"``torch.load``: pass weights_only=False. {error}"
            ) from None
        from plait_torch._torchscript import load as load_script

        if hasattr(f, "seek"):
            f.seek(start)
        return load_script(f, map_location)
    except RefusedName as error:
        raise type(error)(_advice(error), error.module, error.name) from error


def _weights_only(request: bool | None, pickle_module: Any) -> bool:
    """Return the value that the arguments and the environment give."""
    only = pickle_module is None if request is None else bool(request)
    always = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    never = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if always and never:
        raise RuntimeError(
            "torch.load: only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` and "
            "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set"
        )
    if always:
        only = True
    elif never and request is None:
        warn(
            "torch.load: `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` is set and `weights_only` was not "
            "passed, so weights_only=False: the file may execute any code",
            UserWarning,
        )
        only = False
    if only and pickle_module is not None:
        raise RuntimeError(
            "torch.load: can not safely load weights when explicit pickle_module is specified"
        )
    return only


def _advice(error: Any) -> str:
    """Return the text for a refused name, with the sentence of PyTorch that programs search for."""
    name = f"{error.module}.{error.name}"
    if error.module in BLOCKED:
        return f"Weights only load failed. GLOBAL {name} whose module {error.module} is blocked."
    public_name = error.name if error.module in ("builtins", "__builtin__") else name
    return (
        "Weights only load failed. Do one of two things only if you trust the source of the file: "
        "(1) torch.load with `weights_only=False`, which executes what the file says; "
        f"(2) WeightsUnpickler error: Unsupported global: GLOBAL {public_name} was not an allowed "
        f"global by default. "
        f"Please use `torch.serialization.add_safe_globals([{public_name}])` or the "
        f"`torch.serialization.safe_globals([{public_name}])` context manager to allowlist this "
        f"global if you trust this class/function.{hint(error.module, error.name)}"
    )


def listed_globals() -> Any:
    """Return what files may name: listed objects."""
    return SafeGlobals([*_listed], of_torch)


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let files name classes and functions in `load` with ``weights_only=True``.

    They are called with data of the file, and their instances get the state in it. A file may use
    any name under which an imported module holds the object, and PyTorch's name of what is plait's.

    Args:
        safe_globals: classes, functions, or pairs of one and its name, ``"module.name"``, in files.

    Example:
        >>> import plait
        >>> from plait_torch._serialization import (
        ...     add_safe_globals, clear_safe_globals, get_safe_globals)
        >>> add_safe_globals([plait.nn.Linear, (plait.nn.ReLU, "my.Activation")])
        >>> len(get_safe_globals())
        2
        >>> clear_safe_globals()
    """
    _listed.extend(value for value in safe_globals if value not in _listed)


def get_safe_globals() -> list[Any]:
    """Return the objects and pairs that files may name."""
    return list(_listed)


def clear_safe_globals() -> None:
    """Remove what `add_safe_globals` added."""
    _listed.clear()


class safe_globals:  # noqa: N801
    """A context manager in which files may name further classes and functions.

    Args:
        safe_globals: see `add_safe_globals`.

    Example:
        >>> import plait
        >>> from plait_torch._serialization import get_safe_globals, safe_globals
        >>> with safe_globals([plait.nn.Linear]):
        ...     len(get_safe_globals())
        1
        >>> get_safe_globals()
        []
    """

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *_: object) -> None:
        _listed[:] = [value for value in _listed if value not in self.safe_globals]


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Return the names in a file of `torch.save` that neither PyTorch nor the program allows.

    Raises:
        ValueError: if the file is no zip of `torch.save`, or a TorchScript archive.

    Example:
        >>> import io, plait
        >>> from plait_torch._serialization import get_unsafe_globals_in_checkpoint, save
        >>> file = io.BytesIO()
        >>> save(plait.nn.Identity(), file)
        >>> get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
        ['plait_nn._linear.Identity']
    """
    try:
        records = PyTorchFileReader(f)
        text = records.get_record("data.pkl")
    except RuntimeError as error:
        raise ValueError("a file of torch.save is required") from error
    if records.has_record("constants.pkl"):
        raise ValueError("a file of torch.save is required, got a TorchScript archive")
    safe = listed_globals()
    return [
        f"{module}.{name}"
        for module, name in files.names_in(text)
        if NAMES.get(module, name) is None and not (safe and safe.find(module, name))
    ]


class SourceChangeWarning(Warning):
    """The class of warnings that PyTorch gives for modules whose source has changed."""


def _is_zipfile(f: Any) -> bool:
    """Return whether a file, at its position, begins as PyTorch's zip files do."""
    start = f.tell()
    first = f.read(4)
    f.seek(start)
    return bool(first == b"PK\x03\x04")


def location_tag(storage: Any) -> str:
    """Return the name of the device that a storage is on."""
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage on the CPU, for a ``map_location`` that a program writes.

    Raises:
        RuntimeError: for another place than the CPU.

    Example:
        >>> import plait
        >>> from plait_torch._serialization import default_restore_location
        >>> storage = plait.ones(1).untyped_storage()
        >>> default_restore_location(storage, "cpu") is storage
        True
    """
    if plait.device(location).type != "cpu":
        raise RuntimeError(f"default_restore_location: 'cpu' is required, got {location!r}")
    return storage
