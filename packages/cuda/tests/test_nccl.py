"""Collectives of tensors on devices: the provider `nccl`, on the emulation's stand-in for NCCL.

Each rank has a device of its own, as NCCL refuses two ranks on one.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import subprocess
import sys

import pytest
from emulation_control import run_program
from ranks import run_ranks

pytest.importorskip("plait_distributed")

# Results are compared with those of the provider of the CPU, in the same group.
COLLECTIVES = """
from on_both import TOLERANCE, numbers
import numpy as np

join()
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()

def same(got, want, dtype):
    assert got.device == plait.device("cuda", rank) and got.dtype == want.dtype
    got, want = got.cpu(), want
    if dtype == "bfloat16":
        got, want = got.float(), want.float()
    bound = 4 * TOLERANCE.get(dtype, 0.0)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=bound, atol=4 * bound)

# Calls with tensors of the CPU and with the same on the device, and compares what was written.
def on_both(call, outputs, inputs, dtype):
    results = []
    for move in (lambda t: t.clone(), lambda t: t.cuda()):
        out, own = [move(t) for t in outputs], [move(t) for t in inputs]
        call(out, own)
        results.append(out)
    for got, want in zip(results[1], results[0], strict=True):
        same(got, want, dtype)

def reductions(dtype):
    ops = ["SUM", "PRODUCT", "MIN", "MAX"]
    if dtype.startswith("complex"):
        ops = ["SUM"]
    if dtype.startswith(("float", "bfloat", "complex")):
        ops.append("AVG")
    if dtype == "bool":
        ops += ["BAND", "BOR"]
    return [getattr(dist.ReduceOp, op) for op in ops]

def some(n, dtype, seed):
    return [numbers((3, 2), dtype, 100 * rank + 10 * seed + i) for i in range(n)]

for dtype in DTYPES:
    root = size - 1
    if dtype != "int16":
        for op in reductions(dtype):
            on_both(lambda out, _: dist.all_reduce(out[0], op), some(1, dtype, 1), [], dtype)
            on_both(lambda out, _: dist.reduce(out[0], root, op), some(1, dtype, 2), [], dtype)
            on_both(
                lambda out, own: dist.reduce_scatter(out[0], own, op),
                some(1, dtype, 3), some(size, dtype, 4), dtype,
            )
    on_both(lambda out, _: dist.broadcast(out[0], root), some(1, dtype, 5), [], dtype)
    on_both(
        lambda out, own: dist.all_gather(out, own[0]),
        some(size, dtype, 6), some(1, dtype, 7), dtype,
    )
    here = rank == root
    on_both(
        lambda out, own: dist.gather(own[0], out if here else None, root),
        some(size, dtype, 8) if here else [], some(1, dtype, 9), dtype,
    )
    on_both(
        lambda out, own: dist.scatter(out[0], own if here else None, root),
        some(1, dtype, 10), some(size, dtype, 11) if here else [], dtype,
    )
    on_both(
        lambda out, own: dist.all_to_all(out, own),
        some(size, dtype, 12), some(size, dtype, 13), dtype,
    )

# one tensor with the parts of all ranks, which NCCL takes as it is
whole = plait.empty(2 * size, device="cuda")
dist.all_gather_into_tensor(whole, plait.full((2,), float(rank), device="cuda"))
assert whole.cpu().view(size, 2).tolist() == [[float(r)] * 2 for r in range(size)]
part = plait.empty(2, device="cuda")
dist.reduce_scatter_tensor(part, plait.arange(2.0 * size).cuda())
assert part.cpu().tolist() == [2.0 * rank * size, (2.0 * rank + 1) * size]

# lists, parts of different sizes, tensors that are not dense, none at all
tensors = [plait.full((n,), float(rank), device="cuda") for n in (1, 3, 100_000)]
dist.all_reduce_coalesced(tensors)
assert all(t.cpu().max() == sum(range(size)) == t.cpu().min() for t in tensors)
rows = plait.arange(6.0).view(2, 3).cuda().t()
dist.all_reduce(rows)
assert rows.cpu().tolist() == [[0.0, 3.0 * size], [size, 4.0 * size], [2.0 * size, 5.0 * size]]
empty = plait.empty(0, device="cuda")
dist.all_reduce(empty), dist.broadcast(empty, 0)
lengths = [i + 1 for i in range(size)]
out = plait.zeros(size * (rank + 1), device="cuda")
own = plait.cat([plait.full((n,), 10.0 * rank + n) for n in lengths]).cuda()
dist.all_to_all_single(out, own, [rank + 1] * size, lengths)
assert out.cpu().tolist() == [10.0 * r + rank + 1 for r in range(size) for _ in range(rank + 1)]

dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("size", [2, 4])
def test_collectives_give_what_they_give_on_the_cpu(size: int, tmp_path: pathlib.Path) -> None:
    run_ranks(size, COLLECTIVES, tmp_path)


def test_refused_calls_say_why_and_the_group_goes_on(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        assert dist.get_backend() == "nccl" and dist.is_nccl_available()
        group = dist.get_default_group()
        assert group.serves("cuda:0") and group.serves("cpu") and not group.serves("meta")
        x = plait.ones(3, dtype=plait.int16, device="cuda")
        text = "all_reduce: NCCL has no reduction `sum` of int16; tensors of the CPU have it"
        refused(NotImplementedError, lambda: dist.all_reduce(x), text)
        i = plait.ones(3, dtype=plait.int32, device="cuda")
        xor = dist.ReduceOp.BXOR
        refused(NotImplementedError, lambda: dist.all_reduce(i, xor), "`xor` of int32")
        two = [plait.ones(2).cuda(), plait.ones(2)]
        refused(
            TypeError, lambda: dist.all_gather(two, plait.ones(2).cuda()),
            "a tensor on a device of the type cuda is required, got one on cpu",
        )
        other = plait.ones(2, device=f"cuda:{1 - rank}")
        pair = [plait.ones(2).cuda(), other]
        refused(
            TypeError, lambda: dist.all_gather(pair, plait.ones(2).cuda()),
            f"tensors on one device are required, got cuda:{rank} and cuda:{1 - rank}",
        )
        refused(
            NotImplementedError, lambda: dist.send(i, 1 - rank, tag=3),
            "send: messages of NCCL have no tags: `tag` must be 0, got 3",
        )
        refused(NotImplementedError, lambda: dist.recv(i), "recv: `src` must be given")
        y = plait.full((2,), rank + 1.0, device="cuda")
        dist.all_reduce(y)
        assert y.cpu().tolist() == [3.0, 3.0]
        # the device of a rank is that of its first collective
        text = f"on cuda:{rank}, which is this rank's device in it; got one on cuda:{1 - rank}"
        refused(ValueError, lambda: dist.all_reduce(other), text)
        stream = plait.cuda.Stream()
        with plait.cuda.stream(stream):
            graph = plait.cuda.CUDAGraph()
            graph.capture_begin()
            text = "all_reduce: collectives cannot be recorded in a graph"
            refused(NotImplementedError, lambda: dist.all_reduce(y), text)
            graph.capture_end()
        dist.all_reduce(y)
        assert y.cpu().tolist() == [6.0, 6.0]
        """,
        tmp_path,
    )


def test_work_is_behind_the_stream_and_the_host_does_not_wait(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        from emulation_control import Emulation

        emulation = Emulation()
        join()
        x = plait.zeros(4, device="cuda")
        dist.all_reduce(x)  # makes NCCL's communicator
        plait.cuda.synchronize()
        dist.barrier()
        before = emulation.get("waits")
        emulation.set("delay_us", 60_000_000)
        x.add_(rank + 1)
        dist.all_reduce(x)  # behind the sum, in the stream
        x.mul_(10)
        y = plait.full((1000,), 2.0, device="cuda")
        work = dist.all_reduce(y, async_op=True)
        assert not work.is_completed()
        work.wait()  # the stream waits
        y.add_(1)
        assert not work.is_completed() and emulation.get("waits") == before
        emulation.set("delay_us", 0)
        assert x.cpu().tolist() == [30.0] * 4
        assert y.cpu().tolist() == [5.0] * 1000 and work.is_completed()
        # collectives of two streams
        stream = plait.cuda.Stream()
        with plait.cuda.stream(stream):
            z = plait.full((5,), float(rank), device="cuda")
            dist.all_reduce(z)
            z.add_(1)
        dist.all_reduce(y)
        plait.cuda.current_stream().wait_stream(stream)
        assert z.cpu().tolist() == [2.0] * 5 and y.cpu()[0] == 10
        # the profiler's row, by events; CUPTI would show NCCL's kernels
        from plait_profiler import Kind, profile

        with profile() as prof:
            dist.all_reduce(y)
            plait.cuda.synchronize()
        recording = prof.recording()
        rows = recording.rows[recording.rows["kind"] == Kind.DEVICE]
        names = [recording.signatures[each].name for each in rows["signature"]]
        assert names == ["all_reduce"] and (rows["duration"] > 0).all(), names
        # a work that is dropped goes on, and its tensor is kept until then
        for _ in range(20):
            dist.all_reduce(plait.ones(10_000, device="cuda"), async_op=True)
        dist.barrier()
        dist.destroy_process_group()
        """,
        tmp_path,
        PLAIT_CUDA_CUPTI="0",
    )


def test_messages_go_both_ways_and_round_a_ring(tmp_path: pathlib.Path) -> None:
    run_ranks(
        3,
        """
        join()
        if rank < 2:  # both send first
            x = plait.full((50_000,), float(rank), device="cuda")
            y = plait.zeros(50_000, device="cuda")
            works = [dist.isend(x, 1 - rank), dist.irecv(y, 1 - rank)]
            for work in works:
                work.wait()
            assert y.cpu().tolist() == [1.0 - rank] * 50_000
        for n in (5, 40_000):
            x, y = plait.full((n,), float(rank), device="cuda"), plait.zeros(n, device="cuda")
            ops = [
                dist.P2POp(dist.isend, x, (rank + 1) % size),
                dist.P2POp(dist.irecv, y, (rank - 1) % size),
            ]
            works = dist.batch_isend_irecv(ops)
            assert len(works) == 2
            for work in works:
                work.wait()
            assert y.cpu().tolist() == [float((rank - 1) % size)] * n
        # in order, and between calls that block
        z = plait.zeros(2, device="cuda")
        if rank == 0:
            for i in range(5):
                dist.send(plait.full((2,), float(i), device="cuda"), 2)
        if rank == 2:
            for i in range(5):
                assert dist.recv(z, 0) == 0
                assert z.cpu().tolist() == [float(i)] * 2
        dist.destroy_process_group()
        """,
        tmp_path,
    )


def test_groups_objects_and_tensors_of_the_cpu(tmp_path: pathlib.Path) -> None:
    run_ranks(
        4,
        """
        join()
        groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        own = groups[rank % 2]
        x = plait.full((3,), float(rank), device="cuda")
        dist.all_reduce(x, group=own)
        assert x.cpu().tolist() == [rank % 2 * 2 + 2.0] * 3 and own.name() == "nccl"
        cpu = plait.full((2,), 1.0)
        dist.all_reduce(cpu)
        assert cpu.tolist() == [4.0, 4.0]
        every = [None] * size
        dist.all_gather_object(every, {"rank": rank})
        assert every == [{"rank": r} for r in range(size)]
        mesh = dist.device_mesh.init_device_mesh("cuda", (2, 2), mesh_dim_names=("a", "b"))
        y = plait.full((2,), float(rank), device="cuda")
        dist.all_reduce(y, group=mesh["b"].get_group())
        assert y.cpu().tolist() == [1.0 if rank < 2 else 5.0] * 2
        # the role itself: a part of a communicator
        raw = plait_abi.Communicator.open(
            "nccl", f"shared_memory {dist.get_default_group().where}/own", rank, size, 20, "cuda"
        )
        part = raw.split(rank // 2, -rank)
        assert (part.rank, part.size) == (1 - rank % 2, 2)
        z = plait.full((2,), float(rank), device="cuda")
        part.start("all_reduce", [z], [z], reduction="max")
        assert z.cpu().tolist() == [1.0 if rank < 2 else 3.0] * 2
        assert raw.split(-1) is None
        part.close(), raw.close()
        dist.destroy_process_group()
        """,
        tmp_path,
    )


def test_names_of_backends(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join(backend="cpu:gloo,cuda:nccl")
        x = plait.ones(2, device="cuda")
        dist.all_reduce(x)
        assert x.cpu().tolist() == [2.0, 2.0]
        group = dist.new_group([0, 1], backend="gloo")
        text = "tensors of the CPU are required by the backend 'gloo', got one on cuda:"
        refused(ValueError, lambda: dist.all_reduce(x, group=group), text)
        y = plait.ones(2)
        dist.all_reduce(y, group=group)
        assert y.tolist() == [2.0, 2.0]
        """,
        tmp_path,
    )


# A net that is trained by all ranks on parts of the batch, and by the CPU alone on all of it.
TRAINING = """
from plait import nn
from plait.distributed.fsdp import fully_shard

def net():
    plait.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Linear(16, 2))

plait.manual_seed(5)
x, t = plait.randn(12, 6), plait.randn(12, 2)

def train(model, x, t, mean):
    optimizer = plait.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = (model(x) - t).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(mean(loss.detach()))
    return losses

def mean(loss):
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    return loss.item()

join()
want = train(net(), x, t, lambda loss: loss.item())
n = len(x) // size
mine = [part[rank * n : (rank + 1) * n].cuda() for part in (x, t)]
"""


def test_data_parallel_training_has_the_losses_of_the_cpu(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        TRAINING
        + """
model = dist.DistributedDataParallel(net().cuda(), device_ids=[rank])
got = train(model, *mine, mean)
assert all(abs(a - b) < 1e-5 for a, b in zip(got, want, strict=True)), (got, want)
parameter = next(model.parameters())
assert parameter.grad.device == parameter.device == plait.device("cuda", rank)
refused(
    ValueError, lambda: dist.DistributedDataParallel(net().cuda(), device_ids=[rank + 1]),
    f"`device_ids` must be None for a module on cuda:{rank}, or [{rank}]; got [{rank + 1}]",
)
mixed = net().cuda()
mixed[0].cpu()
refused(ValueError, lambda: dist.DistributedDataParallel(mixed), "parameters must be on one device")
# unused parameters, buffers, and a hook that reduces in another dtype
class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return self.layers(x)

model = dist.DistributedDataParallel(Partly().cuda(), find_unused_parameters=True)
from plait.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(None, default_hooks.bf16_compress_hook)
for _ in range(3):
    (model(mine[0]) - mine[1]).square().mean().backward()
every = [None] * size
dist.all_gather_object(every, model.module.layers[0].weight.grad.cpu().tolist())
assert every[0] == every[1] and model.module.unused.weight.grad is None
dist.destroy_process_group()
""",
        tmp_path,
    )


def test_sharded_training_has_the_losses_of_the_cpu(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        TRAINING
        + """
model = net().cuda()
for layer in model:
    if list(layer.parameters()):
        fully_shard(layer)
fully_shard(model)
got = train(model, *mine, mean)
assert all(abs(a - b) < 1e-5 for a, b in zip(got, want, strict=True)), (got, want)
weight = model[0].weight
assert weight.device_mesh.device_type == "cuda" and weight.to_local().shape == (8, 6)
assert weight.to_local().device == plait.device("cuda", rank)
elsewhere = nn.Linear(2, 2, device="meta")
refused(ValueError, lambda: fully_shard(elsewhere), "on one device that the group")
model = plait.distributed.fsdp.FullyShardedDataParallel(net().cuda())
got = train(model, *mine, mean)
assert all(abs(a - b) < 1e-5 for a, b in zip(got, want, strict=True)), (got, want)
dist.destroy_process_group()
""",
        tmp_path,
    )


def test_other_parts_of_distributed_training(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        from plait import nn
        from plait.distributed import tensor as dtensor
        from plait.distributed.algorithms.join import Join
        from plait.distributed.device_mesh import init_device_mesh
        from plait.distributed.nn import SyncBatchNorm, functional
        from plait.distributed.optim import ZeroRedundancyOptimizer
        from plait.distributed.tensor.parallel import (
            ColwiseParallel, RowwiseParallel, parallelize_module,
        )

        join()
        plait.manual_seed(0)
        x = plait.randn(8, 4)
        want = nn.BatchNorm1d(4)(x)
        mine = slice(4 * rank, 4 * rank + 4)
        got = SyncBatchNorm(4).cuda()(x[mine].cuda().requires_grad_())
        assert plait.allclose(got.cpu(), want[mine], atol=1e-5)
        got.sum().backward()

        y = plait.ones(3, device="cuda", requires_grad=True)
        functional.all_reduce(y * (rank + 1)).sum().backward()
        assert y.grad.cpu().tolist() == [2.0 * (rank + 1)] * 3

        mesh = init_device_mesh("cuda", (2,))
        part = dtensor.distribute_tensor(x, mesh, [dtensor.Shard(0)])  # it moves to the device
        assert part.to_local().device == plait.device("cuda", rank)
        assert plait.equal(part.redistribute(placements=[dtensor.Shard(1)]).full_tensor().cpu(), x)
        zeros = dtensor.zeros(6, 2, device_mesh=mesh, placements=[dtensor.Shard(0)])
        assert zeros.to_local().device == plait.device("cuda", rank)

        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        want = net(x)
        net = parallelize_module(net.cuda(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        got = net(x.cuda())
        assert plait.allclose(got.cpu(), want, atol=1e-5)
        got.sum().backward()

        model = dist.DistributedDataParallel(nn.Linear(4, 2).cuda())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), plait.optim.Adam, lr=0.1)
        with Join([model]):
            for _ in range(2 + rank):  # ranks have different numbers of batches
                model(x.cuda()).sum().backward()
        optimizer.step()
        weight = model.module.weight.detach()
        both = [plait.empty_like(weight) for _ in range(2)]
        dist.all_gather(both, weight)
        assert plait.equal(both[0].cpu(), both[1].cpu())
        dist.destroy_process_group()
        """,
        tmp_path,
    )


def test_the_launcher_starts_a_process_for_each_gpu(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    # one write for each rank, as they share the pipe
    program.write_text("import os; os.write(1, f'rank {os.environ[\"RANK\"]}\\n'.encode())")
    done = subprocess.run(
        [sys.executable, "-m", "plait_distributed.run", "--nproc-per-node", "gpu", str(program)],
        env={**os.environ, "PLAIT_CUDA_EMULATION": "1", "PLAIT_CUDA_DEVICES": "3"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0", "rank 1", "rank 2"], done.stdout


def test_a_killed_rank_is_told(tmp_path: pathlib.Path) -> None:
    printed = run_ranks(
        3,
        """
        join()
        x = plait.ones(1000, device="cuda")
        dist.all_reduce(x)
        plait.cuda.synchronize()
        dist.barrier()
        pid = dist.get_default_group().peers[1].pid
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        if rank == 0:  # the host waits for the collective
            work = dist.all_reduce(x, async_op=True)
            error = refused(dist.RankLost, lambda: work.wait(timeout=300), "rank 1", f"(host ")
            assert error.ranks == (1,), error.ranks
            again = refused(dist.RankLost, lambda: dist.all_reduce(x), "rank 1")
            assert again.ranks == (1,)
            plait.cuda.synchronize()  # it has been told
        else:  # the host waits for the device
            dist.all_reduce(x)
            error = refused(RuntimeError, lambda: x.cpu(), "all_reduce: ", f"rank 1 (pid {pid})")
            assert error.failure == "lost" and error.lost == ((1, -1, pid),), error.lost
            refused(dist.RankLost, dist.barrier, "rank 1")
        assert time.monotonic() - start < 100
        y = plait.ones(2, device="cuda")  # the device goes on
        assert (y + 1).cpu().tolist() == [2.0, 2.0]
        dist.destroy_process_group()
        assert time.monotonic() - start < 110
        """,
        tmp_path,
        killed=(1,),
    )
    assert "done" not in printed[1]


def test_elastic_training_goes_on_without_a_killed_rank(tmp_path: pathlib.Path) -> None:
    printed = run_ranks(
        3,
        """
        from plait import nn
        from plait.distributed import elastic

        plait.cuda.set_device(rank)
        elastic.init_process_group("nccl", WHERE + "e", 300, size, rank, patience=0)
        plait.manual_seed(0)
        model = nn.Linear(4, 1).cuda()
        optimizer = plait.optim.SGD(model.parameters(), lr=0.05)
        state = elastic.State(model=model, optimizer=optimizer, step=0)

        @elastic.run
        def train(state):
            wrapped = dist.DistributedDataParallel(model)
            while state.step < 12:
                if rank == 1 and state.step == 5:
                    os.kill(os.getpid(), signal.SIGKILL)
                optimizer.zero_grad()
                loss = (wrapped(plait.ones(3, 4, device="cuda")) - 1).square().mean()
                loss.backward()
                optimizer.step()
                state.step += 1
                state.commit()
            return dist.get_world_size(), loss.item()

        left, loss = train(state)
        assert left == 2 and loss < 0.5, (left, loss)
        dist.destroy_process_group()
        """,
        tmp_path,
        killed=(1,),
    )
    assert "done" not in printed[1]


def test_a_rank_that_left_is_lost(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        x = plait.ones(3, device="cuda")
        for _ in range(50):
            dist.broadcast(x, 0)
        if rank == 0:
            dist.destroy_process_group()  # what it sent arrives
        else:
            assert x.cpu().tolist() == [1.0] * 3
            work = dist.all_reduce(x, async_op=True)
            text = "rank 0", "left the group"
            error = refused(dist.RankLost, lambda: work.wait(timeout=200), *text)
            assert error.ranks == (0,)
        """,
        tmp_path,
    )


def test_an_abort_and_a_timeout(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        group = dist.new_group([0, 1], timeout=6.0)
        x = plait.ones(3, device="cuda")
        dist.all_reduce(x)
        plait.cuda.synchronize()
        dist.barrier()
        dist.all_reduce(x, group=group)
        plait.cuda.synchronize()
        dist.barrier()
        if rank == 0:
            work = dist.all_reduce(x, group=group, async_op=True)
            text = "waited 6 s for the other ranks"
            refused(dist.CollectiveTimeout, lambda: work.wait(timeout=200), text)
        dist.barrier()
        pid = dist.get_default_group().peers[0].pid
        aborted = f"rank 0 (pid {pid}) aborted the group: nothing more"
        if rank == 0:
            dist.get_default_group().abort("nothing more to do")
            refused(DistBackendError, lambda: dist.all_reduce(x), aborted)
        else:
            work = dist.all_reduce(x, async_op=True)
            refused(DistBackendError, lambda: work.wait(timeout=200), aborted)
        """,
        tmp_path,
    )


def test_ranks_that_call_different_things_are_told(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        group = dist.new_group([0, 1], timeout=6.0)
        x = plait.ones(3, device="cuda")
        dist.all_reduce(x)
        plait.cuda.synchronize()
        dist.barrier()
        dist.all_reduce(x, group=group)
        plait.cuda.synchronize()
        dist.barrier()
        y = plait.ones(3 + rank, device="cuda")
        work = dist.all_reduce(y, group=group, async_op=True)
        text = [f"rank {r} called all_reduce(float32[{3 + r}], sum)" for r in range(2)]
        refused(dist.MismatchError, lambda: work.wait(timeout=200), *text)
        """,
        tmp_path,
    )


def test_an_error_of_nccl_ends_the_group_in_all_ranks(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        x = plait.ones(3, device="cuda")
        dist.all_reduce(x)
        plait.cuda.synchronize()
        dist.barrier()
        start = time.monotonic()
        if rank == 0:
            work = dist.all_reduce(x, async_op=True)
        else:
            work = dist.broadcast(x, 0, async_op=True)
        refused(DistBackendError, lambda: work.wait(timeout=300), "invalid usage (error 5 of NCCL)")
        assert time.monotonic() - start < 100
        refused(DistBackendError, lambda: dist.all_reduce(x), "invalid usage")
        """,
        tmp_path,
    )


def test_a_control_group_of_another_provider(tmp_path: pathlib.Path) -> None:
    plait_ucx = pytest.importorskip("plait_ucx")
    if not plait_ucx.is_available():
        pytest.skip("UCX is not installed")
    run_ranks(
        3,
        """
        import plait_ucx

        plait.cuda.set_device(rank)
        name = WHERE.replace("shm:", "local:")
        world = plait_abi.Communicator.open("ucx", name, rank, size, 30)
        for where, text in (
            (name, "`where` must be"),
            ("other x", "no communicator named other is provided for the CPU"),
        ):
            alone = "nccl", where, 0, 1, 9, "cuda"
            refused(ValueError, lambda: plait_abi.Communicator.open(*alone), text)
        group = plait_abi.Communicator.open("nccl", f"ucx {name}/nccl", rank, size, 30, "cuda")
        x = plait.ones(1000, device="cuda")
        group.start("all_reduce", [x], [x])
        assert x.cpu().tolist() == [3.0] * 1000
        group.start("barrier")
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        work = group.start("all_reduce", [x], [x], asynchronous=True)
        deadline = time.monotonic() + 120

        def wait():
            while not work.query() and time.monotonic() < deadline:
                time.sleep(0.01)

        error = refused(plait_abi.PlaitError, wait, "rank 1", "died")
        assert error.failure == "lost" and error.lost[0][0] == 1, error.lost
        group.close(), world.close()
        """,
        tmp_path,
        killed=(1,),
    )


def test_two_ranks_on_one_device_are_refused(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        plait.cuda.set_device(0)
        text = "Duplicate GPU detected", "both on CUDA device 0", "of NCCL"
        x = plait.ones(2, device="cuda")
        refused(DistBackendError, lambda: dist.all_reduce(x), *text)
        refused(DistBackendError, lambda: dist.all_reduce(x), "Duplicate GPU")  # it cannot be used
        y = plait.ones(2)
        dist.all_reduce(y)
        assert y.tolist() == [2.0, 2.0]
        """,
        tmp_path,
    )


def test_a_rank_that_is_killed_before_the_first_collective(tmp_path: pathlib.Path) -> None:
    run_ranks(
        2,
        """
        join()
        x = plait.ones(2, device="cuda")
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        refused(dist.RankLost, lambda: dist.all_reduce(x), "rank 1")
        refused(dist.RankLost, lambda: dist.all_reduce(x), "rank 1")
        assert time.monotonic() - start < 100
        """,
        tmp_path,
        killed=(1,),
    )


def test_without_nccl_the_text_says_how_to_install_it() -> None:
    run_program(
        """
        import plait_cuda
        import plait_distributed as dist

        assert plait_cuda.nccl_version() is None and not dist.is_nccl_available()
        text = refused(
            RuntimeError,
            lambda: dist.init_process_group("nccl", "shm:without nccl", rank=0, world_size=1),
            "pip install plait-cuda[libraries]", "libnccl.so.2", "PLAIT_CUDA_NCCL is 0",
        )
        assert "\\n" not in text
        assert not dist.is_initialized()
        dist.init_process_group("gloo", "shm:without nccl", rank=0, world_size=1)
        dist.destroy_process_group()
        """,
        PLAIT_CUDA_NCCL="0",
    )


def test_without_a_device_nccl_means_the_cpu() -> None:
    run_program(
        """
        import warnings
        import plait_distributed as dist

        emulation.set("version", 11040)  # too old
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dist.init_process_group("nccl", "shm:no device", rank=0, world_size=1)
        assert "the backend 'nccl' is not available" in str(caught[0].message), caught
        assert dist.get_backend() == "gloo"
        x = plait.ones(2)
        dist.all_reduce(x)
        dist.destroy_process_group()
        """
    )


def test_programs_for_pytorch(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("plait_torch")
    run_ranks(
        2,
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        rank = int(os.environ["RANK"])
        torch.cuda.set_device(rank)
        assert dist.is_nccl_available()
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
        assert dist.get_backend() == "nccl" and dist.get_world_size() == 2
        torch.manual_seed(rank)
        model = DDP(torch.nn.Linear(4, 1).to(rank), device_ids=[rank], output_device=rank)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4, device=rank)).square().mean().backward()
            optimizer.step()
        weight = model.module.weight.detach()
        both = [torch.empty_like(weight) for _ in range(2)]
        dist.all_gather(both, weight)
        assert torch.equal(both[0], both[1])
        loss = torch.tensor(float(rank), device="cuda")
        dist.all_reduce(loss, op=dist.ReduceOp.SUM)
        assert loss.item() == 1.0
        dist.barrier(device_ids=[rank])
        dist.destroy_process_group()
        """,
        tmp_path,
        launcher=("-m", "plait.torch"),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(secrets.randbelow(1 << 15) + 1024),  # the ranks meet in shared memory
    )
