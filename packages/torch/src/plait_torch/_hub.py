"""`torch.hub`, which runs code from the network; its functions raise."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import urlparse

__all__ = [
    "HASH_REGEX",
    "_get_torch_home",
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
    "tqdm",
    "urlparse",
]


class tqdm:  # noqa: N801 - the name of PyTorch and of the package tqdm
    """A progress bar that counts and shows nothing, as PyTorch's does without the package tqdm.

    Example:
        >>> from plait_torch._hub import tqdm
        >>> with tqdm(total=3) as bar:
        ...     bar.update(2)
        >>> bar.n, bar.total, list(tqdm("ab"))
        (2, 3, ['a', 'b'])
    """

    def __init__(self, iterable: Any = None, *args: Any, **kwargs: Any) -> None:
        self.iterable = iterable
        self.total, self.n = kwargs.get("total"), kwargs.get("initial", 0)

    def __iter__(self) -> Iterator[Any]:
        for each in self.iterable:
            yield each
            self.n += 1

    def update(self, n: float = 1) -> None:
        """Count further steps."""
        self.n += n

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def set_postfix(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *error: object) -> None:
        pass


# the beginning of a checksum in a file's name: resnet18-5c106cde.pth
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_directory = ""


def _refuse(name: str, way: str) -> NoReturn:
    raise NotImplementedError(f"torch.hub.{name}: plait downloads nothing; {way}")


def load(repo_or_dir: Any, model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not download and run a repository."""
    _refuse("load", "copy the model's class into the program and `torch.load` its weights")


def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not download weights."""
    _refuse("load_state_dict_from_url", f"download {url} yourself and `torch.load` the file")


def download_url_to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not download files."""
    _refuse("download_url_to_file", f"download {url} yourself, to {dst}")


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not download repositories."""
    _refuse("list", "look at the repository")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise: plait does not download repositories."""
    _refuse("help", "look at the repository")


def _get_torch_home() -> str:
    """Return PyTorch's cache folder, which other libraries use too."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder of earlier downloads."""
    return _directory or os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Set what `get_dir` returns."""
    global _directory
    _directory = os.path.expanduser(str(d))
