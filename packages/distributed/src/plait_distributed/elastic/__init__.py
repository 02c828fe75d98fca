"""Training that continues when ranks are lost or come back.

A program registers in a `State` what it changes, calls ``state.commit()`` after each step, and
deals its samples by `Batches`. After a loss the ranks that are left, or were started again,
continue from the last commit.

    >>> import plait_core as pc, plait_nn as nn, plait_optim as optim
    >>> import plait_distributed as dist
    >>> from plait_distributed import elastic
    >>> elastic.init_process_group(init_method="shm:training", rank=0, world_size=1)
    >>> model = dist.DistributedDataParallel(nn.Linear(2, 1))
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> batches = elastic.Batches(8, batch_size=4)
    >>> state = elastic.State(model=model, optimizer=optimizer, batches=batches)
    >>> x = pc.randn(8, 2)
    >>> @elastic.run
    ... def train(state):
    ...     for epoch in state.batches.epochs(2):
    ...         for batch in state.batches:
    ...             state.optimizer.zero_grad()
    ...             for part in batch.parts(state.model):
    ...                 loss = state.model(x[part.indices]).square().mean()
    ...                 (loss * part.weight).backward()
    ...             state.optimizer.step()
    ...             state.commit()
    >>> train(state)
    >>> state.commits
    4
    >>> dist.destroy_process_group()
"""

from __future__ import annotations

from plait_distributed.elastic._batches import Batch, Batches, Part, sample_generator, sample_seed
from plait_distributed.elastic._loop import run
from plait_distributed.elastic._session import init_process_group
from plait_distributed.elastic._state import State, StateLost

__all__ = [
    "Batch",
    "Batches",
    "Part",
    "State",
    "StateLost",
    "init_process_group",
    "run",
    "sample_generator",
    "sample_seed",
]
