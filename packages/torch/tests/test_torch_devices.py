"""`plait_torch`: devices as names, tensors without bytes, and questions before a GPU is used."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from typing import Any

import pytest


@pytest.mark.parametrize("name", ["cuda", "mps", "xla", "xpu", "hpu", "cuda:1"])
def test_absent_devices_are_objects(torch: Any, name: str) -> None:
    device = torch.device(name)
    kind = name.partition(":")[0]
    assert device.type == kind and device == torch.device(name) and device != torch.device("cpu")
    assert {device: 1}[torch.device(name)] == 1
    assert copy.deepcopy(device) == pickle.loads(pickle.dumps(device)) == device
    assert repr(device).startswith(f"device(type='{kind}'") and str(device).startswith(name)
    calls = (
        lambda: torch.zeros(2, device=device),
        lambda: torch.nn.Linear(2, 2, device=name),
        lambda: torch.nn.Linear(2, 2).to(device),
        lambda: torch.set_default_device(device),
    )
    for call in calls:
        with pytest.raises(
            RuntimeError, match=f"no component for the device {kind}:|{kind}: there is no"
        ):
            call()
    assert torch.zeros(2).device.type == "cpu"


def test_wrong_devices(torch: Any) -> None:
    for text in ("nothing", "cuda:", "mps:x"):
        with pytest.raises(RuntimeError, match="name of an accelerator"):
            torch.device(text)


def test_device_contexts(torch: Any) -> None:
    results = []
    with torch.device("meta") as device:
        assert device == torch.get_default_device() == torch.zeros(2).device
        assert torch.tensor([1.0]).is_meta and torch.nn.Linear(2, 3).weight.is_meta
        with torch.device("cpu"):
            assert torch.randn(2).device.type == "cpu"
        assert torch.arange(3).is_meta and torch.arange(3, device="cpu").tolist() == [0, 1, 2]
        thread = threading.Thread(target=lambda: results.append(torch.zeros(1).device.type))
        thread.start()
        thread.join()
    assert results == ["cpu"]
    with pytest.raises(KeyError), torch.device("meta"):
        raise KeyError
    assert torch.zeros(1).device.type == "cpu"


def test_meta_initialisation(torch: Any) -> None:
    nn = torch.nn
    for name in ("uniform_", "normal_", "trunc_normal_", "kaiming_normal_", "orthogonal_"):
        weight = nn.Parameter(torch.empty(3, 4, device="meta"))
        assert getattr(nn.init, name)(weight) is weight and weight.is_meta
    x = torch.empty(2, 3, device="meta")
    assert x.normal_().uniform_().random_().bernoulli_().is_meta
    assert x.type() == "torch.meta.FloatTensor"
    for call in (x.cpu, x.tolist, x.numpy, x.sum().item):
        with pytest.raises(RuntimeError, match="meta"):
            call()


class _Tied:
    """A model as those of the hubs: tied weights, and a buffer that no file has."""

    def __new__(cls, torch: Any) -> Any:
        nn = torch.nn
        model = nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3), nn.Linear(3, 5, bias=False))
        model[2].weight = model[0].weight
        model.register_buffer("position", torch.arange(5), persistent=False)
        return model


def test_models_are_built_on_meta_and_filled(torch: Any) -> None:
    source = _Tied(torch).state_dict()
    file = io.BytesIO()
    torch.save(source, file)
    with torch.device("meta"):
        model = _Tied(torch)
    file.seek(0)
    read = torch.load(file, map_location="cpu")
    result = model.load_state_dict(read, assign=True)
    assert not result.missing_keys and not result.unexpected_keys
    model[2].weight = model[0].weight
    assert model.position.is_meta  # no file has it
    assert not any(parameter.is_meta for parameter in model.parameters())
    index = torch.tensor([1, 4])
    expected = torch.nn.functional.layer_norm(source["0.weight"][index], (3,))
    assert torch.allclose(model(index), expected @ source["0.weight"].T, atol=1e-6)
    with torch.device("meta"):
        model = _Tied(torch)
    for name, value in source.items():  # the way of the model hubs' library
        path, _, last = name.rpartition(".")
        model.get_submodule(path)._parameters[last] = torch.nn.Parameter(value)
    assert not any(parameter.is_meta for parameter in model.parameters())
    with torch.device("meta"):
        model = _Tied(torch)
    assert model.to_empty(device="cpu") is model
    assert model[0].weight is model[2].weight and model[0].weight.device.type == "cpu"


def test_questions_before_a_gpu_is_used(torch: Any) -> None:
    for kind in ("cuda", "xpu", "mtia", "mps"):
        module = torch.get_device_module(kind)
        assert module.__name__ == f"torch.{kind}"
        assert module.device_count() == 0 and type(module.device_count()) is int
        assert module.is_available() is False and module._is_in_bad_fork() is False
        assert module._initialized is False and module.is_initialized() is False
        assert module.manual_seed(0) is None
        with pytest.raises(RuntimeError, match=rf"\.{kind}\.is_available"):
            module.get_rng_state()
        assert not hasattr(module, "no_such_name")
    assert not torch.backends.mps.is_available() and not torch.backends.cuda.is_built()
    assert torch.cuda.default_generators == () and torch.cuda.memory_summary() == ""
    assert not torch.cuda._is_compiled() and torch.cuda.get_gencode_flags() == ""
    with torch.cuda.device(None), torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
        torch.cuda.set_device(-1)
    for call in (lambda: torch.cuda.set_device(0), torch.cuda.device("cuda:1").__enter__):
        with pytest.raises(AssertionError, match=r"cuda\.is_available\(\) first"):
            call()
    assert torch.get_device_module() is torch.cpu and torch.cpu.is_initialized()
    with pytest.raises(RuntimeError, match=r"no module torch\.hpu"):
        torch.get_device_module("hpu")
    assert torch.accelerator.current_accelerator() is None
    with pytest.raises(RuntimeError, match="there is no accelerator"):
        torch.accelerator.max_memory_reserved()
    x = torch.ones(1)
    assert not any((x.is_cuda, x.is_xpu, x.is_mps, x.is_xla, x.is_hpu, x.is_mtia, x.is_vulkan))


def test_a_number_of_the_cpu_is_the_device_objects_alone(torch: Any) -> None:
    named = torch.device("cpu:1")
    assert (named.index, str(named)) == (1, "cpu:1")
    x = torch.zeros(2, device=named)
    with torch.device("cpu:2"):
        inside = torch.zeros(2)
    for tensor in (x, x.to("cpu:3"), torch.empty_like(x, device="cpu:0"), inside):
        assert tensor.device == torch.device("cpu") != named
        assert tensor.device.index is None
