"""PyTorch's files: what holds in its format only.

test_checkpoints.py of plait-core has what holds in both formats.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import plait_core as pc


def there_and_back(value: Any) -> Any:
    file = io.BytesIO()
    pc.save(value, file, format="torch")
    return pc.load(io.BytesIO(file.getvalue()))


def test_an_npz_is_named() -> None:
    file = io.BytesIO()
    np.savez(file, a=np.ones(2))
    with pytest.raises(pc.CheckpointError, match=r"numpy\.load"):
        pc.load(io.BytesIO(file.getvalue()))


def test_meta_tensors_in_pytorchs_form() -> None:
    file = io.BytesIO()
    pc.save({"a": pc.empty(2, 3, device="meta"), "b": pc.ones(2)}, file, format="torch")
    file.seek(0)
    back = pc.load(file)
    assert back["a"].is_meta and back["a"].shape == (2, 3) and back["b"].tolist() == [1.0, 1.0]


def test_what_occurs_twice_is_one_object() -> None:
    part, text = [1], "name"
    back = there_and_back({"a": part, "b": [part, part], text: text})
    assert back["a"] is back["b"][0] is back["b"][1]


def test_attributes_of_an_ordered_dict_are_no_data() -> None:
    state = OrderedDict(a=1)
    state._metadata = OrderedDict(version=2)  # type: ignore[attr-defined]
    state.more = 1  # type: ignore[attr-defined]
    back = there_and_back(state)
    assert back == state and vars(back) == {"_metadata": {"version": 2}}


def test_a_list_that_occurs_often_is_one_list() -> None:
    value: Any = [1.5]
    for _ in range(60):
        value = [value, (value, {"x": value})]
    back = there_and_back(value)
    for _ in range(60):
        assert back[0] is back[1][0] is back[1][1]["x"]
        back = back[0]
    assert back == [1.5]


ARRAYS = {
    "objects": np.array([1, "a", None, (2, 3)], dtype=object),
    "records": np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "<i4"), ("b", "<f8")]),
    "texts": np.array(["a", "bcd"]),
    "bytes": np.array([b"a", b"bcd"]),
    "days": np.array(["2026-01-02"], dtype="datetime64[D]"),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "steps": np.arange(10)[::-3],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_dtype_are_objects(name: str) -> None:
    file = io.BytesIO()
    pc.save({"x": ARRAYS[name], "y": ARRAYS[name][0]}, file, format="torch", weights_only=False)
    back = pc.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert (back["x"].dtype, back["x"].shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
    assert repr(back["x"].tolist()) == repr(ARRAYS[name].tolist())
    assert repr(back["y"]) == repr(ARRAYS[name][0])
