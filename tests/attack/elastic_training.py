"""The training that test_lost_ranks.py attacks: python elastic_training.py FOLDER STEPS PAUSE MODE.

Every sample that a committed step used is counted in the state. The weights and the counts of the
end go to FOLDER/result. Each rank writes how many steps it committed to FOLDER/steps<rank>, and to
FOLDER/entry<rank> when it begins to train, at first or again; if it lost more steps than it may, it
writes FOLDER/fell_back, and if there are fewer ranks than at first, FOLDER/fewer. TRAINING_TIMEOUT
is in seconds.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import sys
import time

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed import elastic
from plait_distributed.fsdp import fully_shard
from plait_distributed.optim import ZeroRedundancyOptimizer
from plait_distributed.tensor import DTensor

SAMPLES, BATCH = 48, 12
PARTS = int(os.environ["WORLD_SIZE"])


def main(folder: pathlib.Path, steps: int, pause: float, mode: str) -> None:
    """Train a small model with dropout, for as many steps of all ranks."""
    timeout = float(os.environ.get("TRAINING_TIMEOUT", "120"))
    # a machine at work may need a minute for a rank that is started again
    patience = timeout if int(os.environ.get("PLAIT_ELASTIC_RESTARTS", "0")) else None
    elastic.init_process_group(timeout=timeout, patience=patience)
    pc.manual_seed(0)
    pc.set_num_threads(1)
    data = pc.randn(SAMPLES, 16)
    inner = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.2), nn.Tanh(), nn.Linear(64, 1))
    if mode == "fully sharded":
        fully_shard(inner[0])
        model = fully_shard(inner)
    else:
        model = dist.DistributedDataParallel(inner)
    if mode == "sharded":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=1e-3)
    else:
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
    state = elastic.State(
        every=1 if mode == "replicated" else 3,
        model=model,
        optimizer=optimizer,
        scheduler=optim.lr_scheduler.StepLR(optimizer, 50),
        batches=elastic.Batches(SAMPLES, BATCH, parts=PARTS, seed=3),
        counts=pc.zeros(SAMPLES, dtype=pc.int64),
    )
    progress = os.open(folder / f"steps{os.environ['RANK']}", os.O_WRONLY | os.O_CREAT, 0o600)

    entries = itertools.count()
    most_lost = 1 if mode == "replicated" else 6  # steps: copies are complete at the next one

    @elastic.run
    def train(state: elastic.State) -> None:
        (folder / f"entry{os.environ['RANK']}").write_text(f"{os.getpid()} {next(entries)}")
        reached = max(int(path.read_text() or "0") for path in folder.glob("steps*"))
        if reached - state.commits > most_lost:
            (folder / "fell_back").write_text(f"from step {reached} to {state.commits}")
        if dist.get_world_size() < int(os.environ["WORLD_SIZE"]):
            (folder / "fewer").write_text(f"{dist.get_world_size()} at step {state.commits}")
        while state.commits < steps:
            for batch in state.batches:
                while state.commits == steps - 1 and not all_see(folder / "struck"):
                    time.sleep(0.01)  # the last step is that of ranks that nobody attacks any more
                step(state, batch, data, pause)
                os.pwrite(progress, b"%10d" % state.commits, 0)
                if state.commits == steps:
                    return

    train(state)
    whole = [p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters()]
    if dist.get_rank() == 0:
        weights = b"".join(p.detach().numpy().tobytes() for p in whole)
        (folder / "result").write_text(
            f"{weights.hex()}\n{state.counts.tolist()}\n{dist.get_world_size()}\n"
            f"{len(os.listdir('/proc/self/fd'))}\n"
        )
    dist.destroy_process_group()


def all_see(path: pathlib.Path) -> bool:
    """Return whether a file is there, for all ranks alike; a rank that is lost is noticed."""
    seen = pc.tensor([int(path.exists())])
    dist.all_reduce(seen, dist.ReduceOp.MIN)
    return bool(seen.item())


def step(state: elastic.State, batch: elastic.Batch, data: pc.Tensor, pause: float) -> None:
    """Take a step, and count the samples that it used."""
    state.optimizer.zero_grad()
    used = pc.zeros(SAMPLES, dtype=pc.int64)
    for part in batch.parts(state.model):
        loss = (state.model(data[part.indices]) - 1).square().mean()
        (loss * part.weight).backward()
        used[part.indices] += 1
    time.sleep(pause)
    dist.all_reduce(used)
    state.optimizer.step()
    state.scheduler.step()
    state.counts = state.counts + used
    state.commit()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
