"""Programs that plait and PyTorch run alike: what they share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

import plait_autograd as pa
import plait_core as pc

__all__ = ["PROGRAMS", "Library", "case", "gl", "outcome", "ours", "theirs"]


class Library:
    """One of the two, under common names."""

    def __init__(self, m: Any, ag: Any, **names: Any) -> None:
        self.m, self.ag, self.f64 = m, ag, m.float64
        self.__dict__.update(names)

    def t(self, values: Any, requires_grad: bool = False) -> Any:
        return self.m.tensor(values, dtype=self.f64, requires_grad=requires_grad)

    def function(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
        """A Function of these two."""
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type(self.ag.Function)("F", (self.ag.Function,), members)

    @property
    def square(self) -> Any:
        """A Function that keeps its input."""

        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

        return self.function(forward, backward)


ours = Library(
    pc,
    pa,
    nograd=pa.no_grad,
    enable=pa.enable_grad,
    inf=pa.inference_mode,
    sge=pa.set_grad_enabled,
    ige=pa.is_grad_enabled,
    an=pa.detect_anomaly,
    gc_=pa.gradcheck,
    G=pa.graph,
    sth=pa.graph.saved_tensors_hooks,
    once=pa.once_differentiable,
    ck=pa.checkpoint,
)


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **kwargs)


theirs = Library(
    torch,
    torch.autograd,
    nograd=torch.no_grad,
    enable=torch.enable_grad,
    inf=torch.inference_mode,
    sge=torch.set_grad_enabled,
    ige=torch.is_grad_enabled,
    an=torch.autograd.detect_anomaly,
    gc_=torch.autograd.gradcheck,
    G=torch.autograd.graph,
    sth=torch.autograd.graph.saved_tensors_hooks,
    once=torch.autograd.function.once_differentiable,
    ck=checkpoint,
)

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def case(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    assert program.__name__ not in PROGRAMS
    PROGRAMS[program.__name__] = program
    return program


def gl(x: Any) -> Any:
    """The elements of a gradient, or None."""
    return None if x is None else x.tolist()


def outcome(program: Callable[[Any], Any], library: Library) -> str:
    """What the program returned, or that it failed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(program(library))
        except Exception:
            return "an error"
