"""Programs written for PyTorch on the device: `python -m plait.torch`."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("plait_torch")


def run(code: str, folder: pathlib.Path, *options: str, **environment: str) -> str:
    """Run a program on the emulation, in a folder; returns what it printed."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, "-m", "plait.torch", *options, str(path)],
        env={**os.environ, "PLAIT_CUDA_EMULATION": "1", **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_mixed_precision(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch
        from torch import nn

        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        assert device.type == "cuda"
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
        model = model.cuda()
        x, t = torch.randn(32, 8).cuda(), torch.randint(0, 3, (32,)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        scaler = torch.cuda.amp.GradScaler(init_scale=1024.0)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                y = model(x)
                loss = nn.functional.cross_entropy(y, t)
            assert (y.dtype, loss.dtype) == (torch.float16, torch.float32)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0], losses
        assert model[0].weight.dtype == model[0].weight.grad.dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert (torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype == torch.float32
        with torch.autocast("cuda"):  # tensors of the CPU are not meant
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
            layer = nn.Linear(4, 4).cuda().bfloat16()
            assert layer(torch.ones(2, 4).cuda()).dtype == torch.float16
        # a gradient that is not finite skips the step and reduces the scale
        before = model[0].weight.detach().clone()
        model[0].weight.grad = torch.full_like(before, float("inf"))
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 512.0 and torch.equal(model[0].weight, before)
        """,
        tmp_path,
    )


def test_what_mixed_precision_refuses(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch
        from torch import nn

        def refused(kind, call, *args):
            try:
                call(*args)
            except kind as error:
                return str(error)
            raise AssertionError(f"no {kind.__name__}")

        # probabilities of float16 are often 0 or 1
        p, t = torch.rand(3).cuda().half(), torch.ones(3).cuda()
        for loss in (nn.BCELoss(), nn.functional.binary_cross_entropy):
            with torch.autocast("cuda"):
                text = refused(RuntimeError, loss, p, t)
                loss(p.cpu().float(), t.cpu())  # tensors of the CPU are not meant
            assert text.startswith("binary_cross_entropy: ") and "with_logits" in text, text
            with torch.autocast("cpu"):
                assert loss(p.cpu(), t.cpu()).dtype == torch.float32
        with torch.autocast("cuda"):
            loss = nn.functional.binary_cross_entropy_with_logits(p, t)
        assert loss.dtype == torch.float32
        """,
        tmp_path,
    )


def test_names_of_torch_cuda(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_name() and torch.cuda.get_device_capability()[0] >= 7
        assert torch.cuda.current_device() == 0 and torch.backends.cuda.is_built()
        x = torch.ones(3, device="cuda")
        assert x.is_cuda and x.type() == "torch.cuda.FloatTensor"
        assert isinstance(x, torch.cuda.FloatTensor) and x.get_device() == 0
        assert torch.ones(2).type("torch.cuda.HalfTensor").dtype == torch.float16
        assert torch.cuda.FloatTensor([1, 2]).is_cuda
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = x + 1
        torch.cuda.current_stream().wait_stream(stream)
        y.record_stream(torch.cuda.current_stream())
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(), (y * 2), end.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(end) >= 0
        state = torch.cuda.get_rng_state()
        assert state.dtype == torch.uint8
        a = torch.rand(4, device="cuda")
        torch.cuda.set_rng_state(state)
        assert torch.equal(a, torch.rand(4, device="cuda"))
        assert len(torch.cuda.default_generators) == 1
        generator = torch.Generator("cuda").manual_seed(3)
        assert torch.rand(2, device="cuda", generator=generator).is_cuda
        with torch.cuda.nvtx.range("a part"):
            torch.cuda.nvtx.range_push("inner"), torch.cuda.nvtx.range_pop()
        assert torch.cuda.memory_allocated() > 0 and torch.cuda.mem_get_info()[0] > 0
        assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
        try:
            torch.empty(1 << 40, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            assert "CUDA out of memory. Tried to allocate" in str(error)
        else:
            raise AssertionError
        """,
        tmp_path,
    )


def test_a_loader_pins_and_checkpoints_move(tmp_path: pathlib.Path) -> None:
    run(
        """
        import io
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
        loader = DataLoader(data, batch_size=5, pin_memory=True, num_workers=1)
        total = 0.0
        for x, t in loader:
            assert x.is_pinned()
            x, t = x.to("cuda", non_blocking=True), t.cuda(non_blocking=True)
            total += (x.sum() + t.sum()).item()
        assert total == sum(range(40)) + sum(range(20))
        model = torch.nn.Linear(2, 2).to("cuda")
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        for where in ("cpu", "cuda"):
            file.seek(0)
            state = torch.load(file, map_location=where)
            assert state["weight"].device.type == where
        """,
        tmp_path,
    )


def test_graphed_callables(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        torch.manual_seed(1)
        plain = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        plain = plain.cuda()
        import copy
        model = torch.cuda.make_graphed_callables(copy.deepcopy(plain), (torch.randn(6, 4).cuda(),))
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (plain, model)]
        for _ in range(5):
            x = torch.randn(6, 4).cuda()
            losses = []
            for m, optimizer in zip((plain, model), optimizers):
                optimizer.zero_grad()
                loss = m(x).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            assert abs(losses[0] - losses[1]) < 1e-5, losses
        """,
        tmp_path,
    )


def test_a_checkpoint_computes_again_in_the_same_precision(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch
        from torch.utils.checkpoint import checkpoint, checkpoint_sequential

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
        x = torch.randn(8, 4).cuda().requires_grad_()
        model = model.cuda()
        grads = []
        for call in (
            model,
            lambda x: checkpoint(model, x, use_reentrant=False),
            lambda x: checkpoint_sequential(model, 2, x, use_reentrant=False),
        ):
            model.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = call(x).float().square().sum()
            loss.backward()  # outside of the region
            grads.append(model[0].weight.grad.cpu())
        assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2]), grads
        y = checkpoint(model, x, use_reentrant=False).sum()
        with torch.autocast("cuda"):  # and the other way round
            y.backward()
            assert torch.is_autocast_enabled()
        assert not torch.is_autocast_enabled()
        """,
        tmp_path,
    )


def test_storages_move_and_a_function_chooses_the_device(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        torch.save({"a": torch.arange(3.0).cuda(), "b": torch.arange(4)}, "weights.pt")
        loaded = torch.load("weights.pt", map_location=lambda storage, location: storage)
        assert {each.device.type for each in loaded.values()} == {"cpu"}
        loaded = torch.load("weights.pt", map_location=lambda storage, _: storage.cuda(0))
        assert {each.device.type for each in loaded.values()} == {"cuda"}
        assert loaded["a"].tolist() == [0, 1, 2] and loaded["b"].tolist() == [0, 1, 2, 3]
        storage = loaded["a"].untyped_storage()
        assert storage.is_cuda and storage.get_device() == 0 and storage.cuda() is storage
        host = storage.cpu()
        assert host.cpu() is host and host.get_device() == -1 and not host.is_cuda
        assert host.tolist() == torch.arange(3.0).untyped_storage().tolist()
        copy = storage.clone().fill_(0)
        assert copy.copy_(storage).tolist() == host.tolist() and copy != storage
        typed = loaded["b"].storage().cpu().cuda()
        assert typed.is_cuda and typed.tolist() == [0, 1, 2, 3]
        """,
        tmp_path,
    )


def test_what_programs_ask_of_cuda(tmp_path: pathlib.Path) -> None:
    run(
        """
        import sys, types
        import torch

        cuda = torch.cuda
        assert torch.version.cuda.startswith("13.") and cuda.get_allocator_backend() == "native"
        assert cuda.get_sync_debug_mode() == 0 and cuda.set_sync_debug_mode("default") is None
        refusals = {"warn": NotImplementedError, 2: NotImplementedError, 7: ValueError}
        for mode, kind in refusals.items():
            try:
                cuda.set_sync_debug_mode(mode)
            except kind as error:
                assert "set_sync_debug_mode" in str(error)
            else:
                raise AssertionError(mode)
        free, total = torch.accelerator.get_memory_info()
        assert 0 < free <= total == cuda.mem_get_info()[1]
        torch.backends.cuda.cufft_plan_cache[0].clear()
        assert torch.backends.cuda.cufft_plan_cache.size == 0
        assert torch.backends.cuda.preferred_blas_library() == "cublaslt"
        version = cuda.nccl.version()
        assert len(version) == 3 and version >= (2, 0, 0), version
        x = torch.ones(2, device="cuda")
        assert cuda.nccl.is_available([x]) and not cuda.nccl.is_available([x, x])
        assert not cuda.nccl.is_available([x.cpu()])
        try:
            x.numpy()
        except TypeError as error:
            assert "cpu()" in str(error)
        else:
            raise AssertionError
        try:
            cuda.current_blas_handle()
        except NotImplementedError as error:
            assert "current_blas_handle" in str(error)
        else:
            raise AssertionError
        assert not hasattr(cuda.cudart(), "cudaMalloc")

        # without the library that asks the driver, and with one
        try:
            cuda.utilization()
        except ModuleNotFoundError as error:
            assert error.name == "pynvml"
        else:
            raise AssertionError
        assert "pynvml" in cuda.list_gpu_processes()
        asked = []
        one = types.SimpleNamespace
        sys.modules["pynvml"] = library = types.ModuleType("pynvml")
        library.nvmlInit = lambda: None
        library.nvmlDeviceGetHandleByUUID = lambda name: asked.append(name) or 11
        rates = one(gpu=12, memory=13)
        library.nvmlDeviceGetUtilizationRates = lambda handle: rates
        library.nvmlDeviceGetMemoryInfo = lambda handle: one(used=handle + 3)
        library.nvmlDeviceGetTemperature = lambda handle, sensor: handle + 4 + sensor
        library.nvmlDeviceGetPowerUsage = lambda handle: handle + 5
        library.nvmlDeviceGetClockInfo = lambda handle, clock: handle + 5 + clock
        library.nvmlDeviceGetComputeRunningProcesses = lambda handle: [
            one(pid=77, usedGpuMemory=3 << 20)
        ]
        names = "utilization memory_usage device_memory_used temperature power_draw clock_rate"
        numbers = [getattr(cuda, name)() for name in names.split()]
        assert numbers == [12, 13, 14, 15, 16, 17], numbers
        assert "77 uses        3.000 MB" in cuda.list_gpu_processes(0)
        assert set(asked) == {f"GPU-{cuda.get_device_properties(0).uuid}"}
        """,
        tmp_path,
    )


def test_copies_between_devices(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch
        from torch.cuda import comm

        x = torch.arange(5.0)
        copies = comm.broadcast(x.cuda(0), [0, 1])
        assert [each.device.index for each in copies] == [0, 1]
        assert all(each.tolist() == x.tolist() for each in copies)
        (a, _), (c, d) = comm.broadcast_coalesced([x.cuda(0), 2 * x.cuda(0)], [0, 1])
        assert a.device.index == 0 and c.device.index == d.device.index == 1
        assert d.tolist() == (2 * x).tolist()
        total = comm.reduce_add([c, a], destination=1)
        assert total.device.index == 1 and total.tolist() == (2 * x).tolist()
        assert c.tolist() == x.tolist()  # what is added is not written
        assert comm.reduce_add_coalesced([[c, d], [a, a]])[1].tolist() == (3 * x).tolist()
        parts = comm.scatter(x, [1, 0], chunk_sizes=[2, 3])
        assert [each.device.index for each in parts] == [1, 0]
        assert [each.tolist() for each in parts] == [[0, 1], [2, 3, 4]]
        assert [len(each) for each in comm.scatter(x, [0, 1])] == [3, 2]
        stream = torch.cuda.Stream(1)
        (part,) = comm.scatter(x, [1], streams=[stream])
        stream.synchronize()
        assert part.tolist() == x.tolist()
        assert comm.gather(parts, destination="cpu").tolist() == x.tolist()
        out = torch.empty(5, device="cuda:1")
        assert comm.gather(parts, out=out) is out and out.tolist() == x.tolist()
        outs = [torch.empty(2, device="cuda:0"), torch.empty(3, device="cuda:1")]
        assert [each.tolist() for each in comm.scatter(x, out=outs)] == [[0, 1], [2, 3, 4]]
        for call in (
            lambda: comm.broadcast(x), lambda: comm.gather(parts, 0, 1, out=out),
            lambda: comm.scatter(x, [0], out=outs),
        ):
            try:
                call()
            except RuntimeError as error:
                assert "cuda.comm" in str(error)
            else:
                raise AssertionError
        """,
        tmp_path,
        PLAIT_CUDA_DEVICES="2",
    )


def test_pools_of_a_program(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        pool = torch.cuda.MemPool()
        outside = torch.ones(1 << 19, device="cuda")
        with torch.cuda.use_mem_pool(pool):
            assert pool.use_count() == 2
            x = torch.ones(1 << 19, device="cuda")
            with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
                y = torch.ones(8, device="cuda")
            z = torch.ones(1 << 19, device="cuda")
        assert pool.use_count() == 1
        w = torch.ones(1 << 19, device="cuda")
        def private(t):
            for segment in torch.cuda.memory_snapshot():
                if 0 <= t.data_ptr() - segment["address"] < segment["total_size"]:
                    found = segment["is_private"]
            return found
        assert [private(t) for t in (outside, x, y, z, w)] == [False, True, True, True, False]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool.id):
            r = x + 1
        graph.instantiate()
        graph.replay()
        assert r.cpu()[0] == 2
        del graph, r, x, y, z
        """,
        tmp_path,
    )


def test_a_share_of_the_device(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        total = torch.cuda.mem_get_info()[1]
        assert torch.cuda.get_per_process_memory_fraction() == 1.0
        torch.cuda.set_per_process_memory_fraction(0.05)
        assert abs(torch.cuda.get_per_process_memory_fraction() - 0.05) < 1e-6
        try:
            torch.empty(int(0.06 * total), dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError as error:
            assert "may have" in str(error)
        else:
            raise AssertionError("no error")
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.empty(int(0.06 * total), dtype=torch.uint8, device="cuda")
        """,
        tmp_path,
    )


def test_the_history_of_allocations(tmp_path: pathlib.Path) -> None:
    run(
        """
        import pickle

        import torch

        torch.cuda.memory._record_memory_history(max_entries=1000)
        def layer():
            return torch.ones(1000, device="cuda")
        a = layer()
        b = layer()
        del b
        torch.cuda.memory._dump_snapshot("x.pickle")
        c = layer()
        s = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(enabled=None)
        d = layer()
        assert len(torch.cuda.memory._snapshot()["device_traces"][0]) == len(s["device_traces"][0])
        first = pickle.load(open("x.pickle", "rb"))
        def actions(s):
            return [(e["action"], e["size"]) for e in s["device_traces"][0]]
        one = [("alloc", 4000)]
        assert actions(first) == 2 * one + [("free_requested", 4000), ("free_completed", 4000)]
        assert actions(s) == actions(first) + one
        entry = first["device_traces"][0][0]
        assert entry["addr"] == a.data_ptr() and entry["frames"][0]["name"] == "layer"
        blocks = [block for segment in first["segments"] for block in segment["blocks"]]
        [block] = [block for block in blocks if block["address"] == a.data_ptr()]
        assert block["frames"] == entry["frames"] and block["state"] == "active_allocated"
        """,
        tmp_path,
    )


def test_what_programs_call_of_the_runtime(tmp_path: pathlib.Path) -> None:
    run(
        """
        import torch

        pointer = torch.cuda.caching_allocator_alloc(1000)
        held = torch.cuda.memory_allocated()
        torch.cuda.caching_allocator_delete(pointer)
        assert held - torch.cuda.memory_allocated() == 1024

        with torch.cuda.profiler.profile():
            pass
        runtime = torch.cuda.cudart()
        assert runtime.cudaProfilerStart() == 0 and runtime.cudaProfilerStop() == 0
        assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info(0)
        torch.cuda.check_error(0)
        try:
            torch.cuda.check_error(2)
        except torch.cuda.CudaError as error:
            assert "error 2" in str(error)
        else:
            raise AssertionError("no error")
        s = torch.cuda.Stream()
        assert s.device_index == 0 and torch.cuda.current_stream().device_index == 0
        assert torch.cuda.get_stream_from_external(s.cuda_stream) == s
        """,
        tmp_path,
    )
