"""The hooks around the calls of sharded modules, and during backward passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from plait_abi.components import require
from plait_distributed._casting import map_tensors
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.fsdp._group import GroupedParameter, ParameterGroup


class _Pass:
    """A backward pass: by group, the parameters whose gradients it has still to compute."""

    def __init__(self, groups: list[ParameterGroup]) -> None:
        graph = require("autograd").graph
        self.expected: dict[int, set[int]] = {}
        for group in groups:
            results = {
                id(p)
                for p in group.parameters
                if p.node is not None and p.whole.requires_grad and graph.will_run(p.node)
            }
            if results:
                self.expected[id(group)] = results


class Root:
    """The outermost sharded module of a call: what its groups do in which order."""

    def __init__(self, states: list[ShardedState]) -> None:
        self.states = states
        self.groups = [s.group for s in states if s.group is not None]
        self.before: list[ParameterGroup] = []  # the order of the last forward call
        self.order: list[ParameterGroup] = []  # of the one that runs
        self.depth = 0
        self._whole_at: dict[int, tuple[ParameterGroup, GroupedParameter]] = {}
        for group in self.groups:
            group.reshard()
            group.whole_at = self._whole_at
        self._autograd = require("autograd")
        self._passes: dict[int, _Pass] = {}  # those that run, by number
        self._pending: list[tuple[ParameterGroup, Any]] = []

    def forget(self) -> None:
        """Forget calls and passes that failed, and their order."""
        self.before, self.order, self.depth = [], [], 0
        self._passes, self._pending = {}, []

    # ---- forward calls ---------------------------------------------------------------------------

    def enter(self, group: ParameterGroup) -> None:
        """Make a group's parameters whole, and begin with those that come next."""
        group.unshard()
        if self.in_backward():
            return
        at = len(self.order)
        self.order.append(group)
        if self.before[at : at + 1] == [group] and at + 1 < len(self.before):
            self.before[at + 1].begin_unshard()

    def in_backward(self) -> bool:
        """Return whether a backward pass calls, as for a checkpoint."""
        return bool(self._autograd.graph.running_pass())

    def begin(self) -> None:
        """The outermost call begins."""
        self.before, self.order = (self.order or self.before), []
        if any(each.expected for each in self._passes.values()):  # one that failed
            for group in self.groups:
                group.drop_gradients()
        for _, each in self._pending:
            each.drop()
        self._passes, self._pending = {}, []

    def end(self) -> None:
        """It has ended; without a graph no backward pass gives memory back."""
        keeps = self._autograd.is_grad_enabled()
        for group in self.groups:
            if not keeps or group.gathering:
                group.reshard()

    # ---- saved tensors ---------------------------------------------------------------------------

    def saving(self) -> Any:
        """A context in which graphs save which parameter they need in place of its memory.

        Within other hooks for saved tensors nothing is done: a checkpoint drops what is saved.
        """
        graph = self._autograd.graph
        if not self._autograd.is_grad_enabled() or graph.saved_hooks_are_active():
            return contextlib.nullcontext()
        return graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Any) -> Any:
        result = self._whole_at.get(tensor._storage_extent()[0]) if tensor.numel() else None
        if result is None or result[1].whole.dtype != tensor.dtype:
            return tensor
        group, p = result
        view = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        return group, p, view, p.sharded._version

    def _unpack(self, packed: Any) -> Any:
        if not isinstance(packed, tuple):
            return packed
        group, p, (shape, stride, offset), version = packed
        if p.sharded._version != version:
            raise RuntimeError(
                f"fully_shard: the parameter {p.name} was written to between the forward call and "
                "the backward pass that needs it"
            )
        self.need(group)
        return p.whole.detach().as_strided(shape, stride, offset)

    # ---- backward passes -------------------------------------------------------------------------

    def need(self, group: ParameterGroup) -> None:
        """A pass comes to a group: make it whole, and begin with the one behind it."""
        expected = self._running().expected
        if group.is_whole:
            return
        group.unshard()
        if group in self.order:
            at = self.order.index(group)
            if at > 0 and id(self.order[at - 1]) in expected:
                self.order[at - 1].begin_unshard()

    def _running(self) -> _Pass:
        """Return the pass that runs."""
        number = self._autograd.graph.running_pass()
        result = self._passes.get(number)
        if result is None:
            result = self._passes[number] = _Pass(self.groups)
        return result

    def arrived(self, group: ParameterGroup, p: GroupedParameter) -> None:
        """The gradient of a parameter is there."""
        expected = self._running().expected
        waiting = expected.get(id(group), set())
        waiting.discard(id(p))
        if waiting:
            return
        expected.pop(id(group), None)
        state = next(s for s in self.states if s.group is group)
        with self._autograd.no_grad():
            if state.syncs:
                self._reduce(group)
            if state.reshard_after_backward:
                group.reshard()
            if not expected:
                self._finish()

    def _reduce(self, group: ParameterGroup) -> None:
        self._wait()  # so that the memory of one group's gradients is in use at a time
        self._pending = [(group, each) for each in group.reduce()]

    def _wait(self) -> None:
        pending, self._pending = self._pending, []
        for group, each in pending:
            each.finish(group.factor)

    def _finish(self) -> None:
        """The pass has computed all gradients that it computes."""
        for state in self.states:
            group = state.group
            if group is None:
                continue
            if state.syncs and group.has_gradients():  # of passes that did not reduce
                self._reduce(group)
            if state.reshard_after_backward:
                group.reshard()
        self._wait()
        self._passes.pop(self._autograd.graph.running_pass(), None)


class ShardedState:
    """One sharded module: its group of parameters, and its options."""

    def __init__(self, module: Any, reshard_after_forward: bool | None) -> None:
        self.module = module
        self.group: ParameterGroup | None = None
        self.root: Root | None = None
        self.reshard_after_forward = reshard_after_forward
        self.reshard_after_backward = True
        self.syncs = True
        self.policy: Any = None

    def regroup(self, mesh: DeviceMesh) -> None:
        """Continue in another mesh; the parameters are zeros until they are loaded."""
        if self.root is not None:
            self.root.forget()
        if self.group is not None:
            self.group.regroup(mesh)

    def arrived(self, group: ParameterGroup, p: GroupedParameter) -> None:
        """The gradient of a parameter is there."""
        assert self.root is not None
        self.root.arrived(group, p)

    def find_root(self, states: Callable[[], list[ShardedState]]) -> Root:
        """Return the root of the call that runs; this module, if no other one is."""
        if self.root is None or (self.root.depth == 0 and self.root.states[0] is not self):
            result = states()
            root = Root([self, *(s for s in result if s is not self)])
            for state in root.states:
                state.root = root
        assert self.root is not None
        return self.root

    @contextlib.contextmanager
    def running(self, root: Root) -> Iterator[None]:
        """The context of one call of the module."""
        outermost = root.depth == 0 and not root.in_backward()
        if outermost:
            root.begin()
        root.depth += 1
        try:
            if self.group is not None:
                root.enter(self.group)
            with root.saving():
                yield
        finally:
            root.depth -= 1
        if root.in_backward():
            return
        after = self.reshard_after_forward
        if self.group is not None and (not outermost if after is None else after):
            self.group.reshard()
        if outermost:
            root.end()

    def watch(self, root: Root, outputs: Any) -> Any:
        """Make the parameters whole again when a gradient comes to an output."""
        group = self.group
        if group is None or not require("autograd").is_grad_enabled():
            return outputs

        def look(tensor: Any) -> Any:
            if tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(lambda _: root.need(group))
            return tensor

        return map_tensors(outputs, look)
