"""Datasets of the tests with workers, in a module that workers import by name."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait_data import Dataset, IterableDataset, get_worker_info, sample_rng

Pair = namedtuple("Pair", "x y")


@dataclass
class Record:
    image: Any
    label: int


class Mixed(Dataset):
    """Samples of every kind that the default collation knows."""

    def __init__(self, size: int = 40, width: int = 5000) -> None:
        self.size = size
        self.rows = np.arange(size * width, dtype=np.float32).reshape(size, width)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index]
        return {
            "pair": Pair(row, index / 2),
            "record": Record(row[:3], index),
            "text": f"sample {index}",
            "list": [index % 2 == 0, np.float16(index), row.astype(complex)[::2]],
        }


class Augmented(Dataset):
    """Samples of random numbers from every generator."""

    def __init__(self, size: int = 60, globals_too: bool = True) -> None:
        self.size = size
        self.globals_too = globals_too

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        numbers = [index, sample_rng().random(), sample_rng().integers(1000)]
        if self.globals_too:
            numbers += [random.random(), np.random.rand()]
        return np.array(numbers, dtype=np.float64)


def noisy_collate(samples: list[Any]) -> Any:
    return np.stack(samples), sample_rng().random()


class Numbers(IterableDataset):
    """0, 1, ..., shared out among workers, each with a random number."""

    def __init__(self, size: int = 23) -> None:
        self.size = size

    def __iter__(self) -> Any:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.size, step):
            yield np.array([number, sample_rng().random()])


class Broken(Dataset):
    """Fails in a chosen way at one index."""

    def __init__(self, how: str, at: int, size: int = 40, width: int = 2000) -> None:
        self.how, self.at, self.size, self.width = how, at, size, width
        self.clock: Any = None  # a file for the time when it happens

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == self.at:
            self.break_down()
        return np.full(self.width, index)

    def break_down(self) -> None:
        if self.clock is not None:
            self.clock.write_text(str(time.monotonic()))
        if self.how == "exit":
            os._exit(3)
        if self.how == "sys.exit":
            sys.exit(3)
        if self.how == "hang":
            time.sleep(1000)
        if self.how == "raise":
            raise OddError("first", second=2)
        if self.how == "stop iteration":
            raise StopIteration
        os.kill(os.getpid(), signal.Signals[self.how])
        time.sleep(0.5)


class OddError(LookupError):
    """An exception that pickle can't rebuild: its constructor wants another argument."""

    def __init__(self, first: str, *, second: int) -> None:
        super().__init__(first)
        self.second = second


class Infos(Dataset):
    """Samples of get_worker_info's fields, and of the mark that worker_init_fn set."""

    mark = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return (info.id, info.num_workers, info.dataset is self, self.mark, os.getpid())


def leave_a_mark(worker: int) -> None:
    info = get_worker_info()
    info.dataset.mark = 100 + worker


class Uneven(Dataset):
    """The first sample waits for a file."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        deadline = time.monotonic() + 120
        while index == 0 and not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.01)
        return index


class Keeper(Dataset):
    """Keeps an array of a collated batch, as a cache would."""

    kept: Any = None

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return np.full(10_000, index)


class KeepFirst:
    """A collate_fn that looks back at the first batch it made."""

    def __init__(self) -> None:
        self.first: Any = None

    def __call__(self, samples: list[Any]) -> Any:
        from plait_data import default_collate

        batch = default_collate(samples)
        if self.first is None:
            self.first = batch
        return batch, int(self.first[0, 0]), int(self.first.max())


class Sized(Dataset):
    """Batches of given widths."""

    def __init__(self, widths: list[int]) -> None:
        self.widths = widths

    def __len__(self) -> int:
        return len(self.widths)

    def __getitem__(self, index: int) -> Any:
        return np.full(self.widths[index], index, dtype=np.uint8)


class Indexed(Dataset):
    """A large index of plain data, with the memory that workers hold of it."""

    def __init__(self, size: int) -> None:
        self.paths = [(f"images/{i:08d}.png", i % 10) for i in range(size)]
        self.names = tuple(f"näme {i}" for i in range(size))
        self.codes = {f"key {i}": i for i in range(size)}
        self.array = np.arange(size * 4.0).reshape(size, 4)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path, label = self.paths[index]
        name = self.names[index]
        touched = len(path) + len(name) + self.codes[f"key {index}"]
        return self.array[index], label, touched, os.getpid()


class FailsAtFour(Dataset):
    """The numbers up to 9; 4 raises an error."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> int:
        if index == 4:
            raise KeyError("four")
        return index


class Holder(Dataset):
    """Samples are a function of the value that it holds."""

    def __init__(self, value: Any, look: Any) -> None:
        self.held, self.look = value, look

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return self.look(self.held)


def kind_of_collated(samples: list[Any]) -> str:
    from plait_data import default_collate

    return type(default_collate([1.0, 2.0])).__name__


def kinds(content: Any) -> list[str]:
    return [type(value).__name__ for value in content]


def last_items(value: Any) -> list[Any]:
    return [value[0][-1], value[1][-1], list(value[2])[-1]]
