"""`torch.cuda.make_graphed_callables`: functions and layers whose work is a recorded graph."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["make_graphed_callables"]


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Return functions that do the same by replaying graphs, forwards and backwards.

    Args:
        callables: a function or layer whose arguments and result are tensors, or a tuple of them.
        sample_args: arguments with the shapes of all later calls, or a tuple of such tuples.
        num_warmup_iters: how often each runs before it is recorded.
        allow_unused_input: whether an argument may have no gradient.
        pool: a pool of memory, see `plait.cuda.graph_pool_handle`.

    Raises:
        RuntimeError: if there is no CUDA device.
        TypeError: for a function whose result is no tensor.
    """
    if not isinstance(callables, tuple):
        return make_graphed_callables(
            (callables,), (sample_args,), num_warmup_iters, allow_unused_input, pool
        )[0]
    if pool is None:
        pool = plait.cuda.graph_pool_handle()
    return tuple(
        _graphed(function, tuple(args), num_warmup_iters, allow_unused_input, pool)
        for function, args in zip(callables, sample_args, strict=True)
    )


class _Recorded:
    """The graphs of one function, and the tensors that they read and write."""

    def __init__(self, function: Any, args: tuple[Any, ...], unused: bool, pool: Any) -> None:
        parameters = [p for p in _parameters(function) if p.requires_grad]
        self.inputs, self.args = (*args, *parameters), args
        self.wanted = [each for each in self.inputs if each.requires_grad]
        self.forward, self.backward = plait.cuda.CUDAGraph(), plait.cuda.CUDAGraph()
        stream = plait.cuda.Stream()  # gradients are computed in the stream of the forward pass
        with plait.cuda.graph(self.forward, pool=pool, stream=stream):
            self.output = function(*args)
        if not isinstance(self.output, plait.Tensor):
            kind = type(self.output).__name__
            raise TypeError(f"make_graphed_callables: a result must be a tensor, got {kind}")
        self.gradient = plait.empty_like(self.output)
        self.gradients: tuple[Any, ...] = ()
        if self.wanted and self.output.requires_grad:
            with plait.cuda.graph(self.backward, pool=pool, stream=stream):
                self.gradients = plait.autograd.grad(
                    self.output, self.wanted, self.gradient, allow_unused=unused
                )


def _parameters(function: Any) -> list[Any]:
    return list(function.parameters()) if isinstance(function, plait.nn.Module) else []


def _graphed(function: Any, args: tuple[Any, ...], warmups: int, unused: bool, pool: Any) -> Any:
    _warm_up(function, args, warmups, unused)
    recorded = _Recorded(function, args, unused, pool)

    class Replayed(plait.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            for ours, given in zip(recorded.args, inputs, strict=False):
                if ours.data_ptr() != given.data_ptr():
                    ours.detach().copy_(given)
            recorded.forward.replay()
            return recorded.output.detach()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            recorded.gradient.copy_(gradient)
            recorded.backward.replay()
            results = iter(recorded.gradients)
            return tuple(
                _detached(next(results)) if each.requires_grad else None for each in recorded.inputs
            )

    parameters = recorded.inputs[len(args) :]

    def call(*given: Any) -> Any:
        return Replayed.apply(*given, *parameters)

    if not isinstance(function, plait.nn.Module):
        return call
    before, mode = function.forward, function.training
    # another mode of training computes something else, which was not recorded
    function.forward = lambda *a: call(*a) if function.training == mode else before(*a)
    return function


def _detached(gradient: Any) -> Any:
    return None if gradient is None else gradient.detach()


def _warm_up(function: Any, args: tuple[Any, ...], times: int, unused: bool) -> None:
    plait.cuda.synchronize()
    with plait.cuda.stream(plait.cuda.Stream()):
        wanted = [each for each in (*args, *_parameters(function)) if each.requires_grad]
        for _ in range(times):
            output = function(*args)
            if wanted and output.requires_grad:
                plait.autograd.grad(
                    output, wanted, plait.empty_like(output).fill_(0), allow_unused=unused
                )
    plait.cuda.synchronize()
