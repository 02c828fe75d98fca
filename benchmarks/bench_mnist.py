"""An epoch of MNIST with a LeNet: with loaders, with prepared batches, and compared with a tuned
torch.

The peer's tuned row runs in a process of its own: channels_last, and tcmalloc preloaded where the
system has it (``apt install libtcmalloc-minimal4``); without it the row says so. A tenth of the
digits is used when PLAIT_BENCH_QUICK is set.
"""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import Case, Seconds

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

__all__ = ["CHEAP", "cases"]

CHEAP = False  # reads the digits
BATCH = 128
BAR = 0.6


def digits() -> tuple[Any, Any]:
    """Images as float32 (n, 1, 28, 28), normalised, and int64 labels."""
    import mnist_files

    from plait_data.datasets import MNIST

    folder = mnist_files.default_folder()
    mnist_files.write_files(folder)
    train = MNIST(folder, train=True)
    count = len(train.targets) // (10 if os.environ.get("PLAIT_BENCH_QUICK") else 1)
    images = ((train.data[:count].astype(np.float32) / 255 - 0.1307) / 0.3081)[:, None]
    return np.ascontiguousarray(images), train.targets[:count].astype(np.int64)


def lenet(nn: Any) -> Any:
    """The network of the quickstart, from plait's modules or torch's."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def epoch(
    nn: Any, optim: Any, batches: Callable[[], Iterable[Any]], channels_last: bool = False
) -> Callable[[], object]:
    """One pass of training over ``batches``; further calls continue with the same network."""
    model = lenet(nn)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def run() -> float:
        total = 0.0
        for images, labels in batches():
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return run


def made_before(images: Any, labels: Any, convert: Callable[[Any], Any]) -> list[Any]:
    """All batches of an epoch, in one fixed order."""
    order = np.random.default_rng(0).permutation(len(images))
    parts = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    return [(convert(images[part]), convert(labels[part])) for part in parts]


def torch_epoch(images: Any, labels: Any, tuned: bool) -> Callable[[], object]:
    """Torch's epoch over batches made before."""

    def convert(array: Any) -> Any:
        tensor = torch.from_numpy(array)
        if tuned and tensor.dim() == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    batches = made_before(images, labels, convert)
    return epoch(torch.nn, torch.optim, lambda: batches, channels_last=tuned)


def tcmalloc() -> str | None:
    """The file name of the system's tcmalloc, which the loader finds by itself, or None."""
    return ctypes.util.find_library("tcmalloc_minimal") or ctypes.util.find_library("tcmalloc")


def tuned_elsewhere() -> Seconds:
    """Seconds of torch's tuned epoch in a process that preloads tcmalloc."""
    library = tcmalloc()
    environment = dict(os.environ, LD_PRELOAD=library) if library else dict(os.environ)
    done = subprocess.run(
        [sys.executable, __file__, str(torch.get_num_threads())],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Seconds(done.stdout)


def cases() -> Iterator[Case]:
    """The cases: see `timing.Case`."""
    import plait_core as pc
    import plait_data
    import plait_nn
    import plait_optim

    images, labels = digits()

    def loader(data: Any, convert: Callable[[Any], Any]) -> Any:
        arrays = data.TensorDataset(convert(images), convert(labels))
        return data.DataLoader(arrays, batch_size=BATCH, shuffle=True)

    our_loader = loader(plait_data, pc.from_numpy)
    their_loader = loader(torch.utils.data, torch.from_numpy)
    yield (
        "MNIST epoch, LeNet, with loaders",
        epoch(plait_nn, plait_optim, lambda: our_loader),
        epoch(torch.nn, torch.optim, lambda: their_loader),
        BAR,
    )
    batches = made_before(images, labels, pc.from_numpy)
    ours = epoch(plait_nn, plait_optim, lambda: batches)
    plain = torch_epoch(images, labels, tuned=False)
    yield ("MNIST epoch, LeNet, same batches, no loader", ours, plain, BAR)
    which = "and tcmalloc" if tcmalloc() else "(tcmalloc is not installed)"
    yield (f"MNIST epoch, LeNet, to channels_last {which}", ours, tuned_elsewhere, BAR)


def main() -> None:
    """Run the tuned peer: print the seconds of an epoch, after one that is not timed."""
    torch.set_num_threads(int(sys.argv[1]))
    images, labels = digits()
    # a few batches warm up allocator and caches
    torch_epoch(images[: 20 * BATCH], labels[: 20 * BATCH], tuned=True)()
    run = torch_epoch(images, labels, tuned=True)
    start = time.perf_counter()
    run()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
