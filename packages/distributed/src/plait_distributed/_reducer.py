"""Reduces gradients over the ranks while the backward pass runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._buckets import Bucket, GradBucket, divide
from plait_distributed._process_group import ProcessGroup

FIRST_BUCKET_BYTES = 1 << 20
# the reducer in whose buckets a parameter's gradient lies, by the parameter's id
_PLACED: weakref.WeakValueDictionary[int, Reducer] = weakref.WeakValueDictionary()


class Reducer:
    """The buckets of some parameters, and how far the pass that runs has come.

    The engine makes each parameter's gradient in the bucket, and ``.grad`` is the view of it. A
    gradient that came otherwise is copied there by the hook of its parameter.
    A bucket is reduced when it is complete and all before it are on their way, so that every rank
    calls the collectives in one order. The hook of the last gradient waits for all of them.
    """

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[Any],
        group: ProcessGroup,
        bucket_bytes: int,
        find_unused: bool,
        static: bool,
    ) -> None:
        self._names = list(names)
        self._parameters = list(parameters)
        self._group = group
        self._sizes = [min(FIRST_BUCKET_BYTES, bucket_bytes), bucket_bytes]
        self._find_unused = find_unused or static
        self._static = static
        self._strided = core().strided
        self._comm_hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.enabled = True  # not within no_sync
        self._order: list[int] = []  # in which gradients came, in the first pass
        self._rebuilt = find_unused and not static
        self._autograd = require("autograd")
        self._make_buckets(list(reversed(range(len(parameters)))))
        self._by_all = True  # whether joined ranks count in means
        self.going = group.size()  # ranks that have batches
        self._nodes = [
            self._autograd.graph.get_gradient_edge(parameter).node for parameter in parameters
        ]
        self._begin()
        self._running = -1  # the number of the pass that fills the buckets
        self._unused: set[int] = set()
        me = weakref.ref(self)
        self._handles = [
            parameter.register_post_accumulate_grad_hook(_hook_of(me, i))
            for i, parameter in enumerate(parameters)
        ]

    def _make_buckets(self, order: Sequence[int]) -> None:
        self.buckets = [
            Bucket(indices, [self._parameters[i] for i in indices], self._group.zeros)
            for indices in divide(self._parameters, order, self._sizes)
        ]
        self._place = {
            i: (bucket, bucket.views[at], bucket.views[at].data_ptr(), bucket.views[at].stride())
            for bucket in self.buckets
            for at, i in enumerate(bucket.indices)
        }
        for i, place in self._place.items():
            self._autograd.graph.set_gradient_place(self._parameters[i], place[1])
            _PLACED[id(self._parameters[i])] = self

    def _begin(self) -> None:
        """Make all buckets empty."""
        for bucket in self.buckets:
            bucket.missing = set(bucket.indices)
            bucket.launched = False
        self._next = 0  # the bucket that is reduced next
        self._pending: list[tuple[Bucket, Callable[[], Any]]] = []
        self._left = len(self._parameters)
        self._came: set[int] = set()
        self._used_elsewhere: Any = None
        self._under_way = False

    @property
    def comm_hook(self) -> tuple[Any, Callable[[Any, GradBucket], Any]] | None:
        """The function that replaces the all-reduce, with its state, or None."""
        return self._comm_hook

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Call ``hook(state, bucket)`` in place of the all-reduce."""
        self._comm_hook = (state, hook)

    def join(self, by_all: bool) -> None:
        """Begin passes that some ranks may not take part in: buckets keep their order."""
        self._rebuilt, self._by_all = True, by_all

    def unjoin(self) -> None:
        """End them: all ranks take part again."""
        self._by_all, self.going = True, self._group.size()

    def contribute_nothing(self) -> None:
        """Take part in the collectives of a pass of other ranks, with zeros."""
        self._unused = set(range(len(self._parameters)))
        buffers = [bucket.buffer for bucket in self.buckets]
        for index, bucket in enumerate(self.buckets):
            bucket.buffer = core().zeros_like(bucket.buffer)
            self._launch(index)
        used = self._begin_to_ask_who_used() if self._find_unused else None
        for _, wait in self._pending:
            wait()
        if used is not None:
            used()
        for bucket, buffer in zip(self.buckets, buffers, strict=True):
            bucket.buffer = buffer
        self._begin()

    def prepare(self) -> None:
        """Get ready for the pass of a forward call."""
        if self._under_way:
            missing = sorted(i for bucket in self.buckets for i in bucket.missing)
            names = ", ".join(self._names[i] for i in missing[:8])
            more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
            self._begin()
            raise RuntimeError(
                "DistributedDataParallel: the last backward pass computed no gradient for the "
                f"parameters {names}{more}, so gradients were not reduced; use all outputs in the "
                "loss, or pass find_unused_parameters=True"
            )
        if not self._rebuilt and len(self._order) == len(self._parameters):
            self._rebuild()

    def prepare_for_backward(self, outputs: Sequence[Any]) -> None:
        """Let the next backward pass reduce, also if the forward call was within ``no_sync``.

        It is a name of PyTorch that trainers call; `outputs` is not read.
        """
        self.enabled = True
        self.prepare()

    def _rebuild(self) -> None:
        """Make the buckets anew, in the order in which rank 0's gradients came."""
        new, self._rebuilt = core(), True
        order = new.tensor(self._order, dtype=new.int64)
        call = self._group.begin_call("DistributedDataParallel order", "", (order,))
        self._group.start(call, "broadcast", [order], [order], peer=0)
        gradients = {
            i: parameter.grad
            for i, parameter in enumerate(self._parameters)
            if parameter.grad is not None
        }
        self._make_buckets(order.tolist())
        self._begin()
        for i, gradient in gradients.items():
            self._take(i, gradient)

    def _take(self, i: int, gradient: Any) -> None:
        """Copy a gradient into its bucket, unless it lies there, and make it the parameter's."""
        view, address, strides = self._place[i][1:]
        if gradient.layout is not self._strided:
            raise NotImplementedError(
                f"DistributedDataParallel: the gradient of {self._names[i]} is sparse; give its "
                "module sparse=False"
            )
        if gradient.data_ptr() != address or gradient.stride() != strides:
            with self._autograd.no_grad():
                view.copy_(gradient)
            self._parameters[i].grad = view

    # ---- the pass ----------------------------------------------------------------------------

    def arrived(self, i: int) -> None:
        """The gradient of a parameter has been added to its ``.grad``."""
        if not self.enabled or self._group.is_closed:
            return
        if self._find_unused:
            self._look_at_pass()
        self._under_way = True
        bucket = self._place[i][0]
        if bucket.launched or i in self._came:
            raise RuntimeError(
                f"DistributedDataParallel: the parameter {self._names[i]} got a gradient twice in "
                "one backward pass, as with re-entrant checkpoints; give use_reentrant=False there"
            )
        self._take(i, self._parameters[i].grad)
        self._came.add(i)
        if not self._rebuilt and len(self._order) < len(self._parameters):
            self._order.append(i)
        self._mark(i)

    def _look_at_pass(self) -> None:
        """At the first gradient of a pass, mark parameters that it will not reach."""
        number = self._autograd.graph.running_pass()
        if number == self._running and self._under_way:
            return
        self._running = number
        will_run = self._autograd.graph.will_run
        unused = [i for i, node in enumerate(self._nodes) if not will_run(node)]
        self._unused = set(unused)
        self._under_way = True
        with self._autograd.no_grad():
            for i in unused:
                view = self._place[i][1]
                gradient = self._parameters[i].grad
                if gradient is None:
                    view.zero_()
                elif gradient.data_ptr() != view.data_ptr():
                    view.copy_(gradient)
        for i in unused:
            self._mark(i)

    def _mark(self, i: int) -> None:
        bucket = self._place[i][0]
        bucket.missing.discard(i)
        self._left -= 1
        if bucket.missing:
            return
        with self._autograd.no_grad():
            while self._next < len(self.buckets) and not self.buckets[self._next].missing:
                self._launch(self._next)
                self._next += 1
            if self._left == 0:
                self._finish()

    def _launch(self, index: int) -> None:
        bucket = self.buckets[index]
        bucket.launched = True
        if self._comm_hook is not None:
            state, hook = self._comm_hook
            last = index == len(self.buckets) - 1
            grad_bucket = GradBucket(index, bucket.buffer, bucket.views, bucket.parameters, last)
            self._pending.append((bucket, hook(state, grad_bucket).wait))
            return
        call = self._group.begin_call(
            "DistributedDataParallel gradients", f"bucket {index}", (bucket.buffer,)
        )
        part = self._group.start(
            call,
            "all_reduce",
            [bucket.buffer],
            [bucket.buffer],
            reduction="mean",
            asynchronous=True,
        )
        assert part is not None
        self._pending.append((bucket, part.wait))

    def _finish(self) -> None:
        """Wait for all buckets; then their views are the parameters' gradients."""
        used = self._begin_to_ask_who_used() if self._find_unused else None
        for bucket, wait in self._pending:
            result = wait()
            if result is not None:
                _copy_result(bucket, result)
            if not self._by_all and self.going < self._group.size():
                bucket.buffer.mul_(self._group.size() / self.going)
        if used is not None:
            self._set_unused(used())
        if self._static and not self._rebuilt and len(self._order) < len(self._parameters):
            self._order += [i for i in reversed(range(len(self._parameters))) if i in self._unused]
        self._begin()

    def _begin_to_ask_who_used(self) -> Callable[[], Any]:
        new = core()
        flags = new.ones(len(self._parameters), dtype=new.uint8)
        for i in self._unused:
            flags[i] = 0
        call = self._group.begin_call("DistributedDataParallel used parameters", "", (flags,))
        part = self._group.start(
            call, "all_reduce", [flags], [flags], reduction="max", asynchronous=True
        )
        assert part is not None

        def wait() -> Any:
            part.wait()
            return flags.tolist()

        return wait

    def _set_unused(self, used: Sequence[int]) -> None:
        """Parameters that another rank used get their gradients; others keep what they had."""
        for i in self._unused:
            if used[i]:
                self._parameters[i].grad = self._place[i][1]

    def forget(self) -> None:
        """Remove the hooks; new gradients have memory of their own again."""
        for handle in self._handles:
            handle.remove()
        for parameter in self._parameters:
            if _PLACED.get(id(parameter), self) is self:
                self._autograd.graph.set_gradient_place(parameter, None)

    def __del__(self) -> None:
        """Leave the parameters as they were, but for those that another reducer has by now."""
        if hasattr(self, "_handles"):
            self.forget()


def _copy_result(bucket: Bucket, result: Any) -> None:
    """Copy what a communication hook's future gave, unless it is the bucket itself."""
    tensor = result[0] if isinstance(result, (list, tuple)) else result
    if not hasattr(tensor, "data_ptr") or tensor.numel() != bucket.buffer.numel():
        raise TypeError(
            "DistributedDataParallel: a communication hook's future must give a tensor of the "
            f"bucket's {bucket.buffer.numel()} elements, got {result!r}"
        )
    if tensor.data_ptr() != bucket.buffer.data_ptr():
        bucket.buffer.copy_(tensor.view(-1))


def _hook_of(reducer: weakref.ref[Reducer], i: int) -> Callable[[Any], None]:
    def hook(_: Any) -> None:
        result = reducer()
        if result is not None:
            result.arrived(i)

    return hook
