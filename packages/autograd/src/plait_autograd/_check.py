"""Comparing derivatives with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd, forward_ad
from plait_autograd._backward import grad
from plait_autograd._check_fast import Directions, compare_projection, compare_tangent
from plait_autograd._modes import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(AssertionError, RuntimeError):
    """A derivative is not what finite differences say.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([1.0], dtype=pc.float64, requires_grad=True)
        >>> try:
        ...     pa.gradcheck(lambda x: x * x.detach(), x)  # half of the derivative is missing
        ... except pa.GradcheckError as error:
        ...     print(str(error)[:32])
        gradcheck: d output 0[0] / d inp
    """


def gradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    *,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    r"""Compare the gradients of ``fn`` with central differences.

    For every element :math:`x_i` of every input that requires grad and every element :math:`y_j`
    of every output, requires :math:`|a_{ij} - n_{ij}| \le atol + rtol\,|n_{ij}|` with
    :math:`n_{ij} = (y_j(x_i + \epsilon) - y_j(x_i - \epsilon)) / 2\epsilon`. A complex element
    counts as two: its real and its imaginary part.

    Args:
        fn: takes the inputs, returns a tensor or several; must give the same values each time.
        inputs: a tensor or a sequence of arguments; float64 or complex128 is needed for the
            default tolerances.
        eps: the perturbation.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise instead of returning False.
        nondet_tol: by how much the gradients of a second backward pass may differ from the first.
        check_undefined_grad: gradients are taken of one output at a time, so those of the others
            are undefined: that they count as zeros is checked in any case.
        check_grad_dtypes: require gradients of the inputs' dtypes.
        check_batched_grad: must be False: batches of gradients are computed one by one.
        check_batched_forward_grad: the same.
        check_forward_ad: compare the tangents of forward mode, too.
        check_backward_ad: compare the gradients of backward passes.
        fast_mode: compare in one random direction an input, instead of every element: the time of
            a few calls, whatever the number of elements.
        masked: of sparse inputs in PyTorch; there is no such case here.

    Raises:
        GradcheckError: naming the output, the input and the first element that differs.
        ValueError: no input requires grad.
        NotImplementedError: a check that has no meaning here is asked for.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.gradcheck(pc.tanh, pc.tensor([0.5, -1.0], dtype=pc.float64, requires_grad=True))
        True
    """
    args = (inputs,) if _autograd.is_tensor(inputs) else tuple(inputs)
    wanted = [
        i for i, a in enumerate(args) if _autograd.is_tensor(a) and _autograd.requires_grad(a)
    ]
    if not wanted:
        raise ValueError("gradcheck: at least one input must be a tensor that requires grad")
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck: check_batched_grad and check_batched_forward_grad must be False: "
            "is_grads_batched computes one gradient after the other, which is what is checked"
        )
    tolerances = atol, rtol
    try:
        if fast_mode:
            _check_fast(fn, args, wanted, eps, tolerances, check_forward_ad, check_backward_ad)
        else:
            _check_all(fn, args, wanted, eps, tolerances, check_forward_ad, check_backward_ad)
        if check_backward_ad:
            _check_passes(fn, args, wanted, nondet_tol, check_grad_dtypes)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_all(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    wanted: list[int],
    eps: float,
    tolerances: tuple[float, float],
    forward: bool,
    backward: bool,
) -> None:
    # first, because perturbing an input counts as writing it
    numeric = {i: _differences(fn, args, i, eps) for i in wanted}
    if forward:
        for i in wanted:
            _compare_tangents(fn, args, i, numeric[i], *tolerances)
    with enable_grad():
        outputs = _outputs(fn(*args)) if backward else []
    for k, output in enumerate(outputs):
        if _autograd.requires_grad(output):
            _compare(output, k, args, wanted, numeric, *tolerances)
        elif any(d for i in wanted for row in numeric[i] for d in row[k]):
            raise GradcheckError(
                f"gradcheck: output {k} changes with the inputs but requires no grad"
            )


def _check_fast(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    wanted: list[int],
    eps: float,
    tolerances: tuple[float, float],
    forward: bool,
    backward: bool,
) -> None:
    found = Directions(lambda given: _values(fn, given), args, wanted, eps)
    for i in wanted if forward else ():
        compare_tangent(
            lambda given: _outputs(fn(*given)), args, i, found, _numbers, tolerances, _differs
        )
    with enable_grad():
        outputs = _outputs(fn(*args)) if backward else []
    for k, output in enumerate(outputs):
        if _autograd.requires_grad(output):
            compare_projection(output, k, args, wanted, found, _numbers, tolerances, _differs)
        elif any(d for i in wanted for d in found.slopes[i][k]):
            _differs(f"gradcheck: output {k} changes with the inputs but requires no grad")


def _differs(text: str) -> None:
    raise GradcheckError(text)


def _check_passes(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    wanted: list[int],
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    """Require the same gradients of two passes, and on demand the inputs' dtypes."""
    with enable_grad():
        outputs = [y for y in _outputs(fn(*args)) if _autograd.requires_grad(y)]
    chosen = [args[i] for i in wanted]
    for k, output in enumerate(outputs):
        seed = _weights(output)
        first, second = (
            grad(output, chosen, seed, retain_graph=True, allow_unused=True) for _ in range(2)
        )
        for i, a, b in zip(wanted, first, second, strict=True):
            if a is None or b is None:
                continue
            apart = max(
                (abs(x - y) for x, y in zip(_numbers(a), _numbers(b), strict=True)), default=0
            )
            if apart > nondet_tol:
                raise GradcheckError(
                    f"gradcheck: two passes must give gradients of input {i} that differ by at "
                    f"most nondet_tol={nondet_tol}; those of output {k} differ by {apart:.9g}"
                )
            if check_dtypes and a.dtype != args[i].dtype:
                raise GradcheckError(
                    f"gradcheck: the gradient of input {i} must have its dtype {args[i].dtype}; "
                    f"got {a.dtype}"
                )


def gradgradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    *,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of the gradients of ``fn`` with central differences.

    Args:
        fn: takes the inputs, returns a tensor or several.
        inputs: a tensor or a sequence of arguments.
        grad_outputs: gradients of the outputs that require grad; those that require grad
            themselves are inputs too. By default the sum of all outputs weighted with 1, 1/2, ...
            is differentiated.
        eps: the perturbation.
        atol: absolute tolerance.
        rtol: relative tolerance.
        gen_non_contig_grad_outputs: must be False; give such ``grad_outputs`` instead.
        raise_exception: raise instead of returning False.
        nondet_tol: as for `gradcheck`, as the other checks and ``fast_mode``.
        check_fwd_over_rev: compare the tangents of the gradients in forward mode.
        check_rev_over_rev: compare the gradients of the gradients.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.gradgradcheck(pc.exp, pc.tensor([0.5], dtype=pc.float64, requires_grad=True))
        True
    """
    if gen_non_contig_grad_outputs:
        raise NotImplementedError(
            "gradgradcheck: gen_non_contig_grad_outputs must be False; give `grad_outputs`"
        )
    args = (inputs,) if _autograd.is_tensor(inputs) else tuple(inputs)
    wanted = [
        i for i, a in enumerate(args) if _autograd.is_tensor(a) and _autograd.requires_grad(a)
    ]
    given = () if grad_outputs is None else grad_outputs
    seeds = (given,) if _autograd.is_tensor(given) else tuple(given)

    def gradients(*values: Any) -> tuple[Any, ...]:
        with enable_grad():
            for i in wanted:
                if not _autograd.requires_grad(values[i]):  # a dual made for a tangent
                    values[i].requires_grad_()
            outputs = [y for y in _outputs(fn(*values[: len(args)])) if _autograd.requires_grad(y)]
            weights = list(values[len(args) :]) or [_weights(y) for y in outputs]
            chosen = [values[i] for i in wanted]
            found: tuple[Any, ...] = grad(
                outputs, chosen, weights, create_graph=True, materialize_grads=True
            )
        return found

    return gradcheck(
        gradients,
        (*args, *seeds),
        eps,
        atol,
        rtol,
        raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _outputs(result: Any) -> list[Any]:
    items = [result] if _autograd.is_tensor(result) else list(result)
    return [
        y
        for y in items
        if _autograd.is_tensor(y) and (_autograd.is_floating(y) or _autograd.is_complex(y))
    ]


def _weights(output: Any) -> Any:
    weights = _autograd.zeros_like(output)
    for j in range(_autograd.count(output)):
        weight = 1.0 / (j + 1)
        _autograd.set_element(weights, j, sum(weight * part for part in _parts(output)))
    return weights


def _parts(tensor: Any) -> tuple[complex, ...]:
    """The directions in which an element can change: its real and its imaginary part."""
    return (1.0, 1j) if _autograd.is_complex(tensor) else (1.0,)


def _numbers(tensor: Any) -> list[float]:
    """All elements, complex ones as two numbers."""
    return [
        number
        for j in range(_autograd.count(tensor))
        for z in [_autograd.element(tensor, j)]
        for number in ((z.real, z.imag) if isinstance(z, complex) else (z,))
    ]


def _differences(
    fn: Callable[..., Any], args: tuple[Any, ...], i: int, eps: float
) -> list[list[list[float]]]:
    """Return d[number of input i][output][number of it]."""
    rows = []
    steps = [(j, part * eps) for j in range(_autograd.count(args[i])) for part in _parts(args[i])]
    for at, step in steps:
        value = _autograd.element(args[i], at)
        _autograd.set_element(args[i], at, value + step)
        above = _values(fn, args)
        _autograd.set_element(args[i], at, value - step)
        below = _values(fn, args)
        _autograd.set_element(args[i], at, value)
        rows.append(
            [
                [(a - b) / (2 * eps) for a, b in zip(ys, zs, strict=True)]
                for ys, zs in zip(above, below, strict=True)
            ]
        )
    return rows


def _values(fn: Callable[..., Any], args: tuple[Any, ...]) -> list[list[float]]:
    with no_grad():
        return [_numbers(y) for y in _outputs(fn(*args))]


def _compare(
    output: Any,
    k: int,
    args: tuple[Any, ...],
    wanted: list[int],
    numeric: dict[int, list[list[list[float]]]],
    atol: float,
    rtol: float,
) -> None:
    chosen = [args[i] for i in wanted]
    seeds = [(j, part) for j in range(_autograd.count(output)) for part in _parts(output)]
    for n, (j, part) in enumerate(seeds):
        one = _autograd.zeros_like(output)
        _autograd.set_element(one, j, part)
        found = grad(output, chosen, one, retain_graph=True, allow_unused=True)
        for i, g in zip(wanted, found, strict=True):
            analytic = [0.0] * len(numeric[i]) if g is None else _numbers(g)
            for at, (got, row) in enumerate(zip(analytic, numeric[i], strict=True)):
                expected = row[k][n]
                if not abs(got - expected) <= atol + rtol * abs(expected):
                    raise GradcheckError(
                        f"gradcheck: d output {k}[{_place(output, n)}] / "
                        f"d input {i}[{_place(args[i], at)}] must be "
                        f"{expected:.9g} by finite differences; backward gives {got:.9g}"
                    )


def _compare_tangents(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    i: int,
    numeric: list[list[list[float]]],
    atol: float,
    rtol: float,
) -> None:
    directions = [(j, part) for j in range(_autograd.count(args[i])) for part in _parts(args[i])]
    for at, (j, part) in enumerate(directions):
        direction = _autograd.zeros_like(args[i])
        _autograd.set_element(direction, j, part)
        with no_grad(), forward_ad.dual_level():
            dual = forward_ad.make_dual(args[i], direction)
            outputs = _outputs(fn(*args[:i], dual, *args[i + 1 :]))
            tangents = [_autograd.tangent(y) for y in outputs]
        for k, (output, tangent) in enumerate(zip(outputs, tangents, strict=True)):
            expected = numeric[at][k]
            found = [0.0] * len(expected) if tangent is None else _numbers(tangent)
            for n, (got, wanted) in enumerate(zip(found, expected, strict=True)):
                if not abs(got - wanted) <= atol + rtol * abs(wanted):
                    raise GradcheckError(
                        f"gradcheck: d output {k}[{_place(output, n)}] / "
                        f"d input {i}[{_place(args[i], at)}] must be "
                        f"{wanted:.9g} by finite differences; forward mode gives {got:.9g}"
                    )


def _place(tensor: Any, number: int) -> str:
    """Name a number of a tensor: the element, and the part of a complex one."""
    if not _autograd.is_complex(tensor):
        return str(number)
    return f"{number // 2}, {'imaginary' if number % 2 else 'real'} part"
