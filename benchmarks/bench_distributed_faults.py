"""The cost of faults: commits and copies at a peer, the time to `RankLost`, and to going on.

    python benchmarks/bench_distributed_faults.py [--ranks 2] [--only commits] [--model MobileNet]

Times of steps are medians of rank 0 with and without commits, which take turns within one process;
beside them is the processor time, which other programs on the machine disturb less. The time within
the calls of commit is a part of it; what is sent while training goes on is in the difference alone.
For losses a rank kills or stops itself just before a collective, and writes the time; the others
write when they get `RankLost`, and when their next step is committed. There is no peer: PyTorch has
no counterpart within a process, as torchrun starts all ranks again.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import secrets
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

from models import mobilenet, resnet

import plait
import plait.distributed as dist
from plait import nn, optim
from plait_distributed import elastic
from plait_distributed.fsdp import fully_shard
from plait_distributed.fsdp.wrap import shard_inside, size_based_auto_wrap_policy
from plait_distributed.optim import ZeroRedundancyOptimizer

CONTEXT = multiprocessing.get_context("fork")


def start(size: int, work: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """Run ``work(rank, *arguments)`` as the ranks of an elastic job; return what they send."""
    where, ends = f"shm:{secrets.token_hex(8)}", []

    def run(rank: int, end: Any) -> None:
        plait.set_num_threads(1)
        elastic.init_process_group(init_method=where, rank=rank, world_size=size, **options)
        end.send(work(rank, *arguments))
        os._exit(0)

    processes = []
    for rank in range(size):
        receiver, sender = CONTEXT.Pipe(False)
        process = CONTEXT.Process(target=run, args=(rank, sender))
        process.start()
        sender.close()
        processes.append(process)
        ends.append(receiver)
    results = []
    for end in ends:
        try:
            results.append(end.recv())
        except EOFError:  # it was killed
            results.append(None)
    for process in processes:
        process.join()
    return results


def layers(width: int) -> Any:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "2 layers of 1024, batch 32": (lambda: layers(1024), (32, 1024)),
    "2 layers of 1024, batch 256": (lambda: layers(1024), (256, 1024)),
    "ResNet-50, batch 8 of 3x96x96": (lambda: resnet.build(plait), (8, 3, 96, 96)),
    "ResNet-50, batch 16 of 3x224x224": (lambda: resnet.build(plait), (16, 3, 224, 224)),
    "MobileNetV2, batch 16 of 3x224x224": (lambda: mobilenet.build(plait), (16, 3, 224, 224)),
}
# what is divided among the ranks, and steps between copies
STATES = (("nothing", 1), ("nothing", 10), ("optimizer", 10), ("optimizer", 50), ("all", 10))


def clocks() -> tuple[float, float]:
    """Return the time, and the processor time of this process with all its threads."""
    return time.perf_counter(), time.process_time()


def measure_commits(rank: int, name: str, divided: str, every: int, rounds: int) -> Any:
    """Return the times of steps without and with commits, those within commits, for each step, and
    the bytes that a commit copies.
    """
    make, shape = MODELS[name]
    if divided == "all":
        model = make()
        large = functools.partial(size_based_auto_wrap_policy, min_num_params=1_000_000)
        shard_inside(model, large, fully_shard)
        model = fully_shard(model)
    else:
        model = dist.DistributedDataParallel(make())
    if divided == "optimizer":
        optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=1e-3)
    else:
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
    state = elastic.State(every=every, model=model, optimizer=optimizer)
    x = plait.randn(*shape)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    @elastic.run
    def train(state: Any) -> Any:
        plain, committed, inside = [], [], []
        object.__setattr__(state, "_every", 1)  # until the copies have their memory
        for _ in range(4):
            step()
            state.commit()
        object.__setattr__(state, "_every", every)
        for _ in range(rounds):
            for times, commits in ((plain, False), (committed, True)):
                dist.barrier()
                began, commit = clocks(), [0.0, 0.0]
                for _ in range(every):
                    step()
                    if commits:
                        before = clocks()
                        state.commit()
                        commit = [
                            c + b - a for a, b, c in zip(before, clocks(), commit, strict=True)
                        ]
                times.append([(b - a) / every for a, b in zip(began, clocks(), strict=True)])
                if commits:
                    inside.append([each / every for each in commit])
        newest = state._snapshots[0]
        copies = [newest.replicated, *newest.own.values()]
        return plain, committed, inside, sum(copy.nbytes() for copy in copies)

    return train(state)


def measure_loss(rank: int, signal_number: int, at: Any) -> Any:
    """Return when this rank got `RankLost`, and when it committed the next step."""
    model = dist.DistributedDataParallel(layers(256))
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    state = elastic.State(model=model, optimizer=optimizer, step=0)
    x = plait.randn(8, 256)
    lost: list[float] = []

    @elastic.run
    def train(state: Any) -> Any:
        while state.step < 12:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            if rank == 1 and state.step == 10:
                at.value = time.monotonic()
                os.kill(os.getpid(), signal_number)
            try:
                loss.backward()
            except dist.RankLost:
                lost.append(time.monotonic())
                raise
            optimizer.step()
            state.step += 1
            state.commit()
            if lost:
                return lost[0], time.monotonic()
        return None

    return train(state)


def show_commits(size: int, rounds: int, text: str, states: list[str]) -> None:
    for name in (name for name in MODELS if text in name):
        for divided, every in (each for each in STATES if f"{each[0]}/{each[1]}" in states):
            plain, committed, inside, nbytes = start(
                size, measure_commits, name, divided, every, rounds
            )[0]
            line = (
                f"{name}, Adam, {divided} divided, every {every}, {nbytes / 2**20:.1f} MiB a copy"
            )
            for i, label in enumerate(("step", "processor")):
                before, after, of = (
                    statistics.median(t[i] for t in times) for times in (plain, committed, inside)
                )
                line += (
                    f"; {label} {1e3 * before:.2f} ms, with commits {1e3 * after:.2f} ms "
                    f"({100 * (after / before - 1):+.1f} %), of it in the commit {1e3 * of:.2f} ms "
                    f"({100 * of / before:.1f} %)"
                )
            print(line, flush=True)


def show_losses(size: int, times: int) -> None:
    for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        noticed, going = [], []
        for _ in range(times if number == signal.SIGKILL else 3):
            at = CONTEXT.Value("d", 0.0)
            for answer in start(size, measure_loss, number, at):
                if answer is not None:
                    noticed.append(answer[0] - at.value)
                    going.append(answer[1] - at.value)
        print(
            f"{size} ranks, one {name}: RankLost after {1e3 * statistics.median(noticed):.0f} ms "
            f"(at most {1e3 * max(noticed):.0f}), the next commit after "
            f"{1e3 * statistics.median(going):.0f} ms (at most {1e3 * max(going):.0f})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["commits", "losses"])
    parser.add_argument("--model", default="", help="a part of its name")
    known = [f"{divided}/{every}" for divided, every in STATES]
    parser.add_argument("--states", nargs="+", default=known, choices=known)
    flags = parser.parse_args()
    if flags.only != "losses":
        show_commits(flags.ranks, flags.rounds, flags.model, flags.states)
    if flags.only != "commits":
        for size in (2, 4):
            show_losses(size, 20)


if __name__ == "__main__":
    main()
