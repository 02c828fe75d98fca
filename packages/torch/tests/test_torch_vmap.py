"""`torch.func` and `torch.vmap`: the package plait-func under PyTorch's names."""

from __future__ import annotations

from typing import Any

import plait
import plait_torch
from plait_torch._torch_dispatch import TorchDispatchMode


def test_modes_see_calls_on_all_samples() -> None:
    seen: list[tuple[str, tuple[int, ...]]] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), tuple(args[0].shape)))
            return func(*args, **(kwargs or {}))

    x = plait.ones(3, 2)
    with plait_torch.installed(), Log():
        plait.vmap(lambda a: a.sin() * 2)(x)
    assert seen == [("aten.sin.default", (3, 2)), ("aten.mul.Tensor", (3, 2))]


def test_its_names_are_those_of_the_package(torch: Any) -> None:
    assert torch.vmap is torch.func.vmap is plait.vmap
    assert torch.func.jacrev is plait.func.jacrev
    assert torch._functorch.apis.vmap is plait.vmap
