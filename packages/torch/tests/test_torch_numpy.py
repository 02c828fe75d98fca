"""NumPy's functions on tensors while `torch` means plait: a tensor's method that such a function
calls gives NumPy's numbers, or an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

VALUES: dict[str, Any] = {
    "matrix": np.array([[3, 1, 2], [6, 5, 4]], np.float32),
    "integers": np.array([[3, 1, 2], [6, 5, 4]]),
    "bools": np.array([[True, False], [True, True]]),
    "vector": np.array([3, 1, 2], np.float32),
    "nan": np.array([1, np.nan, 2], np.float32),
    "transposed": np.array([[3, 1, 2], [6, 5, 4]], np.float32).T,
    "number": np.array(2, np.float32),
    "empty": np.zeros((0, 3), np.float32),
}
KEYWORDS: list[dict[str, Any]] = [
    {}, {"axis": None}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": (0, 1)},
    {"keepdims": True}, {"axis": 0, "keepdims": True}, {"axis": 0, "out": 3},
    {"axis": 0, "initial": 1}, {"dtype": "float64"}, {"axis": 0, "dtype": "float64"},
]  # fmt: skip
REDUCTIONS = [
    "max", "min", "amax", "amin", "sum", "prod", "mean", "all", "any", "ptp", "argmax", "argmin",
    "median", "nanmax", "nanmin", "nansum", "count_nonzero",
]  # fmt: skip
OTHERS: dict[str, Any] = {
    "sort": lambda x: np.sort(x), "sort of rows": lambda x: np.sort(x, axis=0),
    "argsort": lambda x: np.argsort(x, kind="stable"), "cumsum": lambda x: np.cumsum(x, axis=0),
    "cumsum of all": lambda x: np.cumsum(x), "cumprod": lambda x: np.cumprod(x, axis=-1),
    "clip": lambda x: np.clip(x, 1, 2), "clip below": lambda x: np.clip(x, 1, None),
    "round": lambda x: np.round(x / 3, 1), "around": lambda x: np.around(x / 3),
    "squeeze": lambda x: np.squeeze(x[None]), "transpose": lambda x: np.transpose(x),
    "reshape": lambda x: np.reshape(x, -1), "ravel": lambda x: np.ravel(x),
    "repeat": lambda x: np.repeat(x, 2), "repeat rows": lambda x: np.repeat(x, 2, axis=0),
    "take": lambda x: np.take(x, [0, 1]), "take rows": lambda x: np.take(x, [0], axis=0),
    "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "diagonal": lambda x: np.diagonal(x), "trace": lambda x: np.trace(x),
    "compress": lambda x: np.compress([True, False], x, axis=0), "dot": lambda x: np.dot(x, x.T),
    "searchsorted": lambda x: np.searchsorted(x, 2), "partition": lambda x: np.partition(x, 1),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "copy": lambda x: np.copy(x), "shape": lambda x: np.shape(x), "ndim": lambda x: np.ndim(x),
    "unique": lambda x: np.unique(x), "concatenate": lambda x: np.concatenate([x, x]),
}  # fmt: skip


def _outcome(call: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return call()
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        return error


def _parts(value: Any, torch: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, tuple):
        return [part for each in value for part in _parts(each, torch)]
    return [value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)]


def _check(torch: Any, function: Any, value: Any, label: Any) -> bool:
    """Return whether there was a result."""
    expected = _outcome(lambda: function(value))
    result = _outcome(lambda: function(torch.from_numpy(value)))
    if isinstance(result, Exception):
        return False
    if isinstance(expected, Exception):
        # of a number plait has dimension 0, as PyTorch has
        assert value.ndim == 0 or value.size == 0, (label, result)
        return False
    ours, theirs = _parts(result, torch), _parts(expected, torch)
    assert len(ours) == len(theirs), label
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape and np.allclose(x, y, equal_nan=True), label
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(torch: Any, name: str) -> None:
    served = 0
    for kind, value in VALUES.items():
        for keywords in KEYWORDS:

            def call(x: Any, keywords: Any = keywords) -> Any:
                arguments = dict(keywords)
                if "out" in arguments:
                    arguments["out"] = np.zeros(arguments["out"], int if "arg" in name else float)
                return getattr(np, name)(x, **arguments)

            if "initial" in keywords and "nan" in name:
                continue  # NumPy's own code for what is no array does not use it
            if "out" in keywords and (value.ndim != 2 or value.shape[1] != 3):
                continue
            served += _check(torch, call, value, (name, kind, keywords))
    assert served > 20


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(torch: Any, name: str) -> None:
    kinds = ["matrix", "integers", "vector", "transposed"]
    assert sum(_check(torch, OTHERS[name], VALUES[kind], (name, kind)) for kind in kinds)


def test_extremes_along_an_axis_are_values(torch: Any) -> None:
    """NumPy calls the method with `axis` and `out`, PyTorch's programs never with `out`."""
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert np.max(x, axis=0).tolist() == [3, 5] and np.min(x, axis=1).tolist() == [1, 2]
    out = np.zeros(2)
    assert np.max(x, axis=0, out=out) is out and out.tolist() == [3, 5]
    with pytest.raises(ValueError, match=r"`out` must have shape \(2,\)"):
        np.max(x, axis=0, out=np.zeros(3))
    for refused in (np.zeros(2, int), np.zeros(2, bool), torch.zeros(2, dtype=torch.int64)):
        with pytest.raises(TypeError, match="float32"):
            np.max(x, axis=0, out=refused)
        assert not refused.any()
    assert np.min(x, axis=0, out=(out,)) is out and out.tolist() == [2, 1]
    assert x.max(axis=0).indices.tolist() == [0, 1] and x.max(0)[1].tolist() == [0, 1]
    assert x.max().item() == 5 and x.max(torch.zeros(2)).tolist() == x.tolist()
    assert torch.max(x, 0).indices.tolist() == [0, 1]
