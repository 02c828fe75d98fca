"""Compiled functions: recorded once, and then run without Python."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import json
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import plait_autograd
import plait_core as pc
from plait_func.pytree import LeafSpec, tree_flatten, tree_unflatten
from plait_graph import _graph
from plait_graph._capture import Argument, Given, Name, NotOneNode, Recording, is_recording, record
from plait_graph._check import run_checked, run_part
from plait_graph._computation_graph import Graph
from plait_graph._differences import Recordings, made_anew
from plait_graph._families import Families, Family
from plait_graph._free_sizes import FreeSizes
from plait_graph._optimizers import OptimizerNumbers
from plait_graph._parts import Part, names_defined, names_in, sources_of
from plait_graph._reach import Reach
from plait_graph._symbolic_size import SizeReads
from plait_graph._templates import Sample

_MOST_PROGRAMS = 16  # of one key; the oldest one goes
_MOST_UNUSED = 5  # programs of one key in succession that never ran


class _Frozen:
    """A recording that runs as a program, and what must hold for that."""

    def __init__(
        self,
        function: Callable[..., Any],
        recording: Recording,
        numbers: OptimizerNumbers,
        reach: Reach,
        grads: list[tuple[pc.Tensor, bool]],
        constants: set[str],
    ) -> None:
        self.function, self.recording, self._numbers = function, recording, numbers
        self.has_run = False
        given = set(map(id, recording.given))  # other calls get other arguments
        reach.tensors = [tensor for tensor in reach.tensors if id(tensor) not in given]
        self.reach = reach
        names = list(dict.fromkeys(recording.inputs))
        self._names = names
        self._positions = [recording.inputs.index(name) for name in names]
        results = [str(leaf) for leaf in recording.leaves if isinstance(leaf, Name)]
        self._n_results = len(results)
        self._is_tensor = isinstance(recording.structure, LeafSpec) and len(results) == 1
        # a gradient that the function made anew is a result; one that it added to is a weight
        made = recording.made
        self._new_grads = {t: grad for t, grad in recording.grads.items() if grad in made}
        self._old_grads = {t: g for t, g in recording.grads.items() if g in recording.outside}
        nodes = recording.nodes[: recording.n_forward]
        later = recording.nodes[recording.n_forward :]
        tangents = [name for name in recording.tangents if name]
        local = set(recording.outside) | names_defined(later)
        self._saved = sorted((names_in(later) | set(recording.gradients.values())) - local)
        outputs = [*results, *self._new_grads.values(), *self._saved]
        self._forward = Part(recording, nodes, names, outputs, numbers.entries)
        self._backward: Part | None = None
        if recording.gradients:
            gradients = list(recording.gradients.values())
            self._backward = Part(
                recording, later, [*self._saved, *tangents], gradients, [], is_backward=True
            )
            found = sources_of(self._backward, tangents)
            self._saved_results = [i for i, n in enumerate(results) if n in set(self._saved)]
            self._refuse_shared_results(results)
            self._depends = [found.get(name, set()) for name in gradients]
        # then a run is one call of C++, which has a lock of its own
        self._is_plain = (
            self._is_tensor
            and self._positions == list(range(len(recording.inputs)))
            and not (recording.grads or numbers.entries or recording.gradients)
        )
        self._constants = constants
        for name in constants.intersection(self._forward.program.written):
            tensor = recording.outside[name]
            raise NotImplementedError(
                f"compile: the function makes a tensor {tensor.dtype}{list(tensor.shape)} from "
                "Python data and writes to it in place; make it by an operator, such as zeros()"
            )
        read = {name for part in self.parts for name in part.weights} - set(
            self._old_grads.values()
        )
        kept = [t for name, t in recording.outside.items() if name in read]
        self._rest: tuple[list[Any], ...] = (kept, grads, reach.entries)
        self.guard = self._guard(tuple(recording.given))
        recording.capture = None  # which holds the memory of all values
        recording.given = []
        self.lock = threading.RLock()

    @property
    def parts(self) -> list[Part]:
        """What runs: the call, and its derivative if there is one."""
        return [part for part in (self._forward, self._backward) if part is not None]

    def _refuse_shared_results(self, results: list[str]) -> None:
        memories = dict(self._forward.program.memories())
        pairs = zip(results, self.recording.tangents, strict=True)
        places = [memories[name] for name, tangent in pairs if tangent and memories[name] >= 0]
        if len(set(places)) < len(places):
            raise NotOneNode  # a write to one would not be a write to the other

    def _guard(self, args: tuple[Any, ...]) -> Any:
        return _graph.Guard(args, *self._rest)

    @property
    def run_plain(self) -> Callable[[tuple[Any, ...]], Any] | None:
        """The call of C++ that a run is, which returns None where the guard does not hold."""
        return functools.partial(self.guard.run, self._forward.program) if self._is_plain else None

    def run(self, tensors: Any) -> Any:
        """Run with the tensors of the arguments, for which the guard holds."""
        if self._is_plain:
            return self._forward.program.run(tensors)[0]
        return self.run_whole(tensors)

    def distinct(self, tensors: Any) -> list[pc.Tensor]:
        """Return the tensors of the arguments, each once."""
        return [tensors[i] for i in self._positions]

    def run_whole(self, tensors: Any) -> Any:
        """Run as `run` does, also where that is one call of C++."""
        with self.lock:
            inputs = self.distinct(tensors)
            self.bind_grads(inputs)
            self._numbers.put(self._forward.program)
            if self._backward is None:
                outputs = run_part(self._forward, inputs)
            else:
                outputs = self._run_recorded(inputs)
            if self._new_grads:
                grads = outputs[self._n_results :]
                for name, grad in zip(self._new_grads, grads, strict=False):
                    self._tensor(name, inputs).grad = grad
            self._numbers.count()
        if self._is_tensor:
            return outputs[0]
        rest = iter(outputs)
        leaves: list[Any] = []
        for leaf in self.recording.leaves:
            if isinstance(leaf, Argument):
                leaves.append(tensors[leaf])
            elif isinstance(leaf, Given):
                tensor = self._tensor(leaf, inputs)
                leaves.append(tensor.clone() if leaf in self._constants else tensor)
            else:
                leaves.append(next(rest) if isinstance(leaf, Name) else leaf)
        return tree_unflatten(leaves, self.recording.structure)

    def _tensor(self, name: str, inputs: list[pc.Tensor]) -> pc.Tensor:
        """Return an argument or another tensor that the function reads."""
        if name in self.recording.outside:
            return self.recording.outside[name]
        return inputs[self._names.index(name)]

    def bind_grads(self, inputs: list[pc.Tensor]) -> None:
        """Let the program add to the gradients that its tensors have now."""
        outside = self.recording.outside
        changed = False
        for name, grad in self._old_grads.items():
            now = self._tensor(name, inputs).grad
            if now is not None and now is not outside[grad]:
                outside[grad] = now
                changed = True
        if changed:
            self._forward.bind(outside)

    def _run_recorded(self, inputs: list[pc.Tensor]) -> list[pc.Tensor]:
        """Run as one node of the engine, whose derivative is the program of the backward pass."""
        return list(CompiledFunction.apply(self, inputs, *self.sources(inputs)))

    def sources(self, inputs: list[pc.Tensor]) -> list[pc.Tensor]:
        """Return the tensors whose gradients the derivative computes."""
        return [self._tensor(name, inputs) for name in self.recording.gradients]

    def run_forward(self, inputs: list[pc.Tensor]) -> tuple[list[pc.Tensor], list[pc.Tensor]]:
        """Return the results, and the values that the derivative reads."""
        outputs = run_part(self._forward, inputs)
        return outputs[: self._n_results], outputs[len(outputs) - len(self._saved) :]

    def read_by_backward(
        self, inputs: list[pc.Tensor], results: list[pc.Tensor]
    ) -> list[pc.Tensor]:
        """Return the arguments, weights and results that the derivative reads."""
        assert self._backward is not None
        outside = self.recording.outside
        given = set(self.recording.tangents)
        saved = [self._tensor(name, inputs) for name in self._saved if name in self._names]
        saved += [results[i] for i in self._saved_results]
        return saved + [outside[name] for name in self._backward.weights if name not in given]

    def run_backward(self, saved: list[pc.Tensor], tangents: tuple[Any, ...]) -> list[Any]:
        """Return the gradients of the sources; None where no gradient reaches them."""
        assert self._backward is not None
        given, missing = [], set()
        for tangent, name in zip(tangents, self.recording.tangents, strict=True):
            if name is None:
                continue
            like = self.recording.outside[name]
            if tangent is None:
                missing.add(name)
                tangent = pc.zeros_like(like)
            elif tangent.stride() != like.stride():
                tangent = pc.empty_like(like).copy_(tangent)
            given.append(tangent)
        grads = run_part(self._backward, [*saved, *given])
        pairs = zip(grads, self._depends, strict=True)
        return [grad if depends - missing else None for grad, depends in pairs]

    @property
    def tangents(self) -> list[str | None]:
        """Names of the gradients of the results; None for one that requires no grad."""
        return self.recording.tangents

    @property
    def failures(self) -> list[str]:
        """Why a result has no derivative, or ""."""
        return self.recording.failures

    def run_eagerly(self, inputs: list[pc.Tensor]) -> list[pc.Tensor]:
        """Call the function itself; return the results that the program has."""
        tensors = [inputs[self._names.index(name)] for name in self.recording.inputs]
        args, kwargs = self._arguments(tensors)
        leaves = tree_flatten(self.function(*args, **kwargs))[0]
        pairs = zip(leaves, self.recording.leaves, strict=True)
        return [leaf for leaf, known in pairs if isinstance(known, Name)]

    def has_offsets(self, tensors: tuple[pc.Tensor, ...]) -> bool:
        """Return whether arguments lie where they lay in their memory, if that matters."""
        return not self.offsets or self.offsets == _offsets(tensors)

    offsets: list[int] | None = None
    _arguments: Callable[[list[pc.Tensor]], tuple[tuple[Any, ...], dict[str, Any]]]


class CompiledFunction(plait_autograd.Function):
    """The node of a compiled function in the graph of the engine."""

    @staticmethod
    def forward(ctx: Any, frozen: _Frozen, inputs: list[pc.Tensor], *sources: pc.Tensor) -> Any:
        """Run the program; see `plait.autograd.Function`."""
        results, saved = frozen.run_forward(inputs)
        ctx.frozen, ctx.inputs, ctx.sources = frozen, inputs, sources
        ctx.saved = saved
        ctx.save_for_backward(pc.empty(0))  # to tell that the graph was freed
        ctx.versions = [(t, t._version) for t in frozen.read_by_backward(inputs, results)]
        given = zip(results, frozen.tangents, frozen.failures, strict=True)
        ctx.mark_non_differentiable(*[result for result, name, why in given if not (name or why)])
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        """Run the program of the derivative; see `plait.autograd.Function`."""
        for tensor, version in ctx.versions:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: a tensor {tensor.dtype}{list(tensor.shape)} that a "
                    f"compiled function got, read or returned is at version {tensor._version}; "
                    f"expected version {version} instead"
                )
        for tangent, failure in zip(tangents, ctx.frozen.failures, strict=True):
            if tangent is not None and failure:
                raise RuntimeError(failure)
        if not plait_autograd.is_grad_enabled():
            ctx.saved_tensors  # noqa: B018 - an error if the graph was freed
            return (None, None, *ctx.frozen.run_backward(ctx.saved, tangents))
        # derivatives of derivatives are those of the function itself
        with plait_autograd.enable_grad():
            results = ctx.frozen.run_eagerly(ctx.inputs)
            known = [
                (result, tangent)
                for result, tangent in zip(results, tangents, strict=True)
                if tangent is not None
            ]
            grads = plait_autograd.grad(
                [result for result, _ in known],
                list(ctx.sources),
                [tangent for _, tangent in known],
                create_graph=True,
                allow_unused=True,
            )
        return (None, None, *grads)


class Compiled:
    """A function that runs without Python where it can: what `compile` returns.

    Its attributes are those of the function, also when they are set.

    Args:
        function: The function.
        check: n > 0: every n-th run is compared with the function; 0: none.
        dynamic: Whether sizes of inputs may change; None finds out.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile
        >>> square = compile(lambda x: x * x + 1, frozen=True)
        >>> [square(pc.tensor([2.0])).item() for _ in range(3)]
        [5.0, 5.0, 5.0]
    """

    def __init__(self, function: Callable[..., Any], check: int = 0, dynamic: Any = None) -> None:
        self._orig_mod = function
        self._check, self._n_runs = check, 0
        self._programs: dict[Any, list[_Frozen]] = {}
        self._pending: dict[Any, Recordings] = {}
        self._as_it_is: set[Any] = set()  # keys of calls that have no program
        self._last: _Frozen | None = None
        self._run_plain: Callable[[tuple[Any, ...]], Any] | None = None  # of the last program
        self._lock = threading.RLock()
        self._dynamic = dynamic
        self._families = Families(FreeSizes(dynamic, "compile")) if dynamic else None
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            if isinstance(getattr(function, name, None), str):
                setattr(self, name, getattr(function, name))

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            raise AttributeError(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return type(self)(copy.deepcopy(self._orig_mod, memo), self._check, self._dynamic)

    def __reduce__(self) -> Any:
        return type(self), (self._orig_mod, self._check, self._dynamic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run_plain, last = self._run_plain, self._last
        if run_plain is not None and not kwargs:
            result = run_plain(args)
            if result is not None:
                return result
        elif last is not None and not kwargs and last.guard.holds(args):
            return last.run(args) if not self._check else self._run(last, args, kwargs, args)
        # within a capture; or where a layer sees all calls, such as autocast, whose settings are
        # no part of a key
        if is_recording() or _graph.modes()[1]:
            return self._orig_mod(*args, **kwargs)
        leaves, structure = tree_flatten((args, kwargs))
        tensors = tuple(leaf for leaf in leaves if isinstance(leaf, pc.Tensor))
        if not all(map(_graph.has_own_elements, tensors)):
            return self._orig_mod(*args, **kwargs)  # within a transform, or of another layout
        key = (str(structure), _leaf_keys(leaves))
        if key in self._as_it_is:
            return self._orig_mod(*args, **kwargs)
        for frozen in self._programs.get(key, ()):
            if frozen.guard.holds(tensors) and frozen.has_offsets(tensors):
                frozen.has_run = True
                self._remember(frozen, args, kwargs)
                return self._run(frozen, args, kwargs, tensors)
        with self._lock:
            instance = self._instance(key, args, kwargs, tensors, leaves)
            if instance is None:
                return self._record(key, args, kwargs, tensors, leaves)
        self._remember(instance, args, kwargs)
        return instance.run(tensors)

    def graphs(self) -> list[Graph]:
        """Return the graphs of the programs that were recorded so far.

        There is one for each kind of call; with gradients, one of the forward pass, then one of
        the backward pass. Changes to them do not change the programs.

        Example:
            >>> import plait_core as pc
            >>> from plait_graph import compile
            >>> double = compile(lambda x: x + x, frozen=True)
            >>> for _ in range(2):
            ...     y = double(pc.ones(2))
            >>> [[node.op for node in graph.nodes] for graph in double.graphs()]
            [['add']]
        """
        with self._lock:
            programs = [frozen for each in self._programs.values() for frozen in each]
        return [
            Graph.from_json(json.dumps(part.graph)) for frozen in programs for part in frozen.parts
        ]

    def device_graphs(self) -> list[str]:
        """Return how the programs run on devices that record graphs, such as CUDA's.

        There is a text for each of `graphs`: how many operators are recorded, then a line for each
        one that is not, with the reason. It is empty before the first run of a program, and where
        no such device has a value.

        Example:
            >>> import plait_core as pc
            >>> from plait_graph import compile
            >>> double = compile(lambda x: x + x, frozen=True)
            >>> for _ in range(3):
            ...     y = double(pc.ones(2))
            >>> double.device_graphs()
            ['']
        """
        with self._lock:
            programs = [frozen for each in self._programs.values() for frozen in each]
        return [part.program.device_graph for frozen in programs for part in frozen.parts]

    def _run(
        self, frozen: _Frozen, args: tuple[Any, ...], kwargs: Any, tensors: tuple[pc.Tensor, ...]
    ) -> Any:
        self._n_runs += 1
        if self._check and self._n_runs % self._check == 0:
            return run_checked(frozen, args, kwargs, tensors)
        return frozen.run(tensors)

    def _remember(self, frozen: _Frozen, args: tuple[Any, ...], kwargs: Any) -> None:
        only_tensors = not kwargs and all(isinstance(each, pc.Tensor) for each in args)
        self._last = frozen if only_tensors and not frozen.offsets else None
        self._run_plain = None if self._check or not self._last else frozen.run_plain

    def _instance(
        self, key: Any, args: Any, kwargs: Any, tensors: tuple[pc.Tensor, ...], leaves: list[Any]
    ) -> _Frozen | None:
        """Return a program for new sizes, if recordings at others tell what it is."""
        if self._families is None or _share_memory(tensors, self._orig_mod):
            return None
        _, families, _ = self._families.of(self._orig_mod, args, kwargs, key, leaves)
        for family in families:
            found = family.recording(tensors, self._families.ranges)
            if found is None:
                continue
            sizes, recording = found
            try:
                frozen = _Frozen(
                    self._orig_mod,
                    recording,
                    family.numbers,
                    family.reach,
                    family.grads,
                    family.constants,
                )
            except (NotOneNode, RuntimeError, TypeError, ValueError, IndexError):
                continue  # the function itself says what is wrong with such sizes
            if not family.agrees(sizes, frozen.parts, recording):
                continue
            frozen._arguments = _arguments_of(args, kwargs)
            self._programs.setdefault(key, []).append(frozen)
            family.keep(key, frozen, self._programs)
            return frozen
        return None

    def _record(
        self, key: Any, args: Any, kwargs: Any, tensors: tuple[pc.Tensor, ...], leaves: list[Any]
    ) -> Any:
        reach = Reach(self._orig_mod, *leaves)
        held = {id(tensor) for tensor in tensors}
        others = [tensor for tensor in reach.tensors if id(tensor) not in held]
        if _share_memory(tensors, self._orig_mod):
            return self._orig_mod(*args, **kwargs)
        sources = [t for t in (*tensors, *others) if t.requires_grad and t.is_leaf]
        # of arguments it matters only if they are the same objects in each call
        grads = [(t, t.grad is not None) for t in others if t.requires_grad and t.is_leaf]
        state = (key, _graph.modes(), tuple(t.grad is not None for t in sources))
        pending = self._pending.setdefault(state, Recordings("compile"))
        reads = None
        if self._families is not None:
            reads = SizeReads()
            every, families, dims = self._families.of(self._orig_mod, args, kwargs, key, leaves)
        result, recording = record(
            self._orig_mod,
            args,
            kwargs,
            differentiate=plait_autograd.is_grad_enabled(),
            reads=reads,
        )
        if recording is None:
            self._as_it_is.add(key)
            return result
        numbers = OptimizerNumbers(recording)
        if reads is not None:
            sample = Sample(dataclasses.replace(recording), reads)
            family = next((each for each in families if each.admits(sample)), None)
            if family is None:
                every.append(family := Family(dims))
                del every[:-_MOST_PROGRAMS]
            family.numbers, family.grads = numbers, grads
            family.reach = Reach(self._orig_mod, *leaves, *recording.modules)
            family.add(tensors, sample)
        before = pending.agree(recording)
        if before is None:
            return result
        del self._pending[state]
        programs = self._programs.setdefault(key, [])
        if self._changes_always(programs):
            self._as_it_is.add(key)
            return result
        # what the function changed in the second call is as it is from now on
        reach = Reach(self._orig_mod, *leaves, *recording.modules)
        reads_offsets = recording.capture is not None and recording.capture.reads_offsets
        try:
            frozen = _Frozen(
                self._orig_mod, recording, numbers, reach, grads, made_anew(before, recording)
            )
        except NotOneNode:
            self._as_it_is.add(key)
            return result
        frozen._arguments = _arguments_of(args, kwargs)
        if reads_offsets:
            frozen.offsets = _offsets(tensors)
        programs.append(frozen)
        del programs[:-_MOST_PROGRAMS]
        return result

    def _changes_always(self, programs: list[_Frozen]) -> bool:
        """Return, with a warning, whether the last programs never held at the next call."""
        unused = list(itertools.takewhile(lambda frozen: not frozen.has_run, reversed(programs)))
        if len(unused) < _MOST_UNUSED:
            return False
        name = getattr(self, "__qualname__", type(self._orig_mod).__name__)
        change = unused[0].reach.change() or "whether tensors have gradients, or a mode,"
        warnings.warn(
            f"compile: {name} was recorded {len(unused)} times, and no program ran: {change} "
            "changes from call to call, and the function may read it; the function itself runs "
            "from now on",
            stacklevel=4,
        )
        return True


def _arguments_of(args: Any, kwargs: Any) -> Any:
    """Return a function that gives these arguments, with other tensors in their places."""
    leaves, structure = tree_flatten((args, kwargs))
    known = [Name("") if isinstance(leaf, pc.Tensor) else leaf for leaf in leaves]

    def arguments(tensors: list[pc.Tensor]) -> Any:
        rest = iter(tensors)
        filled = [next(rest) if isinstance(leaf, Name) else leaf for leaf in known]
        return tree_unflatten(filled, structure)

    return arguments


def _share_memory(tensors: tuple[pc.Tensor, ...], function: Any) -> bool:
    """Return whether an argument lies in memory that the function reads otherwise, too: a
    recording could not tell them apart.
    """
    held = Reach(function).tensors
    if not tensors or not held:
        return False
    places = _graph.shared_memory([*held, *tensors])
    return any(first < len(held) for first, _ in places[len(held) :])


def _offsets(tensors: tuple[pc.Tensor, ...]) -> list[int]:
    return [tensor.storage_offset() for tensor in tensors]


def _leaf_keys(leaves: list[Any]) -> tuple[Any, ...]:
    keys: list[Any] = []
    tensors = [leaf for leaf in leaves if isinstance(leaf, pc.Tensor)]
    places = iter(_graph.shared_memory(tensors))
    for leaf in leaves:
        if isinstance(leaf, pc.Tensor):
            shape, strides = tuple(leaf.shape), leaf.stride()
            begins = leaf.storage_offset() == 0  # where offsets count from
            place = (*next(places), begins)
            keys.append((place, leaf.dtype, shape, strides, leaf.device, leaf.requires_grad))
        elif isinstance(leaf, (float, complex, slice)):
            keys.append((type(leaf), repr(leaf)))  # -0.0 is 0.0, and nan is not nan
        else:
            try:
                hash(leaf)
            except TypeError:
                raise TypeError(
                    f"compile: an argument of the type {type(leaf).__name__} cannot be compared "
                    "with that of another call; pass tensors, numbers, strings, or containers of "
                    "them"
                ) from None
            keys.append((type(leaf), leaf))
    return tuple(keys)
