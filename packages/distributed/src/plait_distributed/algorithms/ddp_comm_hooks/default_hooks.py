"""All-reduce as a communication hook, plain or in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_distributed._arguments import core
from plait_distributed._buckets import GradBucket
from plait_distributed._futures import Future
from plait_distributed._reductions import all_reduce
from plait_distributed._world import default_group

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "compressing",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future]


def _mean(group: Any, tensor: Any) -> Future:
    own = group if group is not None else default_group("a communication hook")
    tensor.div_(own.size())
    work = all_reduce(tensor, group=own, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the mean over the ranks: what `DistributedDataParallel` does without a hook.

    Args:
        process_group: The ranks; None: all.
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> def train(model):
        ...     model.register_comm_hook(None, default_hooks.allreduce_hook)
    """
    return _mean(process_group, bucket.buffer())


def _compressed(dtype: Any, group: Any, bucket: GradBucket) -> Future:
    buffer = bucket.buffer()

    def widen(future: Future) -> Any:
        buffer.copy_(future.value())
        return buffer

    return _mean(group, buffer.to(dtype)).then(widen)


def compressing(dtype: Any) -> Hook:
    """Return the hook that sends gradients in a dtype.

    Args:
        dtype: The dtype in which gradients are sent.

    Example:
        >>> import plait_core as pc
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> hook = default_hooks.compressing(pc.bfloat16)
    """
    return lambda group, bucket: _compressed(dtype, group, bucket)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the mean over the ranks, sent in float16: half the bytes, 11 bits of precision.

    Args:
        process_group: The ranks; None: all.
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> def train(model):
        ...     model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    """
    return _compressed(core().float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Return the mean over the ranks, sent in bfloat16: half the bytes, 8 bits of precision.

    Args:
        process_group: The ranks; None: all.
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> def train(model):
        ...     model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    """
    return _compressed(core().bfloat16, process_group, bucket)


def _wrapped(hook: Hook, dtype: Any) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future:
        wide = bucket.buffer()
        narrow = wide.to(dtype)
        views = []
        for gradient in bucket.gradients():
            at = gradient.storage_offset() - wide.storage_offset()
            views.append(narrow[at : at + gradient.numel()].view(gradient.shape))
        inner = GradBucket(bucket.index(), narrow, views, bucket.parameters(), bucket.is_last())

        def widen(future: Future) -> Any:
            value = future.value()
            wide.copy_(value[0] if isinstance(value, (list, tuple)) else value)
            return wide

        return hook(state, inner).then(widen)

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another one with the gradients in float16.

    Args:
        hook: The hook to call with the cast gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> hook = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    """
    return _wrapped(hook, core().float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another one with the gradients in bfloat16.

    Args:
        hook: The hook to call with the cast gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> hook = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    """
    return _wrapped(hook, core().bfloat16)
