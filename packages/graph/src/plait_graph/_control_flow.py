"""Control flow on values of tensors, which a graph keeps: `cond` and `while_loop`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import plait_autograd
import plait_core as pc
from plait_abi import binding
from plait_func.pytree import tree_flatten, tree_unflatten
from plait_graph import _graph
from plait_graph._capture import Json, current_capture, description, new_capture, running
from plait_graph._differences import difference_of_nodes, same_tensors
from plait_graph._schemas import CONTROL_FLOW, definition_of

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Any = ()) -> Any:
    """Return ``true_fn(*operands)`` if `pred` is true, else ``false_fn(*operands)``.

    In a graph both functions are kept, and each run chooses one by the value of `pred`. To record
    them, the one that is not chosen is called too; what it draws from generators is drawn again
    later. Outside of a capture only the chosen one is called, as by Python's ``if``.

    The results are new tensors in C order: one that is in use elsewhere, such as an operand or a
    view of one, or that is not contiguous, is copied. Gradients reach operands and leaves that the
    functions read besides, which get zeros from the function that is not chosen. A graph computes
    the branch again for them, and has no gradients of gradients.

    Args:
        pred: a tensor with one element, or a bool, which a capture takes as it is.
        true_fn: a function of tensors. It must not write to tensors from outside.
        false_fn: another one, whose results have the same structure, dtypes, shapes and devices.
        operands: a tuple of tensors, and of containers of them.

    Raises:
        TypeError: if `pred`, an operand or a result is of another type.
        ValueError: in a capture, if results of the functions differ in structure, dtype, shape or
            device.
        RuntimeError: if a function writes to an operand.
        NotImplementedError: in a capture, if a function cannot be a part of a graph.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import compile, cond
        >>> @compile(frozen=True)
        ... def halve_or_double(x):
        ...     return cond(x.sum() > 4, lambda x: x / 2, lambda x: x * 2, (x,))
        >>> [halve_or_double(pc.full((2,), value)).tolist() for value in (1.0, 2.0, 4.0)]
        [[2.0, 2.0], [4.0, 4.0], [2.0, 2.0]]
    """
    leaves, structure = _tensors_in("cond: `operands`", operands)
    if not isinstance(pred, bool) and not (isinstance(pred, pc.Tensor) and pred.numel() == 1):
        got = f"a tensor {_type_text(pred)}" if isinstance(pred, pc.Tensor) else repr(pred)
        raise TypeError(f"cond: `pred` must be a bool or a tensor with one element, got {got}")
    capture = current_capture()
    if capture is not None and not isinstance(pred, bool):
        return _record_cond(capture, pred, (true_fn, false_fn), leaves, structure)
    name, function = ("true_fn", true_fn) if bool(pred) else ("false_fn", false_fn)
    results, result_structure = _call(function, leaves, structure, f"cond: `{name}`")
    return tree_unflatten(_new_tensors(results), result_structure)


def while_loop(cond_fn: Function, body_fn: Function, carried_inputs: Any) -> Any:
    """Call ``body_fn`` on what it returned before, as long as ``cond_fn`` is true for that.

    ::

        carried = carried_inputs
        while cond_fn(*carried):
            carried = body_fn(*carried)
        return carried

    In a graph both functions are kept, and a run makes as many rounds as its values need. To record
    the body, it is called at least once. A loop in a graph has no gradients: it must run under
    `no_grad`, or carry and read nothing that requires grad.

    Carried values are new tensors in C order, so that the body may write to them, such as to a
    cache; one that it returns as it got it is not copied. It must not write to other tensors.

    Args:
        cond_fn: a function of the carried tensors, which returns a tensor with one element.
        body_fn: one that returns as many, of the same structure, dtypes, shapes and devices.
        carried_inputs: a tuple of tensors, and of containers of them.

    Raises:
        TypeError: if a carried value or a result is of another type.
        ValueError: if the structure, dtype, shape or device of a carried value changes.
        RuntimeError: if `cond_fn` writes to a carried value.
        NotImplementedError: in a capture, if a function cannot be a part of a graph.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import while_loop
        >>> double = lambda n, x: (n + 1, x * 2)
        >>> while_loop(lambda n, x: x < 100, double, (pc.tensor(0), pc.tensor(3)))
        (tensor(6), tensor(192))
    """
    leaves, structure = _tensors_in("while_loop: `carried_inputs`", carried_inputs)
    capture = current_capture()
    if capture is not None:
        return _record_loop(capture, cond_fn, body_fn, leaves, structure)
    carried = [_copy(tensor) for tensor in leaves]
    while bool(_condition(*_call(cond_fn, carried, structure, "while_loop: `cond_fn`"))):
        results, own = _call(body_fn, carried, structure, "while_loop: `body_fn`", may_write=True)
        results = _new_tensors(results, carried)
        _check_carried(carried, structure, results, own)
        carried = results
    return tree_unflatten(carried, structure)


# ---- calls ---------------------------------------------------------------------------------------


def _tensors_in(what: str, values: Any) -> tuple[list[pc.Tensor], Any]:
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{what} must be a tuple of tensors, got {type(values).__name__}")
    leaves, structure = tree_flatten(tuple(values))
    for leaf in leaves:
        if not isinstance(leaf, pc.Tensor):
            raise TypeError(f"{what} must hold tensors, got {type(leaf).__name__}")
    return leaves, structure


def _call(
    function: Function,
    leaves: Sequence[pc.Tensor],
    structure: Any,
    what: str,
    *,
    may_write: bool = False,
) -> tuple[list[pc.Tensor], Any]:
    """Call a function; return the tensors of its result, and their structure."""
    versions = [tensor._version for tensor in leaves]
    results, result_structure = tree_flatten(function(*tree_unflatten(list(leaves), structure)))
    for result in results:
        if not isinstance(result, pc.Tensor):
            raise TypeError(f"{what} must return tensors, got {type(result).__name__}")
    if not may_write and versions != [tensor._version for tensor in leaves]:
        raise RuntimeError(f"{what} writes to a tensor that it gets; return the new value instead")
    return results, result_structure


def _new_tensors(results: list[pc.Tensor], inputs: Sequence[pc.Tensor] = ()) -> list[pc.Tensor]:
    """Return results in C order, in memory that nobody else refers to, except those of `inputs`."""
    kept = {id(tensor) for tensor in inputs}
    for at in range(len(results)):
        if id(results[at]) in kept:
            kept.remove(id(results[at]))
        elif sys.getrefcount(results[at]) > 2 or max(_graph.references(results[at])) > 1:
            results[at] = _copy(results[at])
        else:
            results[at] = results[at].contiguous()
    return results


def _separate(results: list[pc.Tensor], before: Sequence[pc.Tensor]) -> list[pc.Tensor]:
    """Return results in C order that share no memory with each other and with tensors of before."""
    places = _graph.shared_memory([*before, *results])
    return [
        result.contiguous() if first == at else _copy(result)
        for at, (result, (first, _)) in enumerate(
            zip(results, places[len(before) :], strict=True), len(before)
        )
    ]


def _copy(tensor: pc.Tensor) -> pc.Tensor:
    return tensor.clone() if tensor.is_contiguous() else tensor.contiguous()


def _condition(results: list[pc.Tensor], structure: Any) -> pc.Tensor:
    if len(results) != 1 or results[0].numel() != 1:
        got = ", ".join(map(_type_text, results)) or "nothing"
        raise TypeError(f"while_loop: `cond_fn` must return a tensor with one element, got {got}")
    return results[0]


def _type(tensor: pc.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.device


def _type_text(tensor: pc.Tensor) -> str:
    text = f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"
    return text if tensor.device.type == "cpu" else f"{text} on {tensor.device}"


def _check_carried(
    before: list[pc.Tensor], structure: Any, results: list[pc.Tensor], own: Any
) -> None:
    if own != structure:
        raise ValueError(f"while_loop: `body_fn` must return what it gets, {structure}, got {own}")
    for at, (old, new) in enumerate(zip(before, results, strict=True)):
        if _type(old) != _type(new):
            raise ValueError(
                f"while_loop: result {at} of `body_fn` is {_type_text(new)}, the carried value is "
                f"{_type_text(old)}; it keeps dtype, shape and device"
            )


# ---- recording -----------------------------------------------------------------------------------


@dataclasses.dataclass
class _Region:
    """A function that was recorded.

    Args:
        inputs: names of its tensors.
        captured: the other tensors that no call of it made, by name.
        types: descriptions of both.
        nodes: its calls.
        outputs: names of its results.
        results: the results themselves.
        structure: theirs.
    """

    inputs: list[str]
    captured: dict[str, pc.Tensor]
    types: dict[str, Json]
    nodes: list[Json]
    outputs: list[str]
    results: list[pc.Tensor]
    structure: Any


@contextlib.contextmanager
def _unrecorded() -> Iterator[None]:
    with running(new_capture()):
        yield


@contextlib.contextmanager
def _undone_draws(undo: bool) -> Iterator[None]:
    """Restore the states of all generators at the end."""
    with _unrecorded():
        states = [(g, g.get_state()) for g in binding.default_generators()] if undo else []
    yield
    with _unrecorded():
        for generator, state in states:
            generator.set_state(state)


def _record(
    parent: Any,
    function: Function,
    leaves: Sequence[pc.Tensor],
    structure: Any,
    what: str,
    *,
    may_write: bool = False,
    is_condition: bool = False,
) -> _Region:
    capture = new_capture(is_region=True)
    inputs = [capture.name_of(tensor) for tensor in leaves]
    if may_write:
        capture.end_arguments()
    with running(capture):
        results, own = _call(function, leaves, structure, what, may_write=may_write)
        if is_condition:
            results = [_as_bool(_condition(results, own))]
        for result in results:
            capture.name_of(result)  # one that no call made is from outside, too
        results = _separate(
            results,
            [t for name, t, _ in capture.outside if not may_write or name not in inputs],
        )
    outputs = [capture.name_of(tensor) for tensor in results]
    if capture.problem:
        raise NotImplementedError(f"{what}: {capture.problem}")
    parent.note_region(capture, results)
    types = {name: json.loads(text) for name, _, text in capture.outside}
    captured = {name: tensor for name, tensor, _ in capture.outside if name not in inputs}
    _check_effects(capture, types, what)
    return _Region(inputs, captured, types, json.loads(capture.nodes), outputs, results, own)


def _check_effects(capture: Any, types: dict[str, Json], what: str) -> None:
    for name, tensor, _ in capture.outside:
        if types[name] != description(name, tensor):
            raise NotImplementedError(
                f"{what}: it changes the shape, strides or dtype of a tensor in place"
            )
        if tensor.is_leaf and tensor.grad is not None and capture.find(tensor.grad):
            raise NotImplementedError(
                f"{what}: it computes gradients into `.grad`; call backward() outside of it"
            )


def _note_results(parent: Any, results: list[pc.Tensor]) -> None:
    """Note results of a region that the graph around it does not have, but somebody may use."""
    for at in range(len(results)):
        if sys.getrefcount(results[at]) > 2 or max(_graph.references(results[at])) > 1:
            parent.note_inner(results[at])


def _as_bool(tensor: pc.Tensor) -> pc.Tensor:
    return tensor if tensor.dtype == pc.bool else tensor != 0


def _captured_by(capture: Any, regions: Sequence[_Region]) -> dict[str, pc.Tensor]:
    """Return what regions read besides their inputs, by the names in the graph around them."""
    return {capture.name_of(t): t for region in regions for t in region.captured.values()}


def _region_json(
    region: _Region, inputs: Sequence[str | None], tensors: Sequence[pc.Tensor]
) -> Json:
    """Return a region as a node has it; `inputs` are names, None for one that it does not read."""
    pairs = enumerate(zip(inputs, tensors, strict=True))
    return {
        "inputs": [
            description(f"unused.{at}", tensor) if name is None else region.types[name]
            for at, (name, tensor) in pairs
        ],
        "nodes": region.nodes,
        "outputs": [f"%{name}" for name in region.outputs],
    }


def _add_node(
    capture: Any, op: str, args: list[Any], regions: list[Json], results: list[pc.Tensor]
) -> None:
    begin = json.dumps({"op": op, "in": args}).removesuffix("}")
    capture.add_regions(begin, json.dumps(regions), results)


# ---- branches ------------------------------------------------------------------------------------


def _record_cond(
    capture: Any,
    pred: pc.Tensor,
    functions: tuple[Function, Function],
    leaves: list[pc.Tensor],
    structure: Any,
) -> Any:
    predicate = _as_bool(pred)
    given = leaves
    with _unrecorded():
        is_true = bool(pred)
        newest = _newest_node() if plait_autograd.is_grad_enabled() else 0
        if newest:
            given = list(map(_without_history, leaves))
    regions = []
    for name, function in zip(("true_fn", "false_fn"), functions, strict=True):
        with _undone_draws((name == "true_fn") != is_true):
            what = f"cond: `{name}`"
            regions.append(_record(capture, function, given, structure, what))
            _check_history(regions[-1].results, newest, what)
    _check_branches(*regions)
    chosen, other = regions if is_true else regions[::-1]
    _note_results(capture, other.results)
    operands = {capture.name_of(tensor): tensor for tensor in leaves}
    captured = {
        name: tensor
        for name, tensor in _captured_by(capture, regions).items()
        if name not in operands
    }
    operands |= captured
    forms = []
    for region in regions:
        own = {capture.name_of(tensor): name for name, tensor in region.captured.items()}
        pairs = zip(leaves, region.inputs, strict=True)
        own |= {capture.name_of(tensor): name for tensor, name in pairs}
        forms.append(_region_json(region, [own.get(n) for n in operands], list(operands.values())))
    args = [f"%{capture.name_of(predicate)}", [f"%{name}" for name in operands]]
    leaf_sources = [tensor for tensor in captured.values() if tensor.is_leaf]
    sources = [tensor for tensor in [*leaves, *leaf_sources] if tensor.requires_grad]
    needed = [
        any(each.requires_grad for each in results)
        for results in zip(*(region.results for region in regions), strict=True)
    ]
    if not newest or not sources or not any(needed):
        _add_node(capture, "cond", args, forms, chosen.results)
        return tree_unflatten(chosen.results, chosen.structure)
    if _graph.modes()[1].bit_count() > 1:  # the recorder is one of the layers that see all calls
        raise NotImplementedError(
            "cond: gradients compute a branch again, outside of a region of autocast; begin the "
            "region in the functions"
        )
    _refuse_draws([node for region in regions for node in region.nodes])
    with _unrecorded():
        results = [result.detach() for result in chosen.results]
        _add_node(capture, "cond", args, forms, results)
        sources = list({id(tensor): tensor for tensor in sources}.values())
        read = [*leaves, *captured.values()]
        call = _Call(pred, functions, leaves, structure, sources, read, needed, _newest_node())
        results = list(Branch.apply(call, results, *sources))
    return tree_unflatten(results, chosen.structure)


def _newest_node() -> int:
    """Return the number of a node of the engine that is newer than all others of the thread."""
    node: Any = (pc.ones(1, requires_grad=True) * 1).grad_fn
    return int(node.sequence)


def _without_history(tensor: pc.Tensor) -> pc.Tensor:
    return tensor if tensor.is_leaf else tensor.detach().requires_grad_()


def _check_history(results: list[pc.Tensor], newest: int, what: str) -> None:
    """Refuse results that depend on other tensors with a history than the operands: a gradient
    would pass through what is behind them twice.

    Args:
        newest: the number of the newest node before the function ran.
    """
    waiting: list[Any] = [result.grad_fn for result in results if result.grad_fn is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        number = getattr(node, "sequence", None)  # a Function of Python has none
        if number is not None and number <= newest:
            raise NotImplementedError(
                f"{what}: it reads a tensor that was computed outside of it and requires grad; "
                "pass it as an operand, and use what the function gets"
            )
        if number is None or number not in seen:
            seen.add(number)
            waiting += [each for each, _ in node.next_functions if each is not None]


def _check_branches(one: _Region, other: _Region) -> None:
    if one.structure != other.structure:
        raise ValueError(
            f"cond: `true_fn` and `false_fn` must return one structure, got {one.structure} and "
            f"{other.structure}"
        )
    for at, (a, b) in enumerate(zip(one.results, other.results, strict=True)):
        if _type(a) != _type(b):
            raise ValueError(
                f"cond: result {at} of `true_fn` is {_type_text(a)}, that of `false_fn` "
                f"{_type_text(b)}; both must have one dtype, shape and device"
            )


def _refuse_draws(nodes: list[Json]) -> None:
    for node in nodes:
        if node["op"] not in CONTROL_FLOW and definition_of(node["op"]).is_random:
            raise NotImplementedError(
                f"cond: a function draws random numbers ({node['op']}), and is computed again for "
                "gradients; draw them outside of it and pass them as an operand"
            )
        for region in node.get("regions", ()):
            _refuse_draws(region["nodes"])


@dataclasses.dataclass
class _Call:
    """A call of `cond` whose results have a derivative.

    Args:
        sources: the tensors that gradients reach: operands, and what the functions read.
        read: those and others that the functions read.
        needed: whether a result has a gradient.
        sequence: the number of its node, among those of the engine.
    """

    pred: pc.Tensor
    functions: tuple[Function, Function]
    operands: list[pc.Tensor]
    structure: Any
    sources: list[pc.Tensor]
    read: list[pc.Tensor]
    needed: list[bool]
    sequence: int

    def gradients_of(self, function: Function, at: list[int]) -> Function:
        """Return a function of gradients of the results `at`, and of the operands, which gives
        those of the sources.
        """

        def gradients(tangents: list[pc.Tensor], operands: list[pc.Tensor]) -> list[pc.Tensor]:
            places = {id(tensor): i for i, tensor in enumerate(self.operands)}
            with plait_autograd.enable_grad():
                own = list(map(_without_history, operands))
                sources = [
                    own[places[id(source)]] if id(source) in places else source
                    for source in self.sources
                ]
                results = tree_flatten(function(*tree_unflatten(own, self.structure)))[0]
                pairs = [(results[i], tangent) for i, tangent in zip(at, tangents, strict=True)]
                pairs = [(result, tangent) for result, tangent in pairs if result.requires_grad]
                found: Sequence[pc.Tensor | None] = [None] * len(sources)
                if pairs:
                    found = plait_autograd.grad(
                        [result for result, _ in pairs],
                        sources,
                        [tangent for _, tangent in pairs],
                        allow_unused=True,
                    )
            return [
                pc.zeros(source.shape, dtype=source.dtype, device=source.device)
                if gradient is None
                else gradient
                for source, gradient in zip(self.sources, found, strict=True)
            ]

        return gradients


class Branch(plait_autograd.Function):
    """The node of a recorded `cond` in the graph of the engine. Its derivative is a `cond`, too."""

    @staticmethod
    def forward(
        ctx: Any, call: _Call, results: list[pc.Tensor], *sources: pc.Tensor
    ) -> tuple[pc.Tensor, ...]:
        """Return the results, which were computed already."""
        ctx.call = call
        ctx.sequence = call.sequence
        ctx.versions = [(tensor, tensor._version) for tensor in call.read]
        pairs = zip(results, call.needed, strict=True)
        ctx.mark_non_differentiable(*[result for result, needed in pairs if not needed])
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        """Compute the branch again, and its gradients; see `plait.autograd.Function`."""
        call: _Call = ctx.call
        if plait_autograd.is_grad_enabled():
            raise NotImplementedError(
                "cond: a function that is captured has no gradients of gradients of cond"
            )
        for tensor, version in ctx.versions:
            if tensor._version != version:
                raise RuntimeError(
                    "cond: gradients compute a branch again, but a tensor "
                    f"{_type_text(tensor)} that it reads was modified by an inplace operation"
                )
        at = [i for i, tangent in enumerate(tangents) if tangent is not None]
        one, other = (call.gradients_of(function, at) for function in call.functions)
        given = [tangents[i] for i in at]
        return (None, None, *cond(call.pred, one, other, (given, call.operands)))


# ---- loops ---------------------------------------------------------------------------------------


def _record_loop(
    capture: Any,
    cond_fn: Function,
    body_fn: Function,
    leaves: list[pc.Tensor],
    structure: Any,
) -> Any:
    with _unrecorded():
        carried = [_copy(tensor.detach()) for tensor in leaves]
    if plait_autograd.is_grad_enabled() and any(tensor.requires_grad for tensor in leaves):
        raise _no_gradients()
    first: tuple[_Region, _Region] | None = None
    while True:
        condition = _record(
            capture, cond_fn, carried, structure, "while_loop: `cond_fn`", is_condition=True
        )
        with _unrecorded():
            goes_on = bool(condition.results[0])
            # a body that does not run is recorded on copies, as it may write to them
            given = carried if goes_on else [_copy(tensor) for tensor in carried]
        if first is not None and not goes_on:
            _check_round(first[:1], (condition,))
            break
        with _undone_draws(not goes_on):
            what = "while_loop: `body_fn`"
            body = _record(capture, body_fn, given, structure, what, may_write=True)
        _check_carried(given, structure, body.results, body.structure)
        if any(result.requires_grad for result in body.results):
            raise _no_gradients()
        first = first or (condition, body)
        _check_round(first, (condition, body))
        if not goes_on:
            break
        before, carried = carried, body.results
        del given, condition, body
        _note_results(capture, before)
    captured = _captured_by(capture, first)
    forms = []
    for region in first:
        own = {capture.name_of(tensor): name for name, tensor in region.captured.items()}
        names = [*region.inputs, *map(own.get, captured)]
        forms.append(_region_json(region, names, [*carried, *captured.values()]))
    args = [[f"%{capture.name_of(tensor)}" for tensor in leaves], [f"%{n}" for n in captured]]
    _add_node(capture, "while_loop", args, forms, carried)
    return tree_unflatten(carried, structure)


def _no_gradients() -> NotImplementedError:
    return NotImplementedError(
        "while_loop: a loop in a graph has no gradients, and something that it reads requires "
        "grad; call it under no_grad(), or write Python's loop"
    )


def _check_round(first: Sequence[_Region], regions: Sequence[_Region]) -> None:
    """Refuse functions that make other calls in another round."""
    for name, a, b in zip(("cond_fn", "body_fn"), first, regions, strict=False):
        problem = difference_of_nodes(a.nodes, b.nodes)
        if problem is None and a.outputs != b.outputs:
            problem = "the results are other values"
        with _unrecorded():  # the comparison reads elements
            if problem is None and not same_tensors(a.captured, b.captured):
                problem = "it reads other tensors"
        if problem is not None:
            raise NotImplementedError(
                f"while_loop: `{name}` differs from round to round: {problem}"
            )
