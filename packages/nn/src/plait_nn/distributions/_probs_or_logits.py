"""A parameter that is given as probabilities or as their logits."""

from __future__ import annotations

from typing import Any

from plait_core import Size, Tensor

__all__ = ["ProbsOrLogits"]


class ProbsOrLogits:
    """A distribution with one of `probs` and `logits`, from which the other one follows."""

    def _require_one(self, probs: Any, logits: Any) -> Any:
        if (probs is None) == (logits is None):
            given = "neither" if probs is None else "both"
            raise ValueError(
                f"{type(self).__name__}: one of `probs` and `logits` is required; got {given}"
            )
        return logits if probs is None else probs

    @property
    def param(self) -> Tensor:
        """The given one of `probs` and `logits`."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self.param.shape
