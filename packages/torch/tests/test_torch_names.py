"""`plait_torch`: names that PyTorch's programs use and plait has in `torch` alone."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import io
import itertools
import os
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait
import plait_torch
from plait import _aliases

# ---- additions


def test_names_of_programs_are_here(torch: Any) -> None:
    """`plait` points to this package for these names."""
    for name in plait._OF_PROGRAMS:
        assert hasattr(torch, name) and not hasattr(plait, name), name


def test_tensor_types(torch: Any) -> None:
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.FloatTensor().shape == (0,)
    assert torch.FloatTensor(torch.Size([2])).shape == (2,)
    assert torch.DoubleTensor(np.arange(3)).tolist() == [0, 1, 2]
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), (torch.LongTensor, torch.cuda.FloatTensor))
    assert not isinstance(3, torch.FloatTensor)
    x = torch.arange(3)
    assert x.type() == "torch.LongTensor" and x.type(torch.HalfTensor).dtype is torch.float16
    assert x.type("torch.DoubleTensor").dtype is torch.float64 and x.type(torch.int8).itemsize == 1
    assert x.new(2, 2).shape == (2, 2) and x.new([5]).tolist() == [5] and x.new().numel() == 0
    assert repr(torch.ByteTensor) == "torch.ByteTensor"
    for wrong in (lambda: torch.FloatTensor(2, [3]), lambda: x.new([1], [2])):
        with pytest.raises(TypeError, match="one sequence"):
            wrong()
    with pytest.raises(RuntimeError, match=r"(?i)cuda"):
        torch.cuda.FloatTensor(2)
    with pytest.raises(ValueError, match=r"'torch\.FloatTensor' is required, got"):
        x.type("torch.Nothing")


def test_operators_that_are_parts_of_others(torch: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    result, mean, scale = torch.native_layer_norm(x, (3,), None, None, 1e-5)
    assert torch.allclose(result, torch.layer_norm(x, (3,))) and mean.tolist() == [[1.0], [4.0]]
    assert scale.shape == (2, 1)
    assert (torch._standard_gamma(torch.ones(5)) > 0).all()


def test_older_forms_of_methods(torch: Any) -> None:
    x = torch.ones(2)
    with pytest.warns(UserWarning, match=r"add_\(number"):
        assert x.add_(-0.5, torch.ones(2)).tolist() == [0.5, 0.5]
    with pytest.warns(UserWarning, match="value=number"):
        assert x.addcmul(2, x, x).tolist() == [1.0, 1.0]
    assert x.add(x, alpha=2).tolist() == [1.5, 1.5] and x.sub_(0.5).tolist() == [0.0, 0.0]
    assert torch.zeros(4, 2)[1].storage().size() == 8
    assert x.storage().data_ptr() == x.data_ptr()


def test_default_types(torch: Any) -> None:
    try:
        torch.set_default_tensor_type(torch.DoubleTensor)
        assert torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.zeros(1).dtype is torch.float32
    with pytest.raises(RuntimeError, match=r"torch\.cuda\.FloatTensor needs CUDA"):
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        torch.set_default_device("meta")
        assert torch.zeros(1).device.type == torch.get_default_device().type == "meta"
        with torch.device("cpu"):
            assert torch.zeros(1).device.type == "cpu"
    finally:
        torch.set_default_device(None)


def test_cuda_is_not_there(torch: Any) -> None:
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert torch.cuda.max_memory_allocated() == 0
    for kind in (AssertionError, RuntimeError):
        with pytest.raises(kind, match=r"cuda\.synchronize: .*ask plait\.cuda\.is_available"):
            torch.cuda.synchronize()
    with pytest.raises(RuntimeError):
        torch.ones(1).cuda()
    assert not torch.backends.mps.is_available() and not torch.accelerator.is_available()
    assert torch.Stream().query() and torch.Event().query()
    with pytest.raises(RuntimeError, match="there is no accelerator"):
        torch.accelerator.current_device_idx()
    with torch.backends.cudnn.flags(enabled=False):
        assert torch.backends.cudnn.enabled is False
    assert torch.backends.cudnn.enabled is True


def test_saved_files_are_pytorchs(torch: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"model": torch.nn.Linear(2, 1).state_dict(), "epoch": 3}, path)
    assert path.read_bytes()[:4] == b"PK\x03\x04"
    loaded = torch.load(path, map_location="cpu", pickle_module=None, encoding="latin1")
    assert loaded["epoch"] == 3 and set(loaded["model"]) == {"weight", "bias"}
    file = io.BytesIO(b"before")
    file.seek(6)
    torch.save(torch.nn.Linear(2, 1), file)
    assert file.getvalue().startswith(b"before")
    file.seek(6)
    with pytest.raises(plait.CheckpointError, match="weights_only=False"):
        torch.load(file)
    file.seek(6)
    assert isinstance(torch.load(file, weights_only=False), torch.nn.Linear)


def test_random_state_is_a_tensor(torch: Any) -> None:
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8
    drawn = torch.rand(3)
    with torch.random.fork_rng():
        torch.rand(5)
    torch.set_rng_state(state.clone())
    assert torch.equal(torch.rand(3), drawn)
    assert state.numel() == 5056 and torch.Generator().get_state().numel() == 5056
    with pytest.raises(ValueError, match="no state of a Mersenne Twister"):
        torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8))
    with pytest.raises(ValueError, match="5056 bytes, got 16"):
        torch.set_rng_state(state[:16])
    with pytest.raises(TypeError, match="uint8"):
        torch.set_rng_state(state.int())


def test_a_state_says_where_its_generator_is(torch: Any) -> None:
    ours, theirs = torch.Generator().manual_seed(3), torch.Generator()
    torch.randn(5, generator=ours), torch.rand(700, generator=ours)
    theirs.set_state(ours.get_state())
    assert theirs.initial_seed() == 3
    for draw in (torch.randn, torch.rand):
        assert torch.equal(draw(7, generator=ours), draw(7, generator=theirs))
    assert torch.equal(ours.get_state(), theirs.get_state())


def test_a_program_may_keep_plaits_generator(torch: Any) -> None:
    torch.manual_seed(0)
    first = torch.rand(2)
    plait_torch.use_generator("plait")
    try:
        torch.manual_seed(0)
        assert torch.get_rng_state().numel() == 16
        assert not torch.equal(torch.rand(2), first)
        torch.set_rng_state(torch.get_rng_state())
    finally:
        plait_torch.use_generator("pytorch")
    torch.manual_seed(0)
    assert torch.equal(torch.rand(2), first)
    with pytest.raises(ValueError, match="'pytorch' or 'plait'"):
        plait_torch.use_generator("philox")


def test_autocast_of_an_accelerator(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait_abi.binding.device_count", lambda device: int(device == "cuda"))
    monkeypatch.setattr("plait_core._core.set_autocast", lambda device, dtype: None)
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled()
        assert torch.get_autocast_gpu_dtype() is torch.float16
    assert not torch.is_autocast_enabled() and torch.amp.is_autocast_available("cuda")
    assert torch.GradScaler("cuda").is_enabled()
    monkeypatch.undo()
    assert not torch.amp.is_autocast_available("cuda")
    assert not torch.amp.is_autocast_available("mps")


def test_autocast_and_scaler(torch: Any) -> None:
    from plait_torch import _autocast

    _autocast.warned.clear()
    with torch.autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    with pytest.warns(UserWarning, match="bfloat16 is required"), torch.autocast("cpu", torch.int8):
        assert not torch.is_autocast_cpu_enabled()
    with pytest.warns(UserWarning, match="'cuda' was asked for"), torch.cuda.amp.autocast():
        assert not torch.is_autocast_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast("cpu"), torch.autocast("cuda", enabled=False):
            pass
    with pytest.warns(UserWarning, match="GradScaler"):
        assert not torch.cuda.amp.GradScaler().is_enabled()
    with pytest.raises(ValueError, match="growth_factor"):
        torch.GradScaler("cpu", growth_factor=1.0)


def test_a_scaler_names_the_call_that_is_out_of_order(torch: Any) -> None:
    w = torch.ones(1, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.GradScaler("cpu", init_scale=4.0)
    with pytest.raises(RuntimeError, match="before scale"):
        scaler.update()
    scaler.scale([w.sum()])[0].backward()
    with pytest.raises(RuntimeError, match="needs a step"):
        scaler.update()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="twice"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="twice"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    again = torch.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 4.0
    with pytest.raises(RuntimeError, match="disabled"):
        again.load_state_dict({})


@pytest.fixture(name="alone")
def without_several_processes(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the package for several processes out, as if it were not installed."""
    there = _aliases.is_installed
    monkeypatch.setattr(_aliases, "is_installed", lambda n: n != "distributed" and there(n))
    _forget_torch()
    yield
    _forget_torch()


def _forget_torch() -> None:
    for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
        del sys.modules[name]


@pytest.mark.usefixtures("alone")
def test_distributed_is_not_available(torch: Any) -> None:
    import torch.distributed as dist
    from torch.nn.parallel import DataParallel, DistributedDataParallel
    from torch.utils.data.distributed import DistributedSampler

    assert not dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.all_reduce, dist.barrier):
        with pytest.raises(ValueError, match="no process group"):
            call()
    with pytest.raises(NotImplementedError, match="plait-distributed"):
        dist.init_process_group("gloo")
    with pytest.raises(NotImplementedError, match="plait-distributed"):
        DistributedDataParallel(torch.nn.Linear(1, 1))
    assert DataParallel(torch.nn.Linear(2, 3))(torch.ones(4, 2)).shape == (4, 3)
    parts = [list(DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert {len(part) for part in parts} == {4}
    assert set(itertools.chain(*parts)) == set(range(10))
    short = [list(DistributedSampler(range(10), 3, rank, drop_last=True)) for rank in range(3)]
    assert [len(part) for part in short] == [3, 3, 3] and len(set(itertools.chain(*short))) == 9
    sampler = DistributedSampler(range(10), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    with pytest.raises(ValueError, match="no process group"):
        DistributedSampler(range(3))
    with pytest.raises(ValueError, match="`rank` must be in"):
        DistributedSampler(range(3), 2, 2)


def test_what_promises_speed_passes_through(torch: Any) -> None:
    import torch._dynamo

    layer = torch.nn.Linear(1, 1)
    assert torch.compile(layer)._orig_mod is layer
    assert torch.jit.script(layer).weight is layer.weight
    assert torch.compile(layer, disable=True) is layer
    assert torch.jit.trace(layer, torch.ones(1)).weight is layer.weight
    assert torch.compile(mode="max-autotune")(len) is len and torch._dynamo.disable(len) is len
    assert torch._dynamo.optimize("eager")(layer)._orig_mod is layer
    for call in (torch.hub.load, torch.hub.load_state_dict_from_url):
        with pytest.raises(NotImplementedError, match="downloads nothing"):
            call("a", "b")


def test_vmap_names_arguments_that_do_not_fit(torch: Any) -> None:
    from torch.func import vmap

    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(vmap(torch.sum, in_dims=1)(x), x.sum(0))
    assert torch.equal(vmap(lambda d: {"y": d["x"] * 2})({"x": x})["y"], x * 2)
    out = vmap(lambda a, k: (a * k, a.sum()), in_dims=(0, None), out_dims=(1, 0))(x, 3)
    assert torch.equal(out[0], (x * 3).T) and torch.equal(out[1], x.sum(1))
    for call, text in [
        (lambda: vmap(torch.sum)(torch.tensor(1.0)), "has no dimension 0"),
        (lambda: vmap(torch.add)(x, torch.ones(3)), r"got sizes \[2, 3\]"),
        (lambda: vmap(torch.sum, in_dims=None)(x), "no tensor with `in_dims`"),
        (lambda: vmap(torch.add, in_dims=(0,))(x, x), "structure"),
        (lambda: vmap(torch.sum, in_dims=1.0)(x), "structure"),
        (lambda: vmap(torch.sum, chunk_size="a")(x), "`chunk_size` must be a positive int"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    assert vmap(torch.sum, randomness="same")(x).tolist() == [3, 12]


def test_derivatives_of_functions(torch: Any) -> None:
    from torch.func import grad, jacrev, jvp, vjp

    x = torch.tensor([1.0, 2.0])
    tree = grad(lambda p: (p["a"] ** 2).sum() * p["b"][0])({"a": x, "b": [torch.tensor(3.0)]})
    assert tree["a"].tolist() == [6.0, 12.0] and tree["b"][0].item() == 5.0
    assert not tree["a"].requires_grad
    w = torch.ones(2, requires_grad=True)
    assert grad(lambda a: (a * w).sum())(x).requires_grad  # the history beside stays
    with torch.no_grad():
        assert not grad(lambda a: (a * w).sum())(x).requires_grad
    assert grad(lambda a: torch.tensor(1.0) + 0 * a.sum())(x).tolist() == [0.0, 0.0]
    assert jacrev(lambda a: torch.ones(2))(x).tolist() == [[0, 0], [0, 0]]
    (_out, _second), pull = vjp(lambda a: (a * 2, a.sum()), x)
    assert pull((torch.ones(2), torch.tensor(1.0)))[0].tolist() == [3.0, 3.0]
    value, tangent = jvp(lambda a: a * a, (x,), (torch.tensor([1.0, 0.0]),))
    assert value.tolist() == [1.0, 4.0] and tangent.tolist() == [2.0, 0.0]
    with pytest.raises(RuntimeError, match=r"one element, got .*\(2,\)"):
        grad(lambda a: a)(x)
    with pytest.raises(RuntimeError, match="`argnums` 2"):
        grad(torch.sum, argnums=2)(x)


def test_schedules_of_the_profiler(torch: Any, tmp_path: pathlib.Path) -> None:
    from torch.profiler import profile, schedule, tensorboard_trace_handler

    seen = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: seen.append(p.step_num),
    ) as recorder:
        for _ in range(6):
            torch.ones(2).exp()
            recorder.step()
    assert seen == [4]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path))):
        torch.ones(2).exp()
    assert [name.endswith(".pt.trace.json") for name in os.listdir(tmp_path)] == [True]
    with pytest.raises(ValueError, match="`active` must be"):
        schedule(wait=0, warmup=0, active=0)


def test_benchmarks(torch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from torch.utils import benchmark

    timer = benchmark.Timer(
        stmt="x + x", setup="x = torch.ones(2)", globals={"torch": torch}, description="add"
    )
    results = [timer.timeit(10), timer.blocked_autorange(min_run_time=0.01)]
    benchmark.Compare(results).print()
    assert "[x + x, 1 threads" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match=r"language='c\+\+'"):
        benchmark.Timer("1", language="c++")


def test_older_functions(torch: Any) -> None:
    assert torch.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]
    assert torch.range(3).tolist() == [0.0, 1.0, 2.0, 3.0]
    picture = torch.ones(1, 2, 8)
    assert torch.avg_pool1d(picture, 2).shape == (1, 2, 4)
    assert torch.conv1d(picture, torch.ones(1, 2, 3)).shape == (1, 1, 6)
    assert torch.constant_pad_nd(torch.ones(1), (1, 1), 5.0).tolist() == [5.0, 1.0, 5.0]
    a = torch.randn(6, 3)
    U, S, V = torch.pca_lowrank(a, q=3)
    assert torch.allclose(U @ torch.diag(S) @ V.T, a - a.mean(0), atol=1e-5)
    assert torch.fill(torch.ones(2), 3).tolist() == [3, 3] and torch.is_signed(a)
    assert torch.typename(a) == "torch.FloatTensor" and not torch.is_inference(a)
    i = torch.tensor([[0, 1], [1, 0]])
    matrix = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2))
    assert torch.spmm(matrix, torch.eye(2))[0, 1] == 1
    assert torch.dsmm(matrix, torch.eye(2))[0, 1] == 1
    values = torch.testing.make_tensor(
        (2, 4), dtype=torch.float32, low=1, high=2, noncontiguous=True
    )
    assert values.shape == (2, 4) and not values.is_contiguous() and values.min() >= 1
    torch.testing.assert_allclose(values, values)


def test_settings_are_kept(torch: Any) -> None:
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    with pytest.raises(RuntimeError, match="'highest', 'high' or 'medium'"):
        torch.set_float32_matmul_precision("low")
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    assert torch.get_default_device() == torch.device("cpu")


def test_base_classes_of_modules(torch: Any) -> None:
    modules, nn = torch.nn.modules, torch.nn
    for result in (nn.Conv2d(1, 1, 1), nn.ConvTranspose1d(1, 1, 1)):
        assert isinstance(result, modules.conv._ConvNd)
    assert isinstance(nn.BatchNorm2d(1), modules.batchnorm._BatchNorm)
    assert not isinstance(nn.InstanceNorm2d(1), modules.batchnorm._BatchNorm)
    assert isinstance(nn.InstanceNorm2d(1), modules.batchnorm._NormBase)
    assert isinstance(nn.MSELoss(), modules.loss._Loss)

    class Own(modules.loss._WeightedLoss):
        def forward(self, x: Any) -> Any:
            return (x * self.weight).mean() if self.reduction == "mean" else x

    assert Own(weight=torch.ones(2) * 3)(torch.ones(2)) == 3
    assert not hasattr(nn, "_ConvNd")


def test_optimizers_of_old_programs(torch: Any) -> None:
    optimizer = importlib.import_module("torch.optim.optimizer")

    class Own(optimizer.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: Any = optimizer.required) -> None:
            super().__init__(params, {"lr": lr})

    assert Own([torch.nn.Parameter(torch.ones(1))], lr=1).param_groups[0]["lr"] == 1
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Own([torch.nn.Parameter(torch.ones(1))])


def test_small_parts_of_packages(torch: Any) -> None:
    modules = torch.nn.modules
    assert modules.conv._pair(3) == (3, 3) and modules.utils._triple(1) == (1, 1, 1)
    assert modules.utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    copies = modules.transformer._get_clones(torch.nn.Linear(2, 2), 3)
    assert len(copies) == 3 and copies[0].weight is not copies[1].weight
    assert modules.transformer._get_activation_fn("gelu") is torch.nn.functional.gelu
    with pytest.raises(RuntimeError, match="not tanh"):
        modules.transformer._get_activation_fn("tanh")
    assert modules.module._addindent("a\nb", 2) == "a\n  b"

    wrapped = torch.nn.Sequential()
    wrapped.add_module("module", torch.nn.Linear(2, 2))
    state = wrapped.state_dict()
    modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and "" in state._metadata
    torch.nn.Linear(2, 2).load_state_dict(state)

    hooks = importlib.import_module("torch.utils.hooks")
    handle = torch.nn.ReLU().register_forward_hook(lambda *arguments: None)
    assert isinstance(handle, hooks.RemovableHandle)
    utils = importlib.import_module("torch.distributions.utils")
    assert utils._sum_rightmost(torch.ones(2, 3, 4), 2).tolist() == [12, 12]
    assert utils._standard_normal(torch.Size([2]), torch.float64, "cpu").dtype == torch.float64
    assert utils.broadcast_all(1.0, torch.ones(2))[0].shape == (2,)
    assert hasattr(importlib.import_module("torch.optim.optimizer"), "ParamsT")


def test_strategies_of_sharing_are_accepted(torch: Any) -> None:
    processes = importlib.import_module("torch.multiprocessing")
    processes.set_sharing_strategy("file_system")
    processes.set_sharing_strategy("file_descriptor")
    assert processes.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(ValueError, match="got 'pigeon'"):
        processes.set_sharing_strategy("pigeon")
    assert processes.Process is plait.multiprocessing.Process
