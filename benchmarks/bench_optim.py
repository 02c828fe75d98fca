"""Optimizer steps against torch's fused ones: many small tensors, and few large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from timing import Case

import plait_core as pc
import plait_optim

__all__ = ["cases"]


def ours(shapes: list[tuple[int, ...]], make: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step of plait's optimizer."""
    params = [pc.randn(*shape).requires_grad_() for shape in shapes]
    for p in params:
        p.grad = pc.randn(*p.shape)
    step: Callable[..., Any] = make(params).step
    return step


def theirs(shapes: list[tuple[int, ...]], make: Callable[[Any], Any]) -> Callable[[], Any]:
    """A step of torch's."""
    params = [torch.randn(*shape).requires_grad_() for shape in shapes]
    for p in params:
        p.grad = torch.randn(*p.shape)
    step: Callable[[], Any] = make(params).step
    return step


def ours_clipped(shapes: list[tuple[int, ...]], make: Callable[[Any], Any]) -> Callable[[], Any]:
    """A step of plait's optimizer that clips as it goes."""
    step = ours(shapes, make)
    return lambda: step(max_norm=1.0)


def theirs_clipped(shapes: list[tuple[int, ...]], make: Callable[[Any], Any]) -> Callable[[], Any]:
    """Clipping and then a step, of torch's."""
    params = [torch.randn(*shape).requires_grad_() for shape in shapes]
    for p in params:
        p.grad = torch.randn(*p.shape)
    optimizer = make(params)

    def step() -> None:
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()

    return step


def cases() -> list[Case]:
    """The cases: see `timing.Case`."""
    small = [(32, 32)] * 100
    tiny = [(10,)] * 100
    large = [(4096, 4096)]
    return [
        (
            "Adam, 100 tensors of 32x32, to fused=True",
            ours(small, lambda p: plait_optim.Adam(p)),
            theirs(small, lambda p: torch.optim.Adam(p, fused=True)),
            0.6,
        ),
        (
            "Adam, 100 tensors of 10, to fused=True",
            ours(tiny, lambda p: plait_optim.Adam(p)),
            theirs(tiny, lambda p: torch.optim.Adam(p, fused=True)),
            0.6,
        ),
        (
            "AdamW, 100 tensors of 32x32, to torch's default",
            ours(small, lambda p: plait_optim.AdamW(p)),
            theirs(small, lambda p: torch.optim.AdamW(p)),
            None,
        ),
        (
            "SGD with momentum, 100 tensors of 32x32, to fused=True",
            ours(small, lambda p: plait_optim.SGD(p, momentum=0.9)),
            theirs(small, lambda p: torch.optim.SGD(p, momentum=0.9, fused=True)),
            None,
        ),
        (
            "Adam, 16 M parameters, to fused=True",
            ours(large, lambda p: plait_optim.Adam(p)),
            theirs(large, lambda p: torch.optim.Adam(p, fused=True)),
            None,
        ),
        (
            "Adam, 16 M parameters, with clipping, to fused=True after clip_grad_norm_",
            ours_clipped(large, lambda p: plait_optim.Adam(p)),
            theirs_clipped(large, lambda p: torch.optim.Adam(p, fused=True)),
            1.0,
        ),
    ]
