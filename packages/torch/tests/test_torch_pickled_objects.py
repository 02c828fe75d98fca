"""Pickles of modules, samplers, loaders and methods: PyTorch's names, and PyTorch's attributes.

What PyTorch writes is rebuilt here from the attributes that its objects have.
"""

from __future__ import annotations

import copy
import io
import pickle
import pickletools
import warnings
from collections.abc import Callable
from typing import Any

import pytest


def _homes(data: bytes) -> set[str]:
    """Return the modules that a pickle of protocol 2 names."""
    names = [str(value) for op, value, _ in pickletools.genops(data) if op.name == "GLOBAL"]
    return {name.partition(" ")[0].partition(".")[0] for name in names}


def _objects(torch: Any) -> dict[str, Callable[[], Any]]:
    nn, data = torch.nn, torch.utils.data
    pairs = data.TensorDataset(torch.arange(6.0).reshape(6, 1))
    rates = torch.optim.lr_scheduler

    def descent() -> Any:
        return torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1, momentum=0.9)

    return {
        "spectral_norm": lambda: nn.utils.spectral_norm(nn.Linear(3, 4)),
        "weight_norm": lambda: nn.utils.weight_norm(nn.Linear(3, 4)),
        "lazy": lambda: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()),
        "pruned": lambda: torch.nn.utils.prune.l1_unstructured(nn.Linear(3, 4), "weight", 0.5),
        "random": lambda: data.RandomSampler(range(5)),
        "subset": lambda: data.SubsetRandomSampler([1, 2]),
        "weighted": lambda: data.WeightedRandomSampler([0.1, 0.2], 3),
        "split": lambda: data.random_split(pairs, [2, 4]),
        "loader": lambda: data.DataLoader(pairs, batch_size=2, shuffle=True),
        "workers": lambda: data.DataLoader(pairs, num_workers=2, multiprocessing_context="fork"),
        "scaler": lambda: torch.amp.GradScaler("cpu"),
        "generator": lambda: torch.Generator().manual_seed(3),
        "rate": lambda: rates.ReduceLROnPlateau(descent()),
        "dtypes": lambda: [torch.quint8, torch.complex32, torch.float8_e4m3fn, torch.channels_last],
    }


def test_pickles_name_no_module_of_plait(torch: Any) -> None:
    for name, make in _objects(torch).items():
        value = make()
        data = pickle.dumps(value, 2)
        assert not {home for home in _homes(data) if home.startswith("plait")}, name
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        for again in (pickle.loads(data), torch.load(file, weights_only=False)):
            assert type(again) is type(value)


def test_pickled_objects_work(torch: Any) -> None:
    made = {name: pickle.loads(pickle.dumps(each())) for name, each in _objects(torch).items()}
    x = torch.ones(2, 3)
    for name in ("spectral_norm", "weight_norm", "lazy", "pruned"):
        assert made[name](x).shape == (2, 4)
    assert type(made["lazy"][0]) is torch.nn.Linear and not made["lazy"][0]._forward_pre_hooks
    assert not made["lazy"][0]._load_state_dict_pre_hooks
    assert sorted(made["random"]) == list(range(5)) and sorted(made["subset"]) == [1, 2]
    assert set(made["weighted"]) <= {0, 1} and len(list(made["weighted"])) == 3
    assert sorted(int(x) for (batch,) in made["loader"] for x in batch) == list(range(6))
    assert made["workers"].prefetch_factor == 2
    assert made["workers"].multiprocessing_context == "fork"
    assert int(torch.randint(100, (1,), generator=made["generator"])) == int(
        torch.randint(100, (1,), generator=torch.Generator().manual_seed(3))
    )


def test_attributes_of_pytorchs_samplers_and_loaders(torch: Any) -> None:
    """PyTorch 2.13 has these attributes, and its pickles no others."""
    data = torch.utils.data

    def rebuilt(kind: Any, **state: Any) -> Any:
        result = kind.__new__(kind)
        set_state = getattr(result, "__setstate__", result.__dict__.update)
        set_state(state)
        return result

    sampler = rebuilt(
        data.RandomSampler, data_source=range(5), replacement=False, _num_samples=None,
        generator=None,
    )  # fmt: skip
    torch.manual_seed(0)
    order = list(sampler)
    torch.manual_seed(0)
    assert order == list(data.RandomSampler(range(5)))
    weighted = rebuilt(
        data.WeightedRandomSampler, weights=torch.tensor([0.0, 1.0]).double(), num_samples=3,
        replacement=True, generator=None,
    )  # fmt: skip
    assert list(weighted) == [1, 1, 1]
    batches = data.BatchSampler(sampler, 2, False)
    loader = rebuilt(
        data.DataLoader, dataset=list(range(5)), num_workers=0, prefetch_factor=None,
        pin_memory=False, pin_memory_device="", timeout=0, worker_init_fn=None,
        _DataLoader__multiprocessing_context=None, in_order=True, _dataset_kind=0, batch_size=2,
        drop_last=False, sampler=sampler, batch_sampler=batches, generator=None,
        collate_fn=data.default_collate, persistent_workers=False, _DataLoader__initialized=True,
        _IterableDataset_len_called=None, _iterator=None,
    )  # fmt: skip
    assert len(loader) == 3 and sorted(torch.cat(list(loader)).tolist()) == list(range(5))
    torch.manual_seed(1)
    first = torch.cat(list(loader)).tolist()
    torch.manual_seed(1)
    same = data.DataLoader(list(range(5)), batch_size=2, shuffle=True)
    assert torch.cat(list(same)).tolist() == first
    with pytest.raises(ValueError, match="`batch_size` must not be set"):
        loader.batch_size = 3


def test_spectral_norms_of_old_checkpoints(torch: Any) -> None:
    norm, linear = torch.nn.utils.spectral_norm, torch.nn.Linear
    layer = norm(linear(3, 4))
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    norm(linear(3, 4)).load_state_dict({**state, "weight": layer.weight.detach()})
    bare = torch.nn.utils.remove_spectral_norm(copy.deepcopy(layer))
    assert not bare._state_dict_hooks and not bare._load_state_dict_pre_hooks
    assert "spectral_norm" not in bare.state_dict()._metadata[""]
    assert len(layer._state_dict_hooks) == 1


def test_methods_of_tensors(torch: Any) -> None:
    tensor = torch.Tensor
    wrong = []
    for name in dir(tensor):
        method = getattr(tensor, name)
        if not callable(method) or isinstance(method, type) or name.startswith("__"):
            continue
        for protocol in (2, 4):
            try:
                data = pickle.dumps(method, protocol)
                same = pickle.loads(data) == method
                named = _homes(data) <= {"torch", "__builtin__", "builtins"}
            except Exception as error:
                same, named = False, str(error)
            if not same or named is not True:
                wrong.append((name, same, named))
    assert not wrong
    # PyTorch's forms
    for data in (
        b"c__builtin__\ngetattr\n(ctorch._C\nTensorBase\nVadd\ntR.",
        b"\x80\x04\x8c\x0dtorch._tensor\x8c\x0aTensor.add\x93.",
    ):
        assert pickle.loads(data).__name__ == "add"
    file = io.BytesIO()
    torch.save(tensor.add, file)
    file.seek(0)
    assert torch.load(file, weights_only=False) is tensor.add


def test_modules_of_pytorch_have_the_name_torch(torch: Any) -> None:
    """Pickles name memory formats by it: ``torch._utils``, ``torch.channels_last``."""
    data = pickle.dumps(torch.channels_last, 4)
    assert pickle.loads(data) is torch.channels_last
    written = b"\x80\x04\x8c\x0ctorch._utils\x8c\x13torch.channels_last\x93."
    assert pickle.loads(written) is torch.channels_last
    assert torch.nn.functional.torch is torch and torch.utils.data.dataloader.torch is torch


def test_lazy_layers_load_checkpoints(torch: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = pickle.loads(pickle.dumps(torch.nn.LazyLinear(4)))
    lazy.load_state_dict(torch.nn.Linear(3, 4).state_dict())
    assert lazy.weight.shape == (4, 3) and not lazy._load_state_dict_pre_hooks
    assert copy.deepcopy(torch.nn.LazyLinear(2))(torch.ones(1, 5)).shape == (1, 2)
