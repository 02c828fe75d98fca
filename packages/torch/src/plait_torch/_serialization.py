"""`torch.save` and `torch.load` with PyTorch's signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO, Any, TypeAlias

import plait

__all__ = [
    "MAP_LOCATION",
    "FileLike",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

FileLike: TypeAlias = "str | PathLike[str] | IO[bytes]"
MAP_LOCATION: TypeAlias = "Callable[[Any, str], Any] | plait.device | str | dict[str, str] | None"


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int | None = None,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write the zip that PyTorch reads, or for objects such as a whole module a file in plait's
    format.

    Args:
        obj: tensors and containers, such as a ``state_dict``. Anything else is written with
            ``weights_only=False`` in plait's own format, which PyTorch does not read.
        f: a path or a file object open for writing bytes.
        pickle_module, pickle_protocol: have no effect, as `pickle` is not used for the zip.

    Example:
        >>> import io, plait
        >>> from plait_torch._serialization import load, save
        >>> file = io.BytesIO()
        >>> save({"epoch": 3, "w": plait.ones(2)}, file)
        >>> load(io.BytesIO(file.getvalue()))
        {'epoch': 3, 'w': tensor([1., 1.])}
    """
    start = f.tell() if hasattr(f, "seek") and hasattr(f, "tell") else None
    try:
        plait.save(obj, f, format="torch")
    except plait.CheckpointError as error:
        if isinstance(error.__cause__, OSError):
            raise
        if start is not None:
            f.seek(start)
            f.truncate()
        plait.save(obj, f, weights_only=False)


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
        pickle_module, encoding and other arguments for pickles: have no effect.
        weights_only: None and True execute no code of the file. False may execute any code, which
            whole objects need.

    Raises:
        CheckpointError: for damaged files and refused objects.

    Example:
        >>> import io, plait
        >>> from plait_torch._serialization import load, save
        >>> file = io.BytesIO()
        >>> save(plait.nn.Linear(1, 2), file)
        >>> load(io.BytesIO(file.getvalue()), weights_only=False)
        Linear(in_features=1, out_features=2, bias=True)
    """
    return plait.load(
        f,
        map_location,
        weights_only=weights_only is not False,
        mmap=bool(mmap),
    )


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Do nothing: `load` has a fixed list of classes; ``weights_only=False`` reads others."""


def get_safe_globals() -> list[Any]:
    """Return []: see `add_safe_globals`."""
    return []


def clear_safe_globals() -> None:
    """Do nothing; see `add_safe_globals`."""


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """A context manager without effect; see `add_safe_globals`."""
    yield
