"""`torch.masked`: reductions of chosen elements, against NumPy's masked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
def test_reductions(torch: Any, dim: Any) -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(3, 4, dtype=torch.float64), torch.rand(3, 4) > 0.3
    mask[0] = True
    mask[:, 0] = True
    theirs = np.ma.array(x.numpy(), mask=~mask.numpy())
    masked = torch.masked
    for name, options in (
        ("sum", {}),
        ("prod", {}),
        ("mean", {}),
        ("var", {"ddof": 0}),
        ("std", {"ddof": 0}),
    ):
        own = {"unbiased": False} if options else {}
        result = getattr(masked, name)(x, dim, mask=mask, **own)
        if name == "prod" and isinstance(dim, tuple):
            expected = theirs.prod()
        else:
            expected = getattr(theirs, name)(axis=dim, **options)
        np.testing.assert_allclose(result.numpy(), np.ma.getdata(expected))
    for name, kind in (("amax", "max"), ("amin", "min")):
        result = getattr(masked, name)(x, dim, keepdim=True, mask=mask)
        assert result.ndim == 2
        np.testing.assert_allclose(
            result.numpy().ravel(), np.ravel(getattr(theirs, kind)(axis=dim))
        )
    result = masked.norm(x, 2, dim, mask=mask)
    np.testing.assert_allclose(result.numpy(), np.sqrt(np.ma.getdata((theirs**2).sum(axis=dim))))
    result = masked.logsumexp(x, dim, mask=mask)
    np.testing.assert_allclose(result.numpy(), np.log(np.ma.getdata(np.exp(theirs).sum(axis=dim))))
    assert torch.allclose(masked.sum(x, dim), x.sum(dim))


def test_indices_and_running_sums(torch: Any) -> None:
    x = torch.tensor([[5.0, 1.0, 3.0], [2.0, 9.0, 4.0]])
    mask = torch.tensor([[False, True, True], [True, False, True]])
    masked = torch.masked
    assert masked.argmax(x, 1, mask=mask).tolist() == [2, 2]
    assert masked.argmin(x, 1, mask=mask).tolist() == [1, 0]
    assert masked.argmax(x, mask=mask).item() == 5
    assert masked.cumsum(x, 1, mask=mask).tolist() == [[0, 1, 4], [2, 2, 6]]
    assert masked.cumprod(x, 1, mask=mask).tolist() == [[1, 1, 3], [2, 2, 8]]
    assert masked.median(x, 1, mask=mask).tolist() == [1, 2]
    with pytest.raises(ValueError, match="floats"):
        masked.median(x.long(), 1)


def test_normalisations(torch: Any) -> None:
    x = torch.tensor([0.0, 3.0, 1.0])
    mask = torch.tensor([True, False, True])
    masked = torch.masked
    soft = torch.softmax(torch.tensor([0.0, 1.0]), 0)
    assert torch.allclose(masked.softmax(x, 0, mask=mask), torch.tensor([soft[0], 0.0, soft[1]]))
    assert torch.allclose(masked.softmin(x, 0, mask=mask), torch.tensor([soft[1], 0.0, soft[0]]))
    assert torch.allclose(
        masked.log_softmax(x, 0, mask=mask).exp(), masked.softmax(x, 0, mask=mask)
    )
    assert masked.normalize(x + 3, 2.0, 0, mask=mask).tolist() == pytest.approx([0.6, 0.0, 0.8])
    result = masked.logaddexp(x, x, input_mask=mask)
    assert result[1] == x[1] and torch.allclose(result[::2], torch.logaddexp(x, x)[::2])


def test_nothing_is_chosen(torch: Any) -> None:
    x, none = torch.ones(2), torch.zeros(2, dtype=torch.bool)
    masked = torch.masked
    assert masked.sum(x, mask=none) == 0 and masked.prod(x, mask=none) == 1
    assert masked.amax(x, mask=none) == -torch.inf and masked.mean(x, mask=none).isnan()
    assert masked.amax(x.int(), mask=none) == torch.iinfo(torch.int32).min
    assert masked.amin(x.bool(), mask=none) and not masked.amax(x.bool(), mask=none)
    assert masked.sum(x.bool()).dtype is torch.int64
