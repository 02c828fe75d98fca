"""An approximate softmax over many classes, most of which are rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._all_samples import all_samples, holds_for_all
from plait_nn._containers import ModuleList, Sequential
from plait_nn._linear import Linear, check_sizes
from plait_nn._module import Module


class ASMoutput(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`."""

    output: Tensor
    """The log-probability of each sample's target."""
    loss: Tensor
    """The mean of the negative log-probabilities."""


class AdaptiveLogSoftmaxWithLoss(Module):
    r"""Log-probabilities of classes in clusters of falling frequency (Grave et al. 2017).

    The head has the most frequent classes and one entry for each cluster; a rare class has the
    probability of its cluster times its own within it. Cluster i works in
    :math:`\lfloor d / v^{i + 1} \rfloor` dimensions. Classes must be numbered by falling
    frequency.

    Args:
        in_features: Size of the input, d.
        n_classes: Number of classes.
        cutoffs: The first classes of the clusters: increasing numbers between 0 and ``n_classes``.
        div_value: The factor v by which a cluster is smaller than the one before.
        head_bias: Whether the head has a bias.
        device: The device of the parameters.
        dtype: Their dtype; None is float32.

    Shapes: input (N, d) or (d), target (N) or (); the output has the target's shape, the loss is a
    number.

    Raises:
        ValueError: The cutoffs are not increasing or out of range, or shapes or targets don't fit.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[4, 10])
        >>> output, loss = layer(pc.randn(5, 16), pc.tensor([0, 3, 4, 12, 19]))
        >>> tuple(output.shape), bool(loss > 0)
        ((5,), True)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes("AdaptiveLogSoftmaxWithLoss", in_features=in_features, n_classes=n_classes)
        bounds = list(cutoffs)
        rises = bounds == sorted(set(bounds)) and all(isinstance(c, int) for c in bounds)
        if not bounds or not rises or bounds[0] <= 0 or bounds[-1] > n_classes - 1:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: `cutoffs` must be rising integers between 1 and "
                f"n_classes - 1 = {n_classes - 1}; got {bounds}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = bounds[0]
        self.n_clusters = len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(bounds, self.cutoffs[1:], strict=True)):
            inner = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **options),
                    Linear(inner, high - low, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        samples, targets = self._check(input_, target_)
        # the index of every target in the head: its own, or its cluster's
        index, own_scores = (
            targets,
            pc.zeros(targets.shape, dtype=samples.dtype, device=samples.device),
        )
        bounds = zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True)
        for i, (low, high) in enumerate(bounds):
            within = (targets >= low) & (targets < high)
            rows = within.nonzero().reshape((-1,))
            index = index.masked_fill(within, self.shortlist_size + i)
            if rows.shape[0] == 0:
                continue
            scores = F.log_softmax(self.tail[i](samples.index_select(0, rows)), 1)
            own = (targets.index_select(0, rows) - low).unsqueeze(1)
            own_scores = own_scores.index_copy(0, rows, scores.gather(1, own).squeeze(1))
        head = F.log_softmax(self.head(samples), 1)
        output = own_scores + head.gather(1, index.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return ASMoutput(output.squeeze(0) if target_.ndim == 0 else output, loss)

    def _check(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        fits = input.ndim in (1, 2) and target.ndim == input.ndim - 1
        if not fits or input.shape[-1] != self.in_features or input.shape[:-1] != target.shape:
            raise pc.ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: `input` must be (N, {self.in_features}) and `target` "
                f"(N), or without N; got shapes {tuple(input.shape)} and {tuple(target.shape)}"
            )
        samples = input if input.ndim == 2 else input.unsqueeze(0)
        targets = target if target.ndim else target.unsqueeze(0)
        fit = (targets >= 0) & (targets < self.n_classes)
        if targets.is_cpu and not holds_for_all(fit):  # the host would wait for another device
            values = all_samples(targets)
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: `target` must be in [0, {self.n_classes - 1}]; "
                f"got values from {int(values.min())} to {int(values.max())}"
            )
        return samples, targets

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, (N, n_classes) for input (N, d).

        Args:
            input: Features of shape (N, in_features).
        """
        head = F.log_softmax(self.head(input), 1)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            own = F.log_softmax(cluster(input), 1)
            parts.append(own + head.narrow(1, self.shortlist_size + i, 1))
        return pc.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the likeliest class of each sample, (N) for input (N, d).

        Clusters are evaluated only for samples whose likeliest entry of the head is a cluster.

        Args:
            input: Features of shape (N, in_features).
        """
        index = self.head(input).argmax(1)
        rare = index >= self.shortlist_size
        if not bool(rare.any()):
            return index
        rows = rare.nonzero().reshape((-1,))
        return index.index_copy(0, rows, self.log_prob(input.index_select(0, rows)).argmax(1))
