"""What test_failing_calls.py runs: one action, again and again, while its n-th call fails.

    LD_PRELOAD=failing_calls.so python failing_actions.py ACTION FUNCTION... --seconds S --seed N

For each function and each error that it may give, n grows from 1 until no call fails any more.
After each run the action is checked: it gave the right result, or an exception with a text; what
was saved before or now loads; no descriptor, process or temporary file is left. What is wrong is
printed, one line of JSON each; the last line says how far it came.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import faulthandler
import gc
import json
import os
import pathlib
import queue as queue_module
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc

SHORT = -1  # reads and writes move half of what was asked
ERRORS = {
    "allocation": [errno.ENOMEM],
    "close": [errno.EIO],
    "eventfd": [errno.EMFILE],
    "fallocate": [errno.ENOSPC],
    "fork": [errno.EAGAIN],
    "fsync": [errno.EIO],
    "ftruncate": [errno.ENOSPC],
    "memfd_create": [errno.ENFILE],
    "mmap": [errno.ENOMEM],
    "open": [errno.EMFILE],
    "pidfd_open": [errno.EMFILE],
    "pipe": [errno.EMFILE],
    "poll": [errno.ENOMEM],
    "pread": [errno.EIO, SHORT],
    "pthread_create": [errno.EAGAIN],
    "pwrite": [errno.ENOSPC, SHORT],
    "read": [errno.EIO, SHORT],
    "readv": [errno.EIO],
    "recv": [errno.ECONNRESET],
    "recvmsg": [errno.ENOBUFS],
    "rename": [errno.EIO],
    "send": [errno.ENOBUFS],
    "sendmsg": [errno.ENOBUFS],
    "socketpair": [errno.EMFILE],
    "unlink": [errno.EIO],
    "write": [errno.ENOSPC, SHORT],
    "writev": [errno.ENOSPC],
}
# What a program trips over when it did not look whether a call failed.
ACCIDENTS = (AssertionError, AttributeError, LookupError, NameError, SystemError, TypeError)
FOR_EVER = 1 << 40
PATIENCE = 60.0
HANGING = 60  # seconds after which a run hangs
LIMIT = 2000  # calls of one function in one run; more means that the action never ends

FAIL = ctypes.CDLL(None)  # failing_calls.so, preloaded
FAIL.fail_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int]
FAIL.fail_arm.restype = None
FAIL.fail_disarm.restype = ctypes.c_long


class Hang(BaseException):
    """What a run that does not end is interrupted with."""


def interrupt(*_: Any) -> None:
    FAIL.fail_disarm()
    raise Hang("the run does not end")


class Action:
    """Something that meets failures: `act` does it, `check` looks at what it gave."""

    wordless: tuple[type[BaseException], ...] = ()  # exceptions that have no text by design
    passed_over: tuple[str, ...] = ()  # functions

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Put things as they are before each run."""

    def act(self) -> Any:
        raise NotImplementedError

    def check(self, result: Any) -> None:
        """Assert that the result of a run without an exception is right."""

    def afterwards(self) -> None:
        """Assert what holds after each run, failed or not."""

    def trim(self) -> None:
        """Let go of what is kept for its next use."""

    def close(self) -> None:
        """Undo what `__init__` did."""


def state(fill: float) -> dict[str, Any]:
    return {f"w{i}": pc.full((500, 20), fill + i) for i in range(4)} | {"epoch": int(fill)}


class _Saving(Action):
    options: dict[str, Any] = {}  # noqa: RUF012

    def prepare(self) -> None:
        self.path = self.folder / "model.ckpt"
        try:
            whole = self.loaded() == 1
        except Exception:  # lost by the run before, which was reported
            whole = False
        if not whole:
            for path in self.folder.iterdir():
                path.unlink()
            self.save(1)
        self.files = self.names()

    def names(self) -> int:
        return len(list(self.folder.iterdir()))

    def save(self, epoch: int) -> None:
        pc.save(state(epoch), self.path, **self.options)

    def act(self) -> None:
        self.save(2)

    def loaded(self) -> int:
        return self.epoch_of(pc.load(self.path))

    def epoch_of(self, result: Any) -> int:
        epoch = int(result["epoch"])
        for i in range(4):
            assert (result[f"w{i}"] == epoch + i).all(), (
                f"w{i} is wrong in what epoch {epoch} saved"
            )
        return epoch

    def check(self, result: None) -> None:
        assert self.loaded() == 2, "save returned and the old state is there"

    def afterwards(self) -> None:
        assert self.loaded() in (1, 2)
        # What a failed save left, the next one removes.
        self.save(1)
        assert self.loaded() == 1
        names = sorted(path.name for path in self.folder.iterdir())
        assert len(names) == self.files, f"files are left: {names}"


class SaveFile(_Saving):
    options = {}  # noqa: RUF012


class SaveShards(_Saving):
    options = {"max_shard_size": 90_000}  # noqa: RUF012


class SaveTorch(_Saving):
    options = {"format": "torch"}  # noqa: RUF012


class SaveFolder(_Saving):
    """A checkpoint of plait_distributed, of one rank, of which each save is a folder's."""

    def prepare(self) -> None:
        import plait_distributed.checkpoint as dcp

        self.dcp = dcp
        super().prepare()

    def save(self, epoch: int) -> None:
        self.dcp.save(state(epoch), checkpoint_id=self.folder, no_dist=True)

    def loaded(self) -> int:
        result = state(0)
        self.dcp.load(result, checkpoint_id=self.folder, no_dist=True)
        return self.epoch_of(result)


class SaveFolderLater(SaveFolder):
    def save(self, epoch: int) -> None:
        self.dcp.async_save(state(epoch), checkpoint_id=self.folder, no_dist=True).result()


class _Loading(Action):
    saving: dict[str, Any] = {}  # noqa: RUF012
    options: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.path = folder / "model.ckpt"
        pc.save(state(1), self.path, **self.saving)

    def act(self) -> Any:
        return pc.load(self.path, **self.options)

    def check(self, result: Any) -> None:
        assert result["epoch"] == 1
        for i in range(4):
            assert (result[f"w{i}"] == 1 + i).all(), f"load gave a wrong w{i}"

    def afterwards(self) -> None:
        self.check(self.act())


class LoadFile(_Loading):
    pass


class LoadMapped(_Loading):
    options = {"mmap": True}  # noqa: RUF012


class LoadIndex(_Loading):
    saving = {"max_shard_size": 90_000}  # noqa: RUF012


class LoadTorch(_Loading):
    saving = {"format": "torch"}  # noqa: RUF012
    options = {"verify": True}  # noqa: RUF012


class LoadFolder(_Loading):
    def __init__(self, folder: pathlib.Path) -> None:
        import plait_distributed.checkpoint as dcp

        super().__init__(folder)
        self.dcp = dcp
        dcp.save(state(1), checkpoint_id=folder, no_dist=True)

    def act(self) -> Any:
        result = state(0)
        self.dcp.load(result, checkpoint_id=self.folder, no_dist=True)
        return result


class Tensors(Action):
    """Allocation, products, copies, views, reductions, indices and a sort."""

    def act(self) -> Any:
        x = pc.arange(60_000.0).reshape(200, 300)
        y = (x @ x.T).sum()
        parts = [x[::2].contiguous(), x[x > 5.0], pc.cat([x, x]), x.sort(0)[0], x.double(), x * 2]
        many = pc.arange(729).reshape(3, 3, 3, 3, 3, 3).permute(5, 4, 3, 2, 1, 0).clone()
        results = pc.einsum("ij,kj->ik", x[:3], x[:2]), x.cumsum(1), pc.nonzero(x > 9.0)
        large = pc.zeros(3_000_000).add_(1.0)
        return [y, *parts, many, *results, large.sum(), repr(x)]

    def check(self, result: Any) -> None:
        x = np.arange(60_000.0, dtype=np.float32).reshape(200, 300)
        np.testing.assert_allclose(result[0].numpy(), (x @ x.T).sum(), rtol=1e-3)
        np.testing.assert_array_equal(result[1].numpy(), x[::2])
        np.testing.assert_array_equal(result[2].numpy(), x[x > 5.0])
        many = np.arange(729).reshape((3,) * 6).transpose(5, 4, 3, 2, 1, 0)
        np.testing.assert_array_equal(result[7].numpy(), many)
        assert float(result[11]) == 3_000_000.0

    def afterwards(self) -> None:
        self.check(self.act())


class Kernels(Action):
    """Kernels that take working memory: decompositions, transforms, convolutions, halves."""

    def act(self) -> Any:
        x = pc.arange(1, 1025.0).reshape(32, 32).remainder(7.0) + 9 * pc.eye(32)
        image = pc.arange(3 * 20 * 20.0).reshape(1, 3, 20, 20) / 1000
        weight = pc.ones(4, 3, 3, 3)
        return [
            pc.linalg.solve(x, pc.ones(32)),
            pc.linalg.svd(x)[1].sum(),
            pc.fft.fft(x).abs().sum(),
            pc.conv2d(image, weight, padding=1).sum(),
            (x.half() @ x.half()).float().sum(),
            pc.softmax(x, 1).sum(),
            pc.topk(x.reshape(-1), 5)[0].sum(),
            (pc.complex(x, x) @ pc.complex(x, x)).abs().sum(),
            pc.max_pool2d(image, 2).sum(),
            pc.unique(x).sum(),
        ]

    def check(self, result: Any) -> None:
        if not hasattr(self, "right"):
            self.right = [np.array(r.numpy()) for r in result]
        for one, right in zip(result, self.right, strict=True):
            np.testing.assert_allclose(one.numpy(), right, rtol=1e-5)

    def afterwards(self) -> None:
        self.check(self.act())


class Backward(Action):
    """A graph, its gradients, a hook, a second derivative and forward mode."""

    def act(self) -> Any:
        import plait_autograd as pa

        x = pc.arange(12.0).reshape(3, 4).requires_grad_()
        seen: list[Any] = []
        y = (x * x).sin()
        y.register_hook(seen.append)
        y[1:].sum().backward()
        (first,) = pa.grad((x**3).sum(), [x], create_graph=True)
        (second,) = pa.grad(first.sum(), [x])
        return x.grad, second, len(seen)

    def check(self, result: Any) -> None:
        x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
        expected = 2 * x * np.cos(x * x)
        expected[0] = 0
        np.testing.assert_allclose(result[0].numpy(), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(result[1].numpy(), 6 * x)
        assert result[2] == 1

    def afterwards(self) -> None:
        self.check(self.act())


class Optimizer(Action):
    def act(self) -> Any:
        import plait_optim as po

        x = pc.ones(50, 3).requires_grad_()
        optimizer = po.AdamW([x], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
        return x.detach()

    def check(self, result: Any) -> None:
        if not hasattr(self, "right"):
            self.right = result.numpy().copy()
        np.testing.assert_array_equal(result.numpy(), self.right)


class Profile(Action):
    def act(self) -> Any:
        from plait_profiler import profile

        with profile() as seen:
            for _ in range(50):
                pc.ones(100).add_(1)
        return seen.key_averages()

    def check(self, result: Any) -> None:
        table = str(result.table())
        assert "add" in table or "events were dropped" in table, table


class Exchange(Action):
    """To NumPy, DLPack and the buffer protocol, and back."""

    def act(self) -> Any:
        x = pc.arange(100.0)
        back = pc.from_numpy(np.arange(5.0))
        there = np.from_dlpack(x)
        again = pc.from_dlpack(there)
        return x.numpy().sum(), back.sum().item(), again.sum().item(), sum(x.tolist())

    def check(self, result: Any) -> None:
        assert result == (4950.0, 10.0, 4950.0, 4950.0)


class Squares:
    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> Any:
        return np.full((50,), float(i * i)), i


class Loader(Action):
    # CPython's Popen reads whether its child has begun; if it cannot, a later Popen waits for that.
    passed_over = ("read",)

    def act(self) -> Any:
        from plait_data import DataLoader

        loader = DataLoader(Squares(), batch_size=4, num_workers=2)
        return [(np.asarray(x).copy(), np.asarray(i).copy()) for x, i in loader]

    def check(self, result: Any) -> None:
        assert [list(i) for _, i in result] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        for x, i in result:
            np.testing.assert_array_equal(x, np.repeat((i * i)[:, None], 50, 1))


def add_one(x: Any) -> Any:
    return x + 1


class _Sharing(Action):
    # CPython's Thread.start waits for ever for a thread that has no memory to begin.
    passed_over = ("mmap",)

    def trim(self) -> None:
        from plait_multiprocessing import _shared

        _shared.trim()  # arenas of workers that have ended


class Pool(_Sharing):
    # CPython's Popen leaves its pipes open where the second one, or the fork, fails.
    passed_over = (*_Sharing.passed_over, "fork", "pipe", "pipe2")

    def act(self) -> Any:
        import plait_multiprocessing as mp

        with mp.get_context("fork").Pool(2) as pool:
            answers = [pool.apply_async(add_one, (pc.full((200,), float(i)),)) for i in range(4)]
            return [float(answer.get(PATIENCE)[0]) for answer in answers]

    def check(self, result: Any) -> None:
        assert result == [1.0, 2.0, 3.0, 4.0]


class Queue(_Sharing):
    # As in the standard module: the thread that sends prints what failed and drops the message.
    wordless = (queue_module.Empty,)

    def act(self) -> Any:
        import plait_multiprocessing as mp

        queue = mp.Queue()
        try:
            for i in range(3):
                queue.put(pc.full((300,), float(i)))
            return [float(queue.get(timeout=5.0)[0]) for _ in range(3)]
        finally:
            queue.close()
            queue.join_thread()

    def check(self, result: Any) -> None:
        assert result == [0.0, 1.0, 2.0]


class Sharing(Action):
    def act(self) -> Any:
        x = pc.ones(100_000)
        x.share_memory_()
        x.add_(1)
        return float(x.sum())

    def check(self, result: Any) -> None:
        assert result == 200_000.0


ACTIONS: dict[str, type[Action]] = {
    "save_file": SaveFile,
    "save_shards": SaveShards,
    "save_torch": SaveTorch,
    "save_folder": SaveFolder,
    "save_folder_later": SaveFolderLater,
    "load_folder": LoadFolder,
    "load_file": LoadFile,
    "load_mapped": LoadMapped,
    "load_index": LoadIndex,
    "load_torch": LoadTorch,
    "tensors": Tensors,
    "kernels": Kernels,
    "backward": Backward,
    "optimizer": Optimizer,
    "profile": Profile,
    "exchange": Exchange,
    "loader": Loader,
    "pool": Pool,
    "queue": Queue,
    "sharing": Sharing,
}


def descriptors() -> dict[int, str]:
    results = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            results[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return results


def children() -> set[str]:
    results: set[str] = set()
    for file in pathlib.Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            results.update(file.read_text(encoding="ascii").split())
    return results


class Sweep:
    """Runs one action under every failure."""

    def __init__(self, action: Action, end: float) -> None:
        self.action, self.end = action, end
        self.runs = 0
        self.wrong = 0

    def report(self, action: str, function: str, error: int, n: int, times: int) -> None:
        self.wrong += 1
        name = "short" if error == SHORT else errno.errorcode[error]
        span = "from then on" if times > 1 else "once"
        line = {"finding": action, "call": f"{function} number {n}: {name}, {span}"}
        print(json.dumps(line), flush=True)

    def run(self, function: str, error: int, n: int, times: int) -> bool:
        """Run once; False when fewer than n calls were made, so that none failed."""
        self.runs += 1
        self.action.prepare()
        gc.collect()
        self.action.trim()
        files, processes = descriptors(), children()

        def report(action: str) -> None:
            self.report(action, function, error, n, times)

        signal.alarm(HANGING)
        faulthandler.dump_traceback_later(2 * HANGING, exit=True)  # when Python does not get to it
        FAIL.fail_arm(function.encode(), n, times, error)
        failure: BaseException | None = None
        result = None
        try:
            result = self.action.act()
        except BaseException as caught:
            failure = caught
        seen = FAIL.fail_disarm()
        signal.alarm(HANGING)
        try:
            if failure is None:
                self.action.check(result)
            elif isinstance(failure, Hang):
                where = traceback.extract_tb(failure.__traceback__)[-3:]
                report(f"hangs in {[f'{one.filename}:{one.lineno}' for one in where]}")
            elif seen < n:
                report(f"an exception though no call failed: {failure!r}")
            elif isinstance(failure, self.action.wordless):
                pass
            elif not isinstance(failure, Exception) or not str(failure):
                report(f"an exception without a text: {failure!r}")
            elif isinstance(failure, ACCIDENTS):
                text = "".join(traceback.format_exception(failure)[-2:])
                report(f"an exception that does not say what failed: {text}")
            del failure, result
            self.action.afterwards()
        except (Exception, Hang) as wrong:
            where = traceback.extract_tb(wrong.__traceback__)[-1]
            report(f"afterwards: {wrong!r} at {where.name}, line {where.lineno}")
        signal.alarm(0)
        self.left(files, processes, report)
        faulthandler.cancel_dump_traceback_later()
        return seen >= n

    def left(self, files: dict[int, str], processes: set[str], report: Callable[..., None]) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            gc.collect()
            self.action.trim()
            opened = {n: name for n, name in descriptors().items() if files.get(n) != name}
            opened = {n: name for n, name in opened.items() if "/proc/" not in name}
            started = children() - processes
            if not opened and not started:
                return
            if time.monotonic() > end:
                report(f"left descriptors {opened} and processes {started}")
                return
            time.sleep(0.02)

    def sweep(self, function: str) -> bool:
        """Run all n; False when time was over before."""
        for error in ERRORS[function]:
            for times in (1, FOR_EVER) if error != SHORT else (1,):
                for n in range(1, LIMIT):
                    if time.monotonic() > self.end and self.runs:
                        return False
                    if not self.run(function, error, n, times):
                        break
                else:
                    self.report("calls without an end", function, error, LIMIT, times)
        return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("functions", nargs="*", default=sorted(ERRORS))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    functions = list(flags.functions)
    random.Random(flags.seed).shuffle(functions)
    complete = []
    signal.signal(signal.SIGALRM, interrupt)
    with tempfile.TemporaryDirectory() as folder:
        action = ACTIONS[flags.action](pathlib.Path(folder))
        # Once untouched: imports and lazy set-ups are another attack's business.
        action.prepare()
        action.check(action.act())
        action.afterwards()
        sweep = Sweep(action, time.monotonic() + flags.seconds)
        for function in functions:
            if function in action.passed_over:
                continue
            if not sweep.sweep(function):
                break
            complete.append(function)
        action.close()
    print(json.dumps({"runs": sweep.runs, "wrong": sweep.wrong, "complete": complete}), flush=True)
    return 1 if sweep.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
