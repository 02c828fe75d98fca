"""The order in which a stage computes micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed.pipelining._stage import PipelineStage


class PipelineScheduleSingle:
    """A schedule for one stage a rank; `ScheduleGPipe` and `Schedule1F1B` say in which order.

    Args:
        stage: this rank's.
        n_microbatches: into how many parts a batch is divided, in its first dimension.
        loss_fn: called as ``loss_fn(output, target)`` for each micro-batch, by the last stage.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: None.
        scale_grads: whether gradients are divided by the number of micro-batches, as for the mean
            over the batch.

    Example:
        >>> from plait_distributed.pipelining import PipelineScheduleSingle, ScheduleGPipe
        >>> issubclass(ScheduleGPipe, PipelineScheduleSingle)
        True
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        name = type(self).__name__
        if not isinstance(stage, PipelineStage):
            raise TypeError(f"{name}: `stage` must be a PipelineStage, got {stage!r}")
        if n_microbatches < 1:
            raise ValueError(f"{name}: `n_microbatches` must be positive, got {n_microbatches}")
        specs = (args_chunk_spec, kwargs_chunk_spec, output_merge_spec)
        if any(spec is not None for spec in specs):
            raise NotImplementedError(
                f"{name}: chunk specs must be None: batches are divided in their first dimension"
            )
        self._stage = stage
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self.scale_grads = scale_grads

    def _order(self) -> Iterator[tuple[bool, int]]:
        """Yield whether a micro-batch is computed forwards, and its number."""
        raise NotImplementedError(f"{type(self).__name__}: define the order")

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Compute a batch and its gradients. All ranks call it.

        Args:
            args: the batch, on the first stage alone.
            target: for the loss, on the last stage alone.
            losses: a list that gets the loss of each micro-batch, on the last stage.
            return_outputs: whether the last stage returns the output.
            kwargs: for this rank's layers; tensors are divided as the batch is.

        Returns:
            The output of the whole batch, on the last stage; None on others.

        Raises:
            ValueError: the batch is not given on the first stage alone, or is too small.
        """
        if not require("autograd").is_grad_enabled():
            raise RuntimeError(f"{type(self).__name__}.step: use eval() under no_grad()")
        stage, n = self._stage, self._n_microbatches
        if stage.is_last and self._loss_fn is None:
            raise ValueError(f"{type(self).__name__}: `loss_fn` must be given on the last stage")
        parts, named, targets = self._divided(args, kwargs, target)
        outputs: list[Any] = [None] * n
        result: list[Any] = [None] * n
        scale = 1.0 / n if self.scale_grads else 1.0
        done = 0
        try:
            for forwards, chunk in self._order():
                if forwards:
                    outputs[chunk] = stage.forward(chunk, parts[chunk], named[chunk])
                    if stage.is_last:
                        assert self._loss_fn is not None
                        result[chunk] = self._loss_fn(outputs[chunk], targets[chunk])
                        outputs[chunk] = _detached(outputs[chunk]) if return_outputs else None
                    continue
                done += 1
                stage.backward(chunk, result[chunk], scale, done == n)
                result[chunk] = result[chunk].detach() if stage.is_last else None
            stage.flush()
        except BaseException:
            stage.forget()
            raise
        if stage.is_last and losses is not None:
            losses[:] = result
        return _merged(outputs) if stage.is_last and return_outputs else None

    def eval(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any
    ) -> Any:
        """Compute a batch without gradients; see `step`."""
        stage, n = self._stage, self._n_microbatches
        parts, named, targets = self._divided(args, kwargs, target)
        outputs, result = [], []
        with require("autograd").no_grad():
            for chunk in range(n):
                # described as chunks of their own: nothing of them needs a gradient
                outputs.append(stage.forward(n + chunk, parts[chunk], named[chunk]))
                if stage.is_last and losses is not None and self._loss_fn is not None:
                    result.append(self._loss_fn(outputs[-1], targets[chunk]))
            stage.flush()
        if losses is not None and stage.is_last:
            losses[:] = result
        return _merged(outputs) if stage.is_last else None

    def _divided(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any
    ) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]], list[Any]]:
        n, name = self._n_microbatches, type(self).__name__
        if bool(args) != self._stage.is_first:
            where = "must be given" if self._stage.is_first else "must not be given"
            raise ValueError(
                f"{name}: the batch {where} on stage {self._stage.stage_index} of "
                f"{self._stage.num_stages}"
            )
        arguments = [_chunks(name, x, n) for x in args]
        parts = [tuple(x[i] for x in arguments) for i in range(n)]
        of_names = {key: _chunks(name, x, n) for key, x in kwargs.items()}
        named = [{key: x[i] for key, x in of_names.items()} for i in range(n)]
        return parts, named, _chunks(name, target, n)


def _chunks(caller: str, value: Any, n: int) -> list[Any]:
    if not hasattr(value, "requires_grad") or value.ndim == 0:
        return [value] * n
    if value.shape[0] < n:
        raise ValueError(
            f"{caller}: a batch of shape {tuple(value.shape)} can't be divided into {n} "
            "micro-batches"
        )
    return list(core().tensor_split(value, n))


def _detached(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(x) for x in value)
    return value.detach()


def _merged(outputs: list[Any]) -> Any:
    if isinstance(outputs[0], (list, tuple)):
        columns = zip(*outputs, strict=True)
        return type(outputs[0])(_merged(list(each)) for each in columns)
    if outputs[0].ndim == 0:
        return core().stack(outputs)
    return core().cat(outputs)


class ScheduleGPipe(PipelineScheduleSingle):
    """All micro-batches forwards, then all backwards.

    Args and errors: those of `PipelineScheduleSingle`.

    Reference:
        Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
        Parallelism", 2019.

    Args:
        stage: This rank's stage.
        n_microbatches: Into how many parts a batch is cut.
        loss_fn: The loss of output and target, on the last stage.
        args_chunk_spec: How positional arguments are cut; None: along dimension 0.
        kwargs_chunk_spec: How keyword arguments are cut; None: along dimension 0.
        output_merge_spec: How outputs are joined; None: along dimension 0.
        scale_grads: Whether gradients are divided by the number of parts.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> dist.init_process_group(init_method="shm:gpipe", rank=0, world_size=1)
        >>> stage = PipelineStage(nn.Linear(2, 1), 0, 1)
        >>> schedule = ScheduleGPipe(stage, 2, loss_fn=nn.functional.mse_loss)
        >>> losses = []
        >>> schedule.step(pc.ones(4, 2), target=pc.ones(4, 1), losses=losses).shape, len(losses)
        (plait.Size([4, 1]), 2)
        >>> dist.destroy_process_group()
    """

    def _order(self) -> Iterator[tuple[bool, int]]:
        n = self._n_microbatches
        yield from ((True, chunk) for chunk in range(n))
        yield from ((False, chunk) for chunk in range(n))


class Schedule1F1B(PipelineScheduleSingle):
    """One micro-batch forwards, one backwards: a stage holds as many as stages follow it.

    Args and errors: those of `PipelineScheduleSingle`.

    Reference:
        Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", 2019.

    Args:
        stage: This rank's stage.
        n_microbatches: Into how many parts a batch is cut.
        loss_fn: The loss of output and target, on the last stage.
        args_chunk_spec: How positional arguments are cut; None: along dimension 0.
        kwargs_chunk_spec: How keyword arguments are cut; None: along dimension 0.
        output_merge_spec: How outputs are joined; None: along dimension 0.
        scale_grads: Whether gradients are divided by the number of parts.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.pipelining import PipelineStage, Schedule1F1B
        >>> dist.init_process_group(init_method="shm:1f1b", rank=0, world_size=1)
        >>> stage = PipelineStage(nn.Linear(2, 1), 0, 1)
        >>> schedule = Schedule1F1B(stage, 2, loss_fn=nn.functional.mse_loss)
        >>> schedule.step(pc.ones(4, 2), target=pc.ones(4, 1)).shape
        plait.Size([4, 1])
        >>> dist.destroy_process_group()
    """

    def _order(self) -> Iterator[tuple[bool, int]]:
        n = self._n_microbatches
        ahead = min(n, self._stage.num_stages - self._stage.stage_index)
        yield from ((True, chunk) for chunk in range(ahead))
        for chunk in range(n):
            yield False, chunk
            if ahead + chunk < n:
                yield True, ahead + chunk
