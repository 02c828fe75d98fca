"""Pinned batches: which parts are pinned, and that containers stay what they are."""

import sys
from collections import OrderedDict, namedtuple
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from plait_data import DataLoader
from plait_data._iterators import pinned

Pair = namedtuple("Pair", "x y")


class Tensor:
    """Something like a tensor: it counts how it was pinned."""

    def __init__(self, is_cpu=True):
        self.is_cpu = is_cpu
        self.pinned = None

    def pin_memory(self, device=None):
        result = Tensor()
        result.pinned = device or "current"
        return result


@pytest.fixture
def accelerator(monkeypatch):
    library = ModuleType("torch")
    library.accelerator = SimpleNamespace(is_available=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", library)


def test_containers_keep_their_types():
    batch = {
        "pair": Pair(Tensor(), 1),
        "list": [Tensor(), "text", b"bytes"],
        "ordered": OrderedDict(a=Tensor()),
        "tuple": (Tensor(), None),
        "array": np.zeros(2),
    }
    result = pinned(batch)
    assert isinstance(result["pair"], Pair)
    assert result["pair"].x.pinned == result["list"][0].pinned == "current"
    assert result["list"][1:] == ["text", b"bytes"]
    assert isinstance(result["ordered"], OrderedDict)
    assert result["ordered"]["a"].pinned == result["tuple"][0].pinned == "current"
    assert result["tuple"][1] is None
    assert result["array"] is batch["array"]
    assert batch["list"][0].pinned is None


def test_tensors_of_a_device_stay_there():
    there = Tensor(is_cpu=False)
    assert pinned([there])[0] is there


def test_the_device_is_handed_on():
    assert pinned(Tensor(), "ext").pinned == "ext"


def test_a_loader_pins_where_there_is_an_accelerator(accelerator, recwarn):
    samples = [Tensor(), Tensor()]
    loader = DataLoader(samples, 2, collate_fn=list, pin_memory=True, pin_memory_device="ext:1")
    assert not recwarn
    assert [[each.pinned for each in batch] for batch in loader] == [["ext:1", "ext:1"]]
    loader = DataLoader(samples, 2, collate_fn=list)
    assert [[each.pinned for each in batch] for batch in loader] == [[None, None]]
