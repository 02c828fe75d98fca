"""Batching rules: how one call of an operator computes it for all samples of a batch.

A rule gets the arguments of a call, of which some are batched, and returns results with the samples
along dimension 0. Most rules are data: a letter for their kind and one for each argument, which
stand in the operator's definition (`plait_ops.rules`). The layer follows them in C++; here is what
it leaves over. `_CODE` has the operators whose definitions say that their rule is code.
"""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_abi import binding
from plait_func._batched_tensor import samples_of

Rule = Callable[["Call"], Any]


@functools.cache
def has_flag(name: str, flag: str) -> bool:
    """Return whether an operator's definition has a flag, such as random or composite."""
    return any(each == name for each, _ in binding.operators_with(flag))


@functools.cache
def batching_of(name: str) -> str:
    """Return the batching rule in an operator's definition; empty if it has none."""
    return str(binding.operator(name).batching[0] or "")


def public_name(name: str) -> str:
    """Return the name of an operator as programs call it."""
    return name.partition(".")[0].replace("index_put_tensors_", "index_put_")


_PARAMETER = re.compile(r"(\S+) ([A-Za-z_]\w*)(?:\|\w+)?(?=[=,]|$)")


@functools.cache
def _parameters(name: str) -> tuple[dict[str, str], int]:
    """Return the parameters with their types, and how many may be given by position."""
    schema = binding.operator(name).schemas[0]
    inside = schema.partition("(")[2].rpartition(") ->")[0]
    positional = "" if inside.startswith("*, ") else inside.partition(", *, ")[0]
    types = {name: kind for kind, name in _PARAMETER.findall(inside)}
    return types, len(_PARAMETER.findall(positional))


@functools.cache
def written_arguments(name: str) -> tuple[int, ...]:
    """Return the positions of the arguments that an operator without a rule writes in place."""
    if batching_of(name) or public_name(name).endswith("_"):
        return ()
    return tuple(at for at, kind in enumerate(_parameters(name)[0].values()) if "!" in kind)


def run_operator(name: str, args: Any) -> Any:
    """Call an operator with all arguments in the order of its schema."""
    names, count = _parameters(name)
    keywords = dict(zip(list(names)[count:], args[count:], strict=False))
    return binding.operator(name)(*args[:count], **keywords)


class Call:
    """A call of an operator with batched arguments."""

    def __init__(self, name: str, args: Any, level: int, size: int) -> None:
        self.name, self.args, self.level, self.size = name, list(args), level, size
        self.names = list(_parameters(name)[0])
        self.actions = (batching_of(name) or " ")[1:]  # a letter for each argument

    def single(self) -> Call:
        """Return the call for one sample of zeros, in the place of none."""
        result = copy.copy(self)
        result.size = 1
        return result

    def _samples(self, tensor: Any) -> Any:
        samples = samples_of(tensor, self.level)
        if samples is not None and samples.shape[0] != self.size:
            return samples.new_zeros((self.size, *samples.shape[1:]))
        return samples

    def is_batched(self, value: Any) -> bool:
        """Return whether a value has a part for each sample."""
        return pc.is_tensor(value) and self._samples(value) is not None

    def some(self, value: Any) -> Any:
        """Return all samples if the value is batched, else the value."""
        samples = self._samples(value) if pc.is_tensor(value) else None
        return value if samples is None else samples

    def all(self, value: Any) -> Any:
        """Return all samples of a tensor along dimension 0; other values as they are."""
        if pc.is_tensor(value):
            samples = self._samples(value)
            if samples is None:
                return value.unsqueeze(0).expand(self.size, *value.shape)
            return samples
        if isinstance(value, (list, tuple)):
            return type(value)(self.all(each) for each in value)
        return value

    def at(self, name: str) -> Any:
        """Return an argument by the name of its parameter."""
        return self.args[self.names.index(name)]

    @property
    def kind(self) -> str:
        """The letter of the rule's kind."""
        return batching_of(self.name)[:1]

    def acted(self, action: str) -> list[Any]:
        """Return the arguments with which the rule does this."""
        return [x for x, letter in zip(self.args, self.actions, strict=False) if letter == action]

    def run(self, args: Any, name: str = "") -> Any:
        """Call an operator with all arguments in the order of its schema."""
        return run_operator(name or self.name, args)


def _shifted(dim: Any) -> Any:
    """Return dimensions of a sample as those of all samples; negative ones stay."""
    if isinstance(dim, (list, tuple)):
        return tuple(_shifted(each) for each in dim)
    return dim + 1 if isinstance(dim, int) and dim >= 0 else dim


def _has_dims(ndim: int, *dims: Any) -> bool:
    """Return whether a sample has these dimensions: another one could be that of the samples."""
    return all(
        _has_dims(ndim, *dim)
        if isinstance(dim, (list, tuple))
        else dim is None or -ndim <= dim < ndim
        for dim in dims
    )


# ---- rules that definitions give -----------------------------------------------------------------


def aligned(call: Call, value: Any, ndim: int) -> Any:
    """Return all samples of a batched tensor as those of one with more dimensions, others as they
    are.
    """
    if not call.is_batched(value):
        return value
    missing = ndim - value.ndim
    data = call.some(value)
    return data.reshape(data.shape[0], *(1,) * missing, *data.shape[1:]) if missing else data


def pointwise(call: Call) -> Any:
    """Call an operator of elements with the dimensions of the samples under each other."""
    tensors = [each for each in call.args if pc.is_tensor(each)]
    ndim = max(each.ndim for each in tensors)
    args = [aligned(call, each, ndim) for each in call.args]
    numbers = [each for each in tensors if each.dtype is not pc.bool]
    if len({each.dtype for each in numbers}) > 1 and not all(each.ndim for each in numbers):
        # a tensor without dimensions does not decide the dtype, but all its samples would
        common = functools.reduce(pc.promote_types, _deciding(numbers))
        args = [
            new.to(common) if pc.is_tensor(old) and old.dtype is not pc.bool else new
            for old, new in zip(call.args, args, strict=True)
        ]
    return call.run(args)


def _deciding(tensors: list[Any]) -> list[Any]:
    first, *rest = tensors
    kinds = [first.dtype]
    for each in rest:
        kinds.append(pc.result_type(first, each))
    return kinds


# reductions of all elements, as reductions along a dimension
_WHOLE = {
    "max": "amax", "min": "amin", "prod": "prod.dim", "any": "any.dim", "all": "all.dim",
}  # fmt: skip


def _reduction(call: Call) -> Any:
    x, data = call.args[0], call.all(call.args[0])
    if "dim" in call.names:
        at = call.names.index("dim")
        dim = call.args[at]
        if not _has_dims(max(x.ndim, 1), dim):
            return by_loop(call)
        reduces_none = dim is not None and not isinstance(dim, int) and not dim
        if call.actions[at] == "y" and reduces_none:
            return call.run([data, *call.args[1:]])
        if dim is not None and not reduces_none and x.ndim:
            args = [data, *call.args[1:]]
            args[at] = _shifted(dim)
            return call.run(args)
    flat = data.reshape(call.size, -1)
    name = _WHOLE.get(call.name, call.name)
    names, _ = _parameters(name)
    args = [flat if n == "self" else call.at(n) if n in call.names else None for n in names]
    place = list(names).index
    args[place("dim")] = (-1,) if "[]" in names["dim"] else -1
    keeps = "keepdim" in names
    if keeps:
        args[place("keepdim")] = False
    results = call.run(args, name)
    if keeps and "keepdim" in call.names and call.at("keepdim"):
        shape = (call.size, *(1,) * x.ndim)
        results = (
            tuple(each.reshape(shape) for each in results)
            if isinstance(results, (tuple, list))
            else results.reshape(shape)
        )
    return results


def _median(call: Call) -> Any:
    x = call.args[0]
    if x.numel() == 0:
        return by_loop(call)
    return call.run([call.all(x).reshape(call.size, -1), 1, False], f"{call.name}.dim")[0]


# ---- operators that take batch dimensions in front ----------------------------------------------


def leading(call: Call) -> Any:
    """Call an operator with the samples as one more dimension in front.

    What is an error for a sample may not be one for all: such calls are made for each.
    """
    if not _is_right_for_samples(call):
        return by_loop(call)
    args = [call.all(each) for each in call.args]
    for i, action in enumerate(call.actions):
        if action == "d":
            args[i] = _shifted(args[i])
        elif action == "z" and args[i] is not None:
            args[i] = (call.size, *args[i])
    if "memory_format" in call.names:
        args[call.names.index("memory_format")] = "preserve_format"
    return call.run(args)


# how many dimensions the first argument must have, by the letter of the rule's kind
_LEAST_DIMS = {"d": 1, "m": 2}
# memory formats of tensors with so many dimensions
_FORMATS = {"channels_last": 4, "channels_last_3d": 5}


def _is_right_for_samples(call: Call) -> bool:
    dims, sizes = call.acted("d"), call.acted("z")
    if not call.args or not pc.is_tensor(call.args[0]):
        return True
    required = call.at("memory_format") if "memory_format" in call.names else ""
    if _FORMATS.get(required, call.args[0].ndim) != call.args[0].ndim:
        return False
    # of a derivative: those of the input whose gradient it gives
    ndim = len(sizes[0]) if dims and sizes else call.args[0].ndim
    if ndim < _LEAST_DIMS.get(call.kind, 0):
        return False
    return _has_dims(ndim + (call.kind == "n"), *dims)


def _view(call: Call) -> Any:
    size = tuple(call.args[1])
    if size.count(-1) > 1 or (-1 in size and 0 in size):
        return by_loop(call)
    data = call.all(call.args[0])
    if -1 in size:
        known = math.prod(each for each in size if each != -1)
        rest = call.args[0].numel() // known if known else 0
        size = tuple(rest if each == -1 else each for each in size)
    return data.reshape(call.size, *size)


def _expand(call: Call) -> Any:
    x, size = call.args[0], tuple(call.args[1])
    if -1 in size[: len(size) - x.ndim]:
        return by_loop(call)
    data = aligned(call, x, len(size))
    return data.expand(call.size, *size)


def _permute(call: Call) -> Any:
    x, dims = call.args[0], tuple(call.args[1])
    if not _has_dims(x.ndim, dims):
        return by_loop(call)
    return call.all(x).permute(0, *((d % x.ndim) + 1 for d in dims))


def _t(call: Call) -> Any:
    if call.args[0].ndim > 2:
        return by_loop(call)
    data = call.all(call.args[0])
    return data.transpose(1, 2) if data.ndim == 3 else data


def _squeeze(call: Call) -> Any:
    x = call.args[0]
    ones = tuple(i + 1 for i, n in enumerate(x.shape) if n == 1)
    return call.all(x).squeeze(ones) if ones else call.all(x)


# ---- products ------------------------------------------------------------------------------------


def _mm(call: Call) -> Any:
    ndim = 3 if call.name == "bmm" else 2
    if any(each.ndim != ndim for each in call.args):
        return by_loop(call)
    return pc.matmul(call.some(call.args[0]), call.some(call.args[1]))


def _mv(call: Call) -> Any:
    matrix, vector = call.args
    if (matrix.ndim, vector.ndim) != (2, 1):
        return by_loop(call)
    if not call.is_batched(matrix):
        return pc.matmul(call.some(vector), matrix.t())
    if not call.is_batched(vector):
        return pc.matmul(call.some(matrix), vector)
    return pc.matmul(call.some(matrix), call.some(vector).unsqueeze(-1)).squeeze(-1)


def _dot(call: Call) -> Any:
    x, y = call.args
    if (x.ndim, y.ndim) != (1, 1) or len(x) != len(y):
        return by_loop(call)
    if call.is_batched(x) and call.is_batched(y):
        return pc.matmul(call.some(x).unsqueeze(1), call.some(y).unsqueeze(2)).reshape(call.size)
    batched, other = (x, y) if call.is_batched(x) else (y, x)
    return pc.matmul(call.some(batched), other)


def _addmm(call: Call) -> Any:
    x, first, second, beta, alpha = call.args
    if first.ndim != 2 or second.ndim != 2 or x.ndim > 2:
        return by_loop(call)
    if isinstance(alpha, complex) or isinstance(beta, complex):
        return by_loop(call)
    product = pc.matmul(call.some(first), call.some(second))
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product.expand(call.size, *product.shape[-2:])
    added = aligned(call, x, 2)
    return product + (added if beta == 1 else added * beta)


def _linear(call: Call) -> Any:
    x, weight, bias = call.args
    if not x.ndim or weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        return by_loop(call)
    if not call.is_batched(weight) and not call.is_batched(bias):
        return call.run([call.some(x), weight, bias])
    across = call.some(weight).transpose(-1, -2)
    if call.is_batched(weight) and x.ndim == 1:
        result = pc.matmul(call.all(x).unsqueeze(1), across).squeeze(1)
    elif call.is_batched(weight):
        rows = call.all(x)
        count = math.prod(rows.shape[1:-1])
        result = pc.matmul(rows.reshape(call.size, count, rows.shape[-1]), across)
        result = result.reshape(*rows.shape[:-1], across.shape[-1])
    else:
        result = pc.matmul(call.some(x), across)
    return result if bias is None else result + aligned(call, bias, x.ndim)


# ---- rows that are independent -------------------------------------------------------------------


def _rows(data: Any) -> Any:
    """Return samples of rows as one list of rows."""
    return data.reshape(data.shape[0] * data.shape[1], *data.shape[2:])


def _samples(call: Call, rows: Any) -> Any:
    return rows.reshape(call.size, rows.shape[0] // call.size, *rows.shape[1:])


def _folded(call: Call) -> Any:
    if any(call.is_batched(each) for each in call.acted(".")):
        return _GROUPED[call.name](call) if call.name in _GROUPED else by_loop(call)
    args = list(call.args)
    for i, action in enumerate(call.actions):
        if action == "r" and pc.is_tensor(args[i]):
            args[i] = _rows(call.all(args[i]))
        elif action == "q":
            args[i] = (call.size * args[i][0], *args[i][1:])
    results = call.run(args)
    if isinstance(results, (tuple, list)):
        return tuple(_samples(call, each) for each in results)
    return _samples(call, results)


def _to_channels(data: Any) -> Any:
    """Return (B, N, C, ...) as (N, B * C, ...)."""
    size, rows, channels, *rest = data.shape
    return data.transpose(0, 1).reshape(rows, size * channels, *rest)


def _from_channels(call: Call, data: Any) -> Any:
    rows, channels, *rest = data.shape
    return data.reshape(rows, call.size, channels // call.size, *rest).transpose(0, 1)


def _conv2d_grouped(call: Call) -> Any:
    x, weight, bias, stride, padding, dilation, groups = call.args
    # what is an error for a sample may not be one for all groups
    fits = x.ndim == weight.ndim == 4 and groups > 0 and x.shape[1] == weight.shape[1] * groups
    if not fits or 0 in weight.shape[:2] or (bias is not None and bias.shape != weight.shape[:1]):
        return by_loop(call)
    result = pc.conv2d(
        _to_channels(call.all(x)), _rows(call.all(weight)),
        None if bias is None else _rows(call.all(bias)), stride, padding, dilation,
        groups * call.size,
    )  # fmt: skip
    return _from_channels(call, result)


def _conv2d_input_grouped(call: Call) -> Any:
    grad, weight, size, stride, padding, dilation, groups = call.args
    result = call.run([
        _to_channels(call.all(grad)), _rows(call.all(weight)),
        (size[0], call.size * size[1], *size[2:]), stride, padding, dilation, groups * call.size,
    ])  # fmt: skip
    return _from_channels(call, result)


def _conv2d_weight(call: Call) -> Any:
    grad, x, size, stride, padding, dilation, groups = call.args
    result = call.run([
        _to_channels(call.all(grad)), _to_channels(call.all(x)),
        (call.size * size[0], *size[1:]), stride, padding, dilation, groups * call.size,
    ])  # fmt: skip
    return _samples(call, result)


_GROUPED: dict[str, Rule] = {
    "conv2d": _conv2d_grouped, "conv2d_backward_input": _conv2d_input_grouped,
}  # fmt: skip


# ---- normalization -------------------------------------------------------------------------------


def _batch_norm(call: Call) -> Any:
    x, weight, bias, eps = call.args
    if x.ndim < 2:
        return by_loop(call)
    result = call.run([_to_channels(call.all(x)), *_of_channels(call, weight, bias), eps])
    y, mean, var = result
    return _from_channels(call, y), _samples(call, mean), _samples(call, var)


def _of_channels(call: Call, *values: Any) -> list[Any]:
    return [None if each is None else call.all(each).reshape(-1) for each in values]


def _batch_norm_backward(call: Call) -> Any:
    grad, x, mean, var, weight, eps = call.args
    result = call.run([
        _to_channels(call.all(grad)), _to_channels(call.all(x)),
        *_of_channels(call, mean, var, weight), eps,
    ])  # fmt: skip
    return _from_channels(call, result[0]), _samples(call, result[1]), _samples(call, result[2])


def _layer_norm(call: Call) -> Any:
    x, shape, weight, bias, eps = call.args
    arguments = [each for each in (weight, bias) if each is not None]
    if any(tuple(each.shape) != tuple(shape) or each.dtype is not x.dtype for each in arguments):
        return by_loop(call)
    if not call.is_batched(weight) and not call.is_batched(bias):
        return call.run([call.all(x), shape, weight, bias, eps])
    y, mean, rstd = call.run([call.all(x), shape, None, None, eps])
    if weight is not None:
        y = y * aligned(call, weight, x.ndim)
    if bias is not None:
        y = y + aligned(call, bias, x.ndim)
    return y, mean, rstd


def _layer_norm_backward(call: Call) -> Any:
    grad, x, mean, rstd, weight, shape = call.args
    g, data, m, r = (call.all(each) for each in (grad, x, mean, rstd))
    rows = tuple(range(1, 1 + x.ndim - len(shape)))
    ending = (1,) * len(shape)
    if m.ndim != data.ndim:
        m_full, r_full = m.reshape(*m.shape, *ending), r.reshape(*r.shape, *ending)
    else:
        m_full, r_full = m, r
    through = g * ((data - m_full) * r_full)
    of_weight, of_bias = (through.sum(rows), g.sum(rows)) if rows else (through, g)
    of_weight = of_weight.to(g.dtype)  # statistics of halves are float32
    if call.is_batched(weight):
        g, weight = g * aligned(call, weight, x.ndim), None
    of_input = call.run([g, data, m, r, weight, shape])[0]
    return of_input, of_weight, of_bias


# ---- losses --------------------------------------------------------------------------------------


# A sample is one row of scores with one class, or several rows; dimension 0 of the samples is then
# a dimension of rows, or is folded into them.


def _folded_rows(call: Call, value: Any, several: bool) -> Any:
    data = call.all(value)
    return _rows(data) if several else data


def _reduced(call: Call, losses: Any, reduction: str, divisor: Callable[[], Any]) -> Any:
    if reduction == "none":
        return losses
    total = losses if losses.ndim == 1 else losses.reshape(call.size, -1).sum(1)
    return total if reduction == "sum" else total / divisor()


def _divisor(call: Call, target: Any, weight: Any, ignored: int) -> Callable[[], Any]:
    """Return a function that computes the divisor of each sample's mean."""

    def count() -> Any:
        classes = call.all(target)
        counted = classes != ignored
        if weight is not None:
            counted = weight[classes.clamp(min=0)] * counted
        return counted if counted.ndim == 1 else counted.reshape(call.size, -1).sum(1)

    return count


def _spread(
    call: Call, grad: Any, reduction: str, divisor: Callable[[], Any], shape: tuple[int, ...]
) -> Any:
    """Return the gradient of each row's loss; `shape` is that of the samples' classes."""
    g = call.all(grad)
    if reduction == "mean":
        g = g / divisor()
    if len(shape) == 1:
        return g
    if reduction != "none":
        g = g.reshape(call.size, *(1,) * (len(shape) - 1)).expand(shape)
    return _rows(g)


def _nll_loss(call: Call) -> Any:
    x, target, weight, reduction, ignored = call.args
    if call.is_batched(weight) or reduction not in ("mean", "sum", "none"):
        return by_loop(call)
    several = x.ndim > 1
    data, classes = (_folded_rows(call, each, several) for each in (x, target))
    losses = call.run([data, classes, weight, "none", ignored])
    losses = _samples(call, losses) if several else losses
    return _reduced(call, losses, reduction, _divisor(call, target, weight, ignored))


def _nll_loss_backward(call: Call) -> Any:
    grad, target, weight, size, reduction, ignored = call.args
    if call.is_batched(weight):
        return by_loop(call)
    several = len(size) > 1
    classes = _folded_rows(call, target, several)
    divisor = _divisor(call, target, weight, ignored)
    g = _spread(call, grad, reduction, divisor, (call.size, *target.shape))
    rows = (call.size * size[0], *size[1:]) if several else (call.size, *size)
    result = call.run([g, classes, weight, rows, "none", ignored])
    return _samples(call, result) if several else result


def _cross_entropy(call: Call) -> Any:
    x, target, weight, reduction, ignored = call.args
    if call.is_batched(weight) or reduction not in ("mean", "sum", "none"):
        return by_loop(call)
    several = x.ndim > 1
    data, classes = (_folded_rows(call, each, several) for each in (x, target))
    losses, lse = call.run([data, classes, weight, "none", ignored])
    if several:
        losses, lse = _samples(call, losses), _samples(call, lse)
    return _reduced(call, losses, reduction, _divisor(call, target, weight, ignored)), lse


def _cross_entropy_backward(call: Call) -> Any:
    grad, x, lse, target, weight, reduction, ignored = call.args
    if call.is_batched(weight):
        return by_loop(call)
    several = x.ndim > 1
    divisor = _divisor(call, target, weight, ignored)
    g = _spread(call, grad, reduction, divisor, (call.size, *target.shape))
    rows = [_folded_rows(call, each, several) for each in (x, lse, target)]
    result = call.run([g, *rows, weight, "none", ignored])
    return _samples(call, result) if several else result


# ---- indices -------------------------------------------------------------------------------------


def _index_select(call: Call) -> Any:
    x, dim, index = call.args
    if not _has_dims(max(x.ndim, 1), dim) or index.ndim > 1:
        return by_loop(call)
    if not call.is_batched(index):
        return call.run([call.all(x), dim % max(x.ndim, 1) + 1, index])
    if not x.ndim:
        return by_loop(call)
    data, at = call.all(x), dim % x.ndim + 1
    return data.gather(at, _spread_index(call, index, data, at))


def _spread_index(call: Call, index: Any, data: Any, at: int) -> Any:
    choice = call.some(index).reshape(call.size, -1)
    shape = [1] * data.ndim
    shape[0], shape[at] = call.size, choice.shape[1]
    full = list(data.shape)
    full[at] = choice.shape[1]
    return choice.reshape(shape).expand(full)


def _index_add(call: Call) -> Any:
    x, dim, index, source, alpha = call.args
    if not x.ndim or not _has_dims(x.ndim, dim):
        return by_loop(call)
    data, added, at = call.all(x), call.all(source), dim % x.ndim + 1
    if not call.is_batched(index):
        return call.run([data, at, index, added, alpha])
    required = list(x.shape)
    required[at - 1] = index.numel()
    if list(source.shape) != required or index.ndim > 1 or source.dtype is not x.dtype:
        return by_loop(call)
    added = added if alpha == 1 else added * alpha
    return data.scatter_add(at, _spread_index(call, index, data, at), added)


def _offsets(call: Call, indices: Any, count: int) -> Any:
    first = pc.arange(call.size) * count
    return call.all(indices) + first.reshape(call.size, *(1,) * indices.ndim)


def _embedding(call: Call) -> Any:
    weight, indices, padding = call.args
    if not call.is_batched(weight):
        return call.run([weight, call.some(indices), padding])
    # numbers that are wrong for a sample's rows may be right for the rows of all
    count = weight.shape[0]
    wrong = (indices < 0) | (indices >= count)
    rows = pc.where(call.all(wrong), call.size * count, _offsets(call, indices, count))
    return call.run([_rows(call.some(weight)), rows, -1])


def _embedding_backward(call: Call) -> Any:
    grad, indices, count, padding = call.args
    result = call.run([call.all(grad), _offsets(call, indices, count), call.size * count, -1])
    result = _samples(call, result)
    if padding >= 0:
        result[:, padding] = 0
    return result


def _index_tensors(call: Call) -> Any:
    x, indices = call.args
    data = call.all(x)
    if not any(call.is_batched(each) for each in indices):
        result = call.run([data, [None, *indices]])
        return result.movedim(_n_indices(indices), 0) if _are_separated(indices) else result
    result = call.run([data, with_samples(call, indices)])
    return _placed(result, indices)


def _n_indices(indices: Any) -> int:
    """Return the number of dimensions that indices become together."""
    return int(max(each.ndim for each in indices if each is not None))


def _are_separated(indices: Any) -> bool:
    """Return whether indices have whole dimensions between them; what they take comes first."""
    arguments = [i for i, each in enumerate(indices) if each is not None]
    return arguments != list(range(arguments[0], arguments[-1] + 1))


def with_samples(call: Call, indices: Any) -> list[Any]:
    """Return indices into all samples: the sample's number comes first."""
    count = _n_indices(indices)
    first = pc.arange(call.size).reshape(call.size, *(1,) * count)
    return [first, *(None if each is None else aligned(call, each, count) for each in indices)]


def _placed(result: Any, indices: Any) -> Any:
    """Move what indices took, which lies behind the samples, to the place of the first of them."""
    took, place = _places(indices)
    return result.movedim(took, place) if took != place else result


def _places(indices: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions that indices take: behind the samples, and where they belong."""
    first, count = (
        next(i for i, each in enumerate(indices) if each is not None),
        _n_indices(indices),
    )
    first = 0 if _are_separated(indices) else first
    return tuple(range(1, 1 + count)), tuple(range(1 + first, 1 + first + count))


def selected_first(call: Call, values: Any, indices: Any, ndim: int) -> Any:
    """Return values for all samples of the selected elements, as `with_samples` selects them."""
    n_indexed = sum(each is not None for each in indices)
    whole = ndim - n_indexed + _n_indices(indices)
    data = call.some(values)
    if not call.is_batched(values):
        data = data.unsqueeze(0)
    data = data.reshape(data.shape[0], *(1,) * (whole + 1 - data.ndim), *data.shape[1:])
    took, place = _places(indices)
    return data.movedim(place, took) if took != place else data


def _index_tensors_backward(call: Call) -> Any:
    grad, indices, size = call.args
    full = (call.size, *size)
    if not any(call.is_batched(each) for each in indices):
        g = call.all(grad)
        g = g.movedim(0, _n_indices(indices)) if _are_separated(indices) else g
        return call.run([g, [None, *indices], full])
    g, (took, place) = call.all(grad), _places(indices)
    g = g.movedim(place, took) if took != place else g
    return call.run([g, with_samples(call, indices), full])


# ---- others --------------------------------------------------------------------------------------


def _matrices(call: Call, *values: Any) -> list[Any]:
    """Return all samples of matrices whose own batches are broadcast against each other."""
    ndim = max(each.ndim for each in values)
    return [
        aligned(call, each, ndim) if call.is_batched(each) else call.all(each) if each.ndim == ndim
        else each.expand(call.size, *(1,) * (ndim - each.ndim), *each.shape)
        for each in values
    ]  # fmt: skip


def _on_matrices(call: Call) -> Any:
    first, second, *rest = call.args
    return call.run([*_matrices(call, first, second), *rest])


def _solve(call: Call) -> Any:
    first, second, *rest = call.args
    left = call.at("left")
    vector = second.ndim == 1 or (
        left and second.ndim == first.ndim - 1 and second.shape == first.shape[:-1]
    )
    if not vector:
        return _on_matrices(call)
    result, info = call.run([*_matrices(call, first, second.unsqueeze(-1)), *rest])
    return result.squeeze(-1), info


def _solve_by_factors(call: Call) -> Any:
    a, lu, pivots, b, *rest = call.args
    a, lu, column, b = _matrices(call, a, lu, pivots.unsqueeze(-1), b)
    return call.run([a, lu, column.squeeze(-1), b, *rest])


def _qr(call: Call) -> Any:
    x, mode = call.args
    if x.ndim < 2:
        return by_loop(call)
    q, r = call.run([call.all(x), mode])
    return (r.new_empty((call.size, 0)) if mode == "r" else q), r


def _values_of_matrices(call: Call) -> Any:
    x, *rest, with_vectors = call.args
    if x.ndim < 2:
        return by_loop(call)
    values, *vectors = call.run([call.all(x), *rest, with_vectors])
    if not with_vectors:  # empty, of each sample
        vectors = [each.new_empty((call.size, 0)) for each in vectors]
    return (values, *vectors)


def _cat(call: Call) -> Any:
    tensors, dim = call.args
    if not _has_dims(max((each.ndim for each in tensors), default=0), dim):
        return by_loop(call)
    selection = [each for each in tensors if tuple(each.shape) != (0,)]
    selection = selection if selection else list(tensors)[:1]
    ndim = selection[0].ndim
    return pc.cat([call.all(each) for each in selection], dim % ndim + 1 if ndim else dim)


def _as_strided(call: Call) -> Any:
    x, size, stride, offset = call.args
    data = call.all(x).contiguous()
    start = data.storage_offset() + offset
    return data.as_strided((call.size, *size), (data.stride(0), *stride), start)


def _pad(call: Call) -> Any:
    # numbers for more dimensions than a sample has would pad the dimension of the samples
    return leading(call) if len(call.at("pad")) <= 2 * call.args[0].ndim else by_loop(call)


def _attention(call: Call) -> Any:
    return by_loop(call) if call.at("mask") is not None else leading(call)


def by_loop(call: Call, before: Callable[[], None] | None = None) -> Any:
    """Call the operator for each sample: for those without a rule. `before` is called before."""
    if not call.size:
        return for_no_samples(lambda call: by_loop(call, before))(call)
    result = []
    for i in range(call.size):
        if before is not None:
            before()
        result.append(call.run([one_of(call, each, i) for each in call.args]))
    if isinstance(result[0], (tuple, list)):
        return tuple(stacked(call.name, column) for column in zip(*result, strict=True))
    return stacked(call.name, result)


def stacked(name: str, each: Any) -> Any:
    """Return results of an operator for each sample as one tensor."""
    shapes = {tuple(one.shape): None for one in each}
    if len(shapes) > 1:
        first, second, *_ = shapes
        raise RuntimeError(
            f"vmap: the result of {public_name(name)} has shape {first} for one sample and "
            f"{second} for another: its shape must not depend on values; for a mask use where() or "
            "masked_fill()"
        )
    return pc.stack(list(each))


def check_shape(name: str) -> None:
    """Raise if there would have to be a sample to know the shape of an operator's result."""
    if name in _SHAPED_BY_VALUES:
        raise NotImplementedError(
            f"vmap: the shape of the result of {name} depends on the values of a sample, and there "
            "are 0 samples"
        )


def for_no_samples(rule: Rule) -> Rule:
    """Return a rule as it is for a batch without samples.

    Rules whose calls may have a dimension of size 0 in front are the same; others are used for one
    sample of zeros, which is not in the results.
    """
    if rule in _OF_ANY_SIZE:
        return rule

    def none_of(call: Call) -> Any:
        check_shape(call.name)
        result = rule(call.single())
        if isinstance(result, (tuple, list)):
            return tuple(each[:0] for each in result)
        return result[:0]

    return none_of


def one_of(call: Call, value: Any, i: int) -> Any:
    """Return sample `i` of an argument."""
    if call.is_batched(value):
        return call.some(value)[i]
    if isinstance(value, (list, tuple)):
        return type(value)(one_of(call, each, i) for each in value)
    return value


_OF_ANY_SIZE = frozenset((leading, _on_matrices, pointwise, _solve, _solve_by_factors))
# operators whose decompositions end here, and for which rules are calls for each sample
_SHAPED_BY_VALUES = frozenset(
    {"index_columns", "nonzero", "nonzero_rows", "nonzero_list", "bincount",
     "repeat_interleave.counts", "repeat_interleave.tensor"}
)  # fmt: skip


# operators whose definitions say that their rule is code
_CODE: dict[str, Rule] = {
    "addmm": _addmm, "as_strided": _as_strided, "batch_norm_backward": _batch_norm_backward,
    "bmm": _mm, "cat": _cat, "cholesky_solve": _on_matrices,
    "conv2d_backward_weight": _conv2d_weight, "cross_entropy_backward": _cross_entropy_backward,
    "attention_backward": _attention, "attention_forward": _attention,
    "cross_entropy_forward": _cross_entropy, "dot": _dot, "embedding": _embedding,
    "embedding_backward": _embedding_backward, "expand": _expand, "index_add": _index_add,
    "index_select": _index_select, "index_tensors": _index_tensors,
    "index_tensors_backward": _index_tensors_backward, "layer_norm_backward": _layer_norm_backward,
    "linalg_qr": _qr, "linalg_solve_ex": _solve,
    "linalg_solve_triangular": _on_matrices, "linear": _linear, "median": _median, "mm": _mm,
    "mv": _mv, "nanmedian": _median, "native_batch_norm": _batch_norm,
    "native_layer_norm": _layer_norm, "nll_loss": _nll_loss,
    "nll_loss_backward": _nll_loss_backward, "pad": _pad, "permute": _permute,
    "singular_values": _values_of_matrices, "squeeze": _squeeze,
    "solve_by_factors": _solve_by_factors, "symmetric_eigenvalues": _values_of_matrices, "t": _t,
    "view": _view,
}  # fmt: skip
_BY_KIND: dict[str, Rule] = {"p": pointwise, "x": _reduction, "r": _folded}


@functools.cache
def rule_of(name: str) -> Rule | None:
    """Return the rule of an operator; None if its decomposition is taken.

    What has neither is called for each sample.
    """
    letters = batching_of(name)
    if not letters:
        return None if has_flag(name, "composite") else by_loop
    # the code for an operator of a plug-in is not here
    rule: Rule = by_loop if letters[0].isupper() else leading
    return _CODE.get(name, _BY_KIND.get(letters[0], rule))
