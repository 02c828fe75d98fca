"""Losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
_KINDS = ("mean", "sum", "none")


def _loss(
    log: Tensor, target: Tensor, weight: Tensor | None, ignored: int | None, reduction: str
) -> Tensor:
    """Return the negative log-likelihood of classes, weighted."""
    target = target.to(pc.int64)
    counts = None if ignored is None else target != ignored
    index = target if counts is None else pc.where(counts, target, pc.zeros_like(target))
    index = pc.where(index < 0, index + log.shape[1], index)
    loss = -pc.gather(log, 1, index.unsqueeze(1)).squeeze(1)
    shares = None
    if weight is not None:
        shares = pc.index_select(weight, 0, index.reshape(-1)).reshape(index.shape)
    if counts is not None:
        ones = pc.ones_like(loss) if shares is None else shares
        shares = pc.where(counts, ones, pc.zeros_like(ones))
    if shares is not None:
        loss = loss * shares
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.mean() if shares is None else loss.sum() / shares.sum()


@operator("NegativeLogLikelihoodLoss")
def _nll(node: Node) -> Function:
    reduction, ignored = node.text("reduction", "mean", _KINDS), node.integer("ignore_index", None)
    return lambda x, target, weight=None: _loss(x, target, weight, ignored, reduction)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(node: Node) -> Function:
    reduction, ignored = node.text("reduction", "mean", _KINDS), node.integer("ignore_index", None)

    def run(x: Tensor, target: Tensor, weight: Tensor | None = None) -> Any:
        log = F.log_softmax(x, 1)
        return _loss(log, target, weight, ignored, reduction), log

    return run
