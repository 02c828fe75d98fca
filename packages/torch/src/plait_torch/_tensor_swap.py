"""`torch.utils.swap_tensors`: what two tensors hold changes places.

peft, diffusers and torchtune use it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["swap_tensors"]


def swap_tensors(t1: Any, t2: Any) -> None:
    """Swap the values, gradients and attributes of two tensors of one class.

    Whoever holds the first tensor sees what the second one held, and the reverse.

    Raises:
        TypeError: if they are of different classes.
        RuntimeError: if one is a result that has a history.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_swap import swap_tensors
        >>> a, b = plait.zeros(2), plait.ones(3, dtype=plait.int64)
        >>> swap_tensors(a, b)
        >>> a, b
        (tensor([1, 1, 1]), tensor([0., 0.]))
    """
    if type(t1) is not type(t2):
        raise TypeError(
            f"swap_tensors: two tensors of one class are required; got {type(t1).__name__} and "
            f"{type(t2).__name__}"
        )
    if not (t1.is_leaf and t2.is_leaf):
        raise RuntimeError("swap_tensors: tensors without a history are required")
    required = t1.requires_grad, t2.requires_grad
    grads = t1.grad, t2.grad
    t1.grad = t2.grad = None
    t1.requires_grad_(False)
    t2.requires_grad_(False)
    t1.data, t2.data = t2.data, t1.data
    for tensor, request, grad in ((t2, required[0], grads[0]), (t1, required[1], grads[1])):
        tensor.requires_grad_(request)
        tensor.grad = grad
    one, two = getattr(t1, "__dict__", None), getattr(t2, "__dict__", None)
    if one is not None and two is not None:
        attributes = dict(one)
        one.clear()
        one.update(two)
        two.clear()
        two.update(attributes)
