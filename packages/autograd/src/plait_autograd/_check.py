"""Comparing derivatives with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_abi.frames import warn
from plait_autograd import _autograd
from plait_autograd._backward import grad
from plait_autograd._check_differences import (
    Differences,
    Directions,
    Elements,
    GradcheckError,
    numbers_of,
    outputs_of,
    parts_of,
)
from plait_autograd._modes import enable_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_PRECISE = ("float64", "complex128")
_ROUGH = 1e-4  # a perturbation that float32 resolves


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
        check_undefined_grad: accepted; undefined gradients are always checked, as each pass has the
            gradient of one output only.
        check_grad_dtypes: require gradients of the inputs' dtypes.
        check_batched_grad: must be False: batches of gradients are computed one by one.
        check_batched_forward_grad: must be False, like `check_batched_grad`.
        check_forward_ad: compare the tangents of forward mode too.
        check_backward_ad: compare the gradients of backward passes.
        fast_mode: compare derivatives in one random direction for each input instead of each
            element, which takes the time of a few calls.
        masked: accepted; in PyTorch it is about sparse inputs, which are not supported here.

    Raises:
        GradcheckError: naming the output, the input and the first element that differs.
        ValueError: no input requires grad.
        NotImplementedError: a check that is not supported is requested.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.gradcheck(pc.tanh, pc.tensor([0.5, -1.0], dtype=pc.float64, requires_grad=True))
        True
    """
    args, positions = _arguments(inputs)
    if not positions:
        raise ValueError("gradcheck: at least one input must be a tensor that requires grad")
    if check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck: check_batched_grad and check_batched_forward_grad must be False: "
            "is_grads_batched computes one gradient after the other, which is what is checked"
        )
    for position in positions:
        if eps < _ROUGH and str(args[position].dtype).rpartition(".")[2] not in _PRECISE:
            warn(
                f"Input #{position} requires gradient and is not a double precision floating point "
                f"or complex: {args[position].dtype} rounds differences over `eps` {eps} away"
            )
    try:
        # this comes first, because perturbing an input counts as a write
        way: type[Differences] = Directions if fast_mode else Elements
        differences = way(fn, args, positions, eps, (atol, rtol))
        if check_forward_ad:
            for i in positions:
                differences.compare_tangents(i)
        if check_backward_ad:
            _check_gradients(fn, args, differences)
            _check_passes(fn, args, positions, nondet_tol, check_grad_dtypes)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _arguments(inputs: Any) -> tuple[tuple[Any, ...], list[int]]:
    """Return the arguments, and the indices of those to differentiate for."""
    args = (inputs,) if _autograd.is_tensor(inputs) else tuple(inputs)
    return args, [
        i for i, a in enumerate(args) if _autograd.is_tensor(a) and _autograd.requires_grad(a)
    ]


def _check_gradients(
    fn: Callable[..., Any], args: tuple[Any, ...], differences: Differences
) -> None:
    with enable_grad():
        outputs = outputs_of(fn(*args))
    for k, output in enumerate(outputs):
        if _autograd.requires_grad(output):
            differences.compare_gradients(k, output)
        elif differences.changes(k):
            raise GradcheckError(
                f"gradcheck: output {k} changes with the inputs but requires no grad"
            )


def _check_passes(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    positions: list[int],
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    """Require that two passes give the same gradients, and if asked, that these have the inputs'
    dtypes.
    """
    with enable_grad():
        outputs = [y for y in outputs_of(fn(*args)) if _autograd.requires_grad(y)]
    selection = [args[i] for i in positions]
    for k, output in enumerate(outputs):
        seed = _weights(output)
        first, second = (
            grad(output, selection, seed, retain_graph=True, allow_unused=True) for _ in range(2)
        )
        for i, a, b in zip(positions, first, second, strict=True):
            if a is None or b is None:
                continue
            difference = max(
                (abs(x - y) for x, y in zip(numbers_of(a), numbers_of(b), strict=True)), default=0
            )
            if difference > nondet_tol:
                raise GradcheckError(
                    f"gradcheck: two passes must give gradients of input {i} that differ by at "
                    f"most nondet_tol={nondet_tol}; those of output {k} differ by {difference:.9g}"
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
        nondet_tol: see `gradcheck`, also for the other checks and ``fast_mode``.
        check_undefined_grad: Whether gradients that are None are tried too.
        check_grad_dtypes: Whether gradients must have the dtypes of their inputs.
        check_batched_grad: Whether batched gradients are compared too.
        check_fwd_over_rev: compare the tangents of the gradients in forward mode.
        check_rev_over_rev: compare the gradients of the gradients.
        fast_mode: Whether random projections are compared instead of all elements.
        masked: Accepted as PyTorch has it.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> pa.gradgradcheck(pc.exp, pc.tensor([0.5], dtype=pc.float64, requires_grad=True))
        True
    """
    if gen_non_contig_grad_outputs:
        raise NotImplementedError(
            "gradgradcheck: gen_non_contig_grad_outputs must be False; give `grad_outputs`"
        )
    args, positions = _arguments(inputs)
    seeds = (grad_outputs,) if _autograd.is_tensor(grad_outputs) else tuple(grad_outputs or ())

    def gradients(*values: Any) -> tuple[Any, ...]:
        with enable_grad():
            for i in positions:
                if not _autograd.requires_grad(values[i]):  # a dual tensor
                    values[i].requires_grad_()
            outputs = [
                y for y in outputs_of(fn(*values[: len(args)])) if _autograd.requires_grad(y)
            ]
            weights = list(values[len(args) :]) or [_weights(y) for y in outputs]
            selection = [values[i] for i in positions]
            result: tuple[Any, ...] = grad(
                outputs, selection, weights, create_graph=True, materialize_grads=True
            )
        return result

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


def _weights(output: Any) -> Any:
    weights = _autograd.zeros_like(output)
    for j in range(_autograd.count(output)):
        weight = 1.0 / (j + 1)
        _autograd.set_element(weights, j, sum(weight * part for part in parts_of(output)))
    return weights
