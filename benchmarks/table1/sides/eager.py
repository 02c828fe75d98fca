"""Training and inference steps for a library with PyTorch's names: plait or PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models import MODELS, fill

__all__ = ["prepare"]


def prepare(
    torch: Any, model: str, mode: str, batch: int, threads: int, tuned: bool
) -> Callable[[], float]:
    """Return a step of the model, which returns its loss or an output."""
    torch.set_num_threads(threads)
    choice = MODELS[model]
    network = fill(torch, choice.build(torch))
    data = [torch.from_numpy(array) for array in choice.data(batch)]
    if tuned and choice.images:
        network = network.to(memory_format=torch.channels_last)
        data[0] = data[0].contiguous(memory_format=torch.channels_last)
    if mode == "inference":
        network.eval()
        inputs = data[:-1] if choice.trained else data
        recorded = torch.inference_mode if tuned else torch.no_grad

        def infer() -> float:
            with recorded():
                return float(network(*inputs).flatten()[0])

        return infer
    options = {"fused": True} if tuned else {}
    optimizer = choice.optimizer(torch, network.parameters(), **options)

    def train() -> float:
        optimizer.zero_grad()
        loss = choice.loss(torch, network(*data[:-1]), data[-1])
        loss.backward()
        optimizer.step()
        return float(loss)

    return train
