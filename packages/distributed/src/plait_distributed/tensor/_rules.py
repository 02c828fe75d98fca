"""Sharding rules: how an operator on DTensors becomes calls on the local parts of each rank.

An operator without a rule raises an error. Most rules are data in the operator's definition: a
letter for the kind of the rule and one letter for each argument (docs/design/0039). `_CODE` has the
operators whose definitions say that their rule is code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from plait_abi import binding
from plait_distributed._arguments import core
from plait_distributed._reductions import ReduceOp
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.tensor import _transfers
from plait_distributed.tensor._dtensor import (
    DTensor,
    local_shape,
    set_rules,
    wrap_local,
    wrap_replicated,
)
from plait_distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

# reductions of all elements, by the letter of the rule's kind
_EXTREMES = {"^": ReduceOp.MAX, "v": ReduceOp.MIN}


def _rule(operator: Any) -> str:
    """Return the sharding rule in the definition of an operator; empty without one."""
    return getattr(operator, "sharding", ("",))[0] or ""


_PARAMETER = re.compile(r" ([A-Za-z_]\w*)(?:\|(\w+))?(?=[=,]|$)")


@functools.cache
def _parameters(schema: str) -> list[tuple[str, str]]:
    """Return both names of each argument of a schema; the second may be empty."""
    return _PARAMETER.findall(schema.partition("(")[2].rpartition(") ->")[0])


@functools.cache
def _with_letter(schema: str, rule: str, letter: str) -> list[tuple[int, str, str]]:
    """Return index and names of the arguments that have a letter in a rule."""
    named = enumerate(_parameters(schema))
    return [(i, *names) for i, names in named if rule[i + 1] == letter]


def _arguments_with_letter(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], letter: str
) -> list[Any]:
    """Return the arguments that have a letter in the operator's rule; None for those not given."""
    return [
        args[i] if i < len(args) else kwargs.get(name, kwargs.get(second))
        for i, name, second in _with_letter(operator.schemas[0], _rule(operator), letter)
    ]


def _arguments(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of an operator's first form, by their first names."""
    names = _parameters(operator.schemas[0])
    first_names = {name: first for first, second in names for name in (first, second) if name}
    if len(args) > len(names) or not kwargs.keys() <= first_names.keys():
        raise _no_rule(operator.__name__, list(_parts((args, kwargs))))
    results = dict(zip((first for first, _ in names), args, strict=False))
    return {**results, **{first_names[name]: value for name, value in kwargs.items()}}


def _parts(value: Any) -> Iterator[DTensor]:
    if isinstance(value, DTensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _parts(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _parts(each)


def _map(value: Any, change: Callable[[DTensor], Any]) -> Any:
    if isinstance(value, DTensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(each, change) for each in value)
    if isinstance(value, dict):
        return {name: _map(each, change) for name, each in value.items()}
    return value


def _local(x: DTensor) -> Any:
    return x.local()


def call(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operator on DTensors."""
    arguments = list(_parts((args, kwargs)))
    name = operator.__name__
    mesh = arguments[0].device_mesh
    if any(x.device_mesh != mesh for x in arguments):
        raise NotImplementedError(f"{name}: DTensors must be on one mesh, got several")
    kind = _rule(operator)[:1]
    if kind == "e" and operator.schemas[0].endswith("-> ()"):
        return _step(operator, args, kwargs)
    if name == "copy_" and not isinstance(args[1], DTensor):
        return _copy_whole(operator, args, kwargs)
    if name.endswith("_") and _draws(name):
        return _draw(operator, args, kwargs)
    if kind == "e":
        elements = _along_dimensions if "d" in _rule(operator) else _pointwise
        return elements(operator, args, kwargs, arguments)
    if all(isinstance(p, Replicate) for x in arguments for p in x.placements):
        return _wrapped(operator(*_map(args, _local), **_map(kwargs, _local)), mesh)
    rule = _CODE.get(name) or _BY_KIND.get(kind)
    if rule is None:
        raise _no_rule(name, arguments)
    return rule(operator, args, kwargs)


@functools.cache
def _draws(name: str) -> bool:
    """Return whether an operator draws random numbers."""
    return any(each == name for each, _ in binding.operators_with("random"))


def _no_rule(name: str, tensors: list[DTensor]) -> NotImplementedError:
    description = ", ".join(f"{tuple(x.shape)} {x.placements}" for x in tensors)
    return NotImplementedError(
        f"{name}: there is no rule for DTensors with these placements: {description}; "
        "redistribute() them to Replicate, or compute with to_local()"
    )


def _wrapped(result: Any, mesh: DeviceMesh) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_wrapped(each, mesh) for each in result)
    return wrap_replicated(result, mesh) if hasattr(result, "requires_grad") else result


def _step(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an optimizer's step on the local parts of parameters, gradients and state."""
    return operator(*_map(args, _local), **_map(kwargs, _local))


def _copy_whole(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Copy this rank's part of a whole tensor."""
    x, source = args[0], args[1]
    if any(isinstance(p, Partial) for p in x.placements) or tuple(source.shape) != tuple(x.shape):
        raise NotImplementedError(
            f"copy_: from a tensor of shape {tuple(source.shape)} into a DTensor of shape "
            f"{tuple(x.shape)} with {x.placements}"
        )
    operator(x.local(), _part_of(source, x), *args[2:], **kwargs)
    return x


def _part_of(whole: Any, x: DTensor) -> Any:
    """Return the part of a whole tensor that this rank holds of x."""
    sizes, first = local_shape(x.shape, x.device_mesh, x.placements)
    for dim, (begin, length) in enumerate(zip(first, sizes, strict=True)):
        whole = whole.narrow(dim, begin, length)
    return whole


def _draw(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill the whole tensor on every rank, with equal generators, and keep this rank's part."""
    x = args[0]
    if any(isinstance(p, Partial) for p in x.placements):
        raise _no_rule(operator.__name__, [x])
    whole = x.local().new_empty(x.shape)
    operator(whole, *args[1:], **kwargs)
    x.local().copy_(_part_of(whole, x))
    return x


def _dropout(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draw the mask of the whole, and keep this rank's part of it."""
    x = args[0]
    if any(isinstance(p, Partial) for p in x.placements):
        raise _no_rule("dropout", [x])
    mask = operator(core().ones(x.shape, dtype=x.dtype), *args[1:], **kwargs)
    return wrap_local(x.local() * _part_of(mask, x), x.device_mesh, x.placements, x.shape)


def _pointwise(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argument: list[DTensor]
) -> Any:
    """Call an operator whose result depends on the elements at the same index alone."""
    name, mesh = operator.__name__, argument[0].device_mesh
    whole = _broadcast(argument)
    first = next((x for x in argument if tuple(x.shape) == whole), argument[0])
    places = first.placements
    for x in argument:
        if not _is_divided_alike(x, places, whole):
            raise _no_rule(name, argument)
    plain = [x for x in (*args, *kwargs.values()) if hasattr(x, "requires_grad")]
    if any(not isinstance(x, DTensor) and getattr(x, "ndim", 0) for x in plain):
        raise NotImplementedError(
            f"{name}: DTensors and plain tensors together; make them DTensors by distribute_tensor"
        )
    partial = any(isinstance(p, Partial) for p in places)
    if partial and not _is_linear(operator, args, kwargs, argument):
        raise _no_rule(name, argument)

    def change(x: DTensor) -> Any:
        local = x.local()
        for dim, place in enumerate(x.placements):
            if isinstance(place, Replicate) and isinstance(places[dim], Shard):
                local = _transfers.sum_gradients(local, mesh.get_group(dim))
        return local

    into = args[0] if name.endswith("_") else kwargs.get("out")
    if isinstance(into, DTensor) and tuple(into.shape) != whole:
        raise _no_rule(name, argument)
    result = operator(*_map(args, change), **_map(kwargs, change))
    if isinstance(result, (list, tuple)):  # of another form, as where(condition)
        raise _no_rule(name, argument)
    return into if isinstance(into, DTensor) else wrap_local(result, mesh, places, whole)


def _is_linear(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argument: list[DTensor]
) -> bool:
    """Return whether the results of terms of sums are the terms of the sum of results: all DTensors
    are such terms, and so is each argument in which the operator is linear with others.
    """
    terms, others = (_arguments_with_letter(operator, args, kwargs, letter) for letter in "ln")
    linear = bool(terms) and all(isinstance(x, DTensor) for x in terms)
    return linear and len(terms) == len(argument) and all(x is None for x in others)


def _along_dimensions(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argument: list[DTensor]
) -> Any:
    """Call an operator on parts of one tensor. Elements depend on each other along some dimensions;
    no rank may have a part of these.
    """
    x, *more = argument
    for dim in _arguments_with_letter(operator, args, kwargs, "d"):
        if more or dim is None:
            raise _no_rule(operator.__name__, argument)
        if any(isinstance(p, Partial) or p == Shard(dim % max(x.ndim, 1)) for p in x.placements):
            raise _no_rule(operator.__name__, argument)
    result = operator(*_map(args, _local), **_map(kwargs, _local))
    return wrap_local(result, x.device_mesh, x.placements, x.shape)


def _broadcast(argument: list[DTensor]) -> tuple[int, ...]:
    shapes = [tuple(x.shape) for x in argument]
    if len(set(shapes)) == 1:
        return shapes[0]
    return max(shapes, key=len)


def _is_divided_alike(x: DTensor, places: tuple[Placement, ...], whole: tuple[int, ...]) -> bool:
    """Return whether x is divided as the result is, so that its parts broadcast to those."""
    shape = (1,) * (len(whole) - x.ndim) + tuple(x.shape)
    if any(a not in (1, b) for a, b in zip(shape, whole, strict=True)):
        return False
    for own, other in zip(x.placements, places, strict=True):
        if isinstance(other, Shard):
            moved = Shard(own.dim + len(whole) - x.ndim) if isinstance(own, Shard) else own
            if shape[other.dim] == 1 and whole[other.dim] != 1:
                if not isinstance(moved, Replicate):
                    return False
            elif moved != other:
                return False
        elif own != other:
            return False
    return True


# ---- reductions ----------------------------------------------------------------------------------


def _dims(x: DTensor, dim: Any) -> set[int]:
    """Return the dimensions that an argument `dim` names; none: all are reduced."""
    if dim is None:
        return set()
    return {each % max(x.ndim, 1) for each in ([dim] if isinstance(dim, int) else dim)}


def _sum(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = _arguments(operator, args, kwargs)
    x = result["self"]
    if dims := _dims(x, result.get("dim")):
        return _sum_of_dims(operator, result, dims)
    ops = {place.reduce_op for place in x.placements if isinstance(place, Partial)}
    if result.get("keepdim") or not ops <= {"sum"}:
        raise _no_rule(operator.__name__, [x])
    dtype = {"dtype": result.get("dtype")}
    if _rule(operator)[0] == "a":
        local = _share_of_mean(operator, x, dtype)
    else:
        local = operator(x.local(), **dtype)
    for dim, place in enumerate(x.placements):
        if not isinstance(place, Replicate):
            local = _transfers.sum_partials(local, ReduceOp.SUM, x.device_mesh.get_group(dim))
    return wrap_replicated(local, x.device_mesh)


def _share_of_mean(operator: Any, x: DTensor, dtype: dict[str, Any]) -> Any:
    """Return this rank's term of the mean. In half precision the sum of a part may overflow."""
    local = x.local()
    if local.numel() == 0 < x.numel():
        return operator(local.new_zeros(1), **dtype) + local.sum(**dtype)
    return operator(local, **dtype) * (local.numel() / max(x.numel(), 1))


def _sum_of_dims(operator: Any, arguments: dict[str, Any], dims: set[int]) -> Any:
    """Reduce dimensions that every rank has whole."""
    x, keeps = arguments["self"], bool(arguments.get("keepdim"))
    places: list[Placement] = []
    for place in x.placements:
        if isinstance(place, Shard):
            if place.dim in dims:
                raise _no_rule(operator.__name__, [x])
            lost = 0 if keeps else sum(dim < place.dim for dim in dims)
            places.append(Shard(place.dim - lost))
        else:
            places.append(place)
    shape = [1 if dim in dims else n for dim, n in enumerate(x.shape)]
    whole = shape if keeps else [n for dim, n in enumerate(x.shape) if dim not in dims]
    return wrap_local(operator(**{**arguments, "self": x.local()}), x.device_mesh, places, whole)


def _extreme(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result, name = _arguments(operator, args, kwargs), operator.__name__
    x = result["self"]
    is_partial = any(isinstance(p, Partial) for p in x.placements)
    if is_partial or result.get("keepdim") or _dims(x, result.get("dim")):
        raise _no_rule(name, [x])
    if x.requires_grad:
        raise NotImplementedError(
            f"{name}: the derivative is not supported for a DTensor; detach() it"
        )
    op, local = _EXTREMES[_rule(operator)[0]], x.local()
    if local.numel():
        extreme = operator(local).reshape(())
    else:  # this rank's part is empty
        extreme = core().full((), _weakest(x, op), dtype=x.dtype)
    for dim, place in enumerate(x.placements):
        if isinstance(place, Shard):
            extreme = _transfers.sum_partials(extreme, op, x.device_mesh.get_group(dim))
    return wrap_replicated(extreme, x.device_mesh)


def _weakest(x: DTensor, op: ReduceOp) -> Any:
    """Return the number that changes no maximum or minimum."""
    is_max = op is ReduceOp.MAX
    if x.dtype == core().bool:
        return not is_max
    if x.is_floating_point():
        return float("-inf" if is_max else "inf")
    return core().iinfo(x.dtype).min if is_max else core().iinfo(x.dtype).max


def _norm(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The norm of all elements, from the sum of their powers."""
    result = _arguments(operator, args, kwargs)
    x, order = args[0], result.get("ord", result.get("p", 2.0))
    order = 2.0 if order in (None, "fro") else order
    all_of_it = not result.get("keepdim") and not _dims(x, result.get("dim"))
    if not all_of_it or isinstance(order, str) or order in (0, float("-inf")):
        raise _no_rule(operator.__name__, [x])
    operator(core().ones(1, dtype=x.dtype), *args[1:], **kwargs)  # raises if the dtype is wrong
    if result.get("dtype") is not None:
        x = x.to(result["dtype"])
    if order == float("inf"):
        return x.abs().max()
    dtype, order = x.dtype, float(order)
    is_half = dtype in (core().float16, core().bfloat16)  # in which powers may not fit
    x = x.to(core().float32) if is_half else x
    if order == 2.0 and x.is_floating_point():
        norm = (x * x).sum().sqrt()
    else:
        norm = (x.abs() ** order).sum() ** (1.0 / order)
    return norm.to(dtype) if is_half else norm


# ---- layers --------------------------------------------------------------------------------------


def _local_and_placements(value: Any, mesh: DeviceMesh) -> tuple[Any, tuple[Placement, ...]]:
    if isinstance(value, DTensor):
        return value.local(), value.placements
    return value, (Replicate(),) * mesh.ndim


def _by_name(names: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names.split(), args, strict=False)), **kwargs}


def _mesh_of(arguments: dict[str, Any]) -> DeviceMesh:
    return next(_parts(arguments)).device_mesh


def _linear(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x @ weight.T + bias``: parts of columns, parts of a sum, or parts of a batch."""
    result = _by_name("input weight bias", args, kwargs)
    mesh, bias = _mesh_of(result), result.get("bias")
    x, at_x = _local_and_placements(result["input"], mesh)
    weight, at_w = _local_and_placements(result["weight"], mesh)
    b, at_b = _local_and_placements(bias, mesh)
    last = x.ndim - 1
    places: list[Placement] = []
    for dim in range(mesh.ndim):
        group, kinds = mesh.get_group(dim), (at_x[dim], at_w[dim])
        added = at_b[dim] if bias is not None else None
        if kinds == (Replicate(), Shard(0)) and added in (None, Shard(0)):
            x = _transfers.sum_gradients(x, group)
            places.append(Shard(last))
        elif kinds == (Shard(last), Shard(1)) and added in (None, Replicate()):
            # the ranks' results are added, so only the first rank adds the bias
            if bias is not None:
                b = _transfers.sum_gradients(b, group) * float(group.rank() == 0)
            places.append(Partial())
        elif isinstance(kinds[0], Shard) and kinds[0] != Shard(last) and kinds[1] == Replicate():
            weight = _transfers.sum_gradients(weight, group)
            b = None if bias is None else _transfers.sum_gradients(b, group)
            places.append(kinds[0])
        elif kinds == (Replicate(), Replicate()) and added in (None, Replicate()):
            places.append(Replicate())
        else:
            raise _no_rule("linear", list(_parts(result)))
    shape = (*result["input"].shape[:-1], result["weight"].shape[0])
    return wrap_local(operator(x, weight, b), mesh, places, shape)


def _embedding(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Look up rows of a table that is divided by columns or by rows."""
    value = _by_name("weight input padding_idx scale_grad_by_freq sparse", args, kwargs)
    mesh = _mesh_of(value)
    index, at_i = _local_and_placements(value["input"], mesh)
    weight, at_w = _local_and_placements(value["weight"], mesh)
    rest = {k: v for k, v in value.items() if k not in ("input", "weight")}
    rest = {k: v for k, v in rest.items() if v not in (None, False, -1)}
    places: list[Placement] = []
    rows: list[int] = []
    for dim in range(mesh.ndim):
        kinds = (at_i[dim], at_w[dim])
        if kinds == (Replicate(), Shard(1)):
            places.append(Shard(index.ndim))
        elif kinds == (Replicate(), Shard(0)):
            rows.append(dim)
            places.append(Partial())
        elif isinstance(kinds[0], Shard) and kinds[1] == Replicate():
            weight = _transfers.sum_gradients(weight, mesh.get_group(dim))
            places.append(kinds[0])
        elif kinds == (Replicate(), Replicate()):
            places.append(Replicate())
        else:
            raise _no_rule("embedding", list(_parts(value)))
    shape = (*value["input"].shape, value["weight"].shape[1])
    if not rows:
        return wrap_local(operator(weight, index, **rest), mesh, places, shape)
    if len(rows) > 1 or rest:
        raise _no_rule("embedding", list(_parts(value)))
    result = _lookup_local_rows(operator, index, weight, value["weight"])
    return wrap_local(result, mesh, places, shape)


def _lookup_local_rows(operator: Any, index: Any, weight: Any, table: DTensor) -> Any:
    """Look up the rows that this rank has; the others are zeros."""
    _, begin = local_shape(table.shape, table.device_mesh, table.placements)
    if not weight.shape[0]:
        return weight.new_zeros(*index.shape, weight.shape[1]) + weight.sum()
    here = index - begin[0]
    is_local = (here >= 0) & (here < weight.shape[0])
    here = core().where(is_local, here, core().zeros_like(here))
    return operator(weight, here) * is_local.unsqueeze(-1).to(weight.dtype)


def _layer_norm(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A normalization over dimensions that every rank has whole."""
    result = _by_name("input normalized_shape weight bias", args, kwargs)
    mesh = _mesh_of(result)
    x, at_x = _local_and_placements(result["input"], mesh)
    shape = result["normalized_shape"]
    n = 1 if isinstance(shape, int) else len(shape)
    for name in ("weight", "bias"):
        if result.get(name) is None:
            continue
        value, at = _local_and_placements(result[name], mesh)
        for dim, place in enumerate(at_x):
            if not isinstance(at[dim], Replicate):
                raise _no_rule(operator.__name__, list(_parts(result)))
            if isinstance(place, Shard):
                value = _transfers.sum_gradients(value, mesh.get_group(dim))
        result[name] = value
    for place in at_x:
        if isinstance(place, Partial) or (isinstance(place, Shard) and place.dim >= x.ndim - n):
            raise _no_rule(operator.__name__, list(_parts(result)))
    whole = result["input"].shape
    return wrap_local(operator(**{**result, "input": x}), mesh, at_x, whole)


_BY_KIND: dict[str, Callable[..., Any]] = {
    "+": _sum,
    "a": _sum,
    **dict.fromkeys(_EXTREMES, _extreme),
}
# operators whose definitions say that their rule is code
_CODE: dict[str, Callable[..., Any]] = {
    "dropout": _dropout,
    "embedding": _embedding,
    "layer_norm": _layer_norm,
    "linear": _linear,
    "linalg_vector_norm": _norm,
    "norm": _norm,
}

set_rules(call)
