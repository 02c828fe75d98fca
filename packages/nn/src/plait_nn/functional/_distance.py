"""Distances, and the losses of pairs and triplets of vectors."""

from __future__ import annotations

from collections.abc import Callable

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.binding import unbound
from plait_core import Tensor
from plait_nn._halves import in_float32
from plait_nn.functional._loss import reduced, translate_reduction


@unbound
@passes_on
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    r"""Compute :math:`\| x_1 - x_2 + \epsilon \|_p` over the last dimension.

    Args:
        x1: Shape (\*, D).
        x2: Shape (\*, D); the two broadcast.
        p: Order of the norm.
        eps: Added to every difference, so that there is a gradient at 0.
        keepdim: Keep the last dimension as 1.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.pairwise_distance(pc.tensor([[3.0, 4.0]]), pc.zeros(1, 2), eps=0.0)
        tensor([5.])
    """
    return pc.pairwise_distance(x1, x2, p, eps, keepdim)


@unbound
@passes_on
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Compute the ``p``-norm distances of all pairs of rows i < j, in the order of the pairs.

    Args:
        input: Shape (N, D).
        p: Order of the norm, not negative.

    Returns:
        Shape (N (N - 1) / 2).

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.pdist(pc.tensor([[0.0], [1.0], [3.0]]))
        tensor([1., 3., 2.])
    """
    return pc.pdist(input, p)


@in_float32
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute ``1 - cos(x1, x2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Args:
        input1: Shape (N, D) or (D).
        input2: Shape (N, D) or (D).
        target: 1 and -1, shape (N) or ().
        margin: In [-1, 1].
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: The shapes don't fit.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x = pc.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> F.cosine_embedding_loss(x, x, pc.tensor([1, -1]), reduction="none")
        tensor([0., 1.])
    """
    for name, each in (("input1", input1), ("input2", input2), ("target", target)):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"cosine_embedding_loss: `{name}` must be a Tensor, got {type(each).__name__}"
            )
    if target.ndim > 1 or not input1.ndim == input2.ndim == target.ndim + 1:
        raise ArgumentError(
            f"cosine_embedding_loss: `input1` and `input2` must be (N, D) with `target` (N), or "
            f"(D) with (); got shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
            f"{tuple(target.shape)}"
        )
    reduction = translate_reduction(size_average, reduce, reduction)
    tiny = 1e-12
    squares = ((input1 * input1).sum(-1) + tiny) * ((input2 * input2).sum(-1) + tiny)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    alike = (1 - cosine).masked_fill(target != 1, 0)
    unlike = (cosine - margin).clamp(min=0).masked_fill(target != -1, 0)
    return reduced(alike + unlike, reduction, "cosine_embedding_loss")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\max(0, d(a, p) - d(a, n) + margin)` with the ``p``-norm distance.

    Args:
        anchor: Shape (N, D) or (D).
        positive: Samples that match the anchors, of the same shape.
        negative: Samples that do not match, of the same shape.
        margin: The required difference of the distances; positive.
        p: Order of the norm.
        eps: Added to every difference.
        swap: Use :math:`d(p, n)` where that is less than :math:`d(a, n)` (Balntas et al. 2016).
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> a, b, c = pc.tensor([[0.0]]), pc.tensor([[3.0]]), pc.tensor([[1.0]])
        >>> F.triplet_margin_loss(a, b, c)
        tensor(3.)
    """
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_loss: `margin` must be positive; got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ArgumentError(
            f"triplet_margin_loss: the three must have equally many dimensions; got shapes "
            f"{tuple(anchor.shape)}, {tuple(positive.shape)} and {tuple(negative.shape)}"
        )

    def distance(x1: Tensor, x2: Tensor) -> Tensor:
        return pc.pairwise_distance(x1, x2, p, eps)

    reduction = translate_reduction(size_average, reduce, reduction)
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\max(0, d(a, p) - d(a, n) + margin)` with a given distance function.

    Args:
        anchor: A tensor for ``distance_function``.
        positive: Samples that match the anchors.
        negative: Samples that do not match.
        distance_function: From two tensors to their distances; None is `pairwise_distance`.
        margin: The required difference of the distances; positive.
        swap: Use :math:`d(p, n)` where that is less than :math:`d(a, n)`.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> a, b, c = pc.tensor([0.0]), pc.tensor([3.0]), pc.tensor([1.0])
        >>> def largest(x, y):
        ...     return (x - y).abs()
        >>> F.triplet_margin_with_distance_loss(a, b, c, distance_function=largest)
        tensor(3.)
    """
    if margin <= 0:
        raise ArgumentError(
            f"triplet_margin_with_distance_loss: `margin` must be positive; got {margin}"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = pc.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction, "triplet_margin_loss")
