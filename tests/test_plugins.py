"""Components replaced from one C11 file each: compiled with headers only, used, undone."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from plugins import EXAMPLES, compiled

import plait_abi
import plait_core as pc
import plait_multiprocessing as mp

PLUGINS = Path(__file__).resolve().parents[1] / "examples" / "plugins"


class Counters:
    """The exported counters of a plug-in's library."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))

    def __getitem__(self, name: str) -> int:
        return ctypes.c_uint64.in_dll(self.library, name).value


@pytest.fixture
def loaded(request: pytest.FixtureRequest) -> Iterator[Counters]:
    stem = request.param
    library = compiled(EXAMPLES / f"{stem}.c")
    plait_abi.load(str(library))
    yield Counters(library)
    if f"example-{stem}" in {
        record.name for record in plait_abi.records() if record.kind == "plugin"
    }:
        plait_abi.detach(f"example-{stem}")


@pytest.mark.parametrize("loaded", ["matmul"], indirect=True)
def test_matmul_is_replaced_where_it_wants_and_declines_the_rest(loaded: Counters) -> None:
    x, y = pc.randn(17, 5), pc.randn(5, 9)
    start = loaded["example_matmul_calls"]
    np.testing.assert_allclose((x @ y).numpy(), x.numpy() @ y.numpy(), rtol=1e-5, atol=1e-5)
    assert loaded["example_matmul_calls"] == start + 1
    np.testing.assert_allclose(
        (x.double() @ y.double()).numpy(), x.double().numpy() @ y.double().numpy()
    )
    np.testing.assert_allclose((y.T @ x.T).numpy(), y.numpy().T @ x.numpy().T, rtol=1e-5, atol=1e-5)
    assert loaded["example_matmul_calls"] == start + 1
    assert "example-matmul" in str(plait_abi.report())
    plait_abi.detach("example-matmul")
    pc.mm(x, y)
    assert loaded["example_matmul_calls"] == start + 1
    assert "example-matmul" not in str(plait_abi.report())


@pytest.mark.parametrize("loaded", ["observer"], indirect=True)
def test_an_observer_counts_calls_and_bytes(loaded: Counters) -> None:
    calls, size = loaded["example_observer_calls"], loaded["example_observer_bytes"]
    x = pc.zeros(1000)
    _ = x + x
    assert loaded["example_observer_calls"] >= calls + 2
    assert loaded["example_observer_bytes"] >= size + 8000
    (line,) = [line for line in plait_abi.report() if line.kind == "observer"]
    assert line[:5] == ("observer", "example-observer", "example-observer", "1.0", True)
    plait_abi.detach("example-observer")
    assert "example-observer" not in str(plait_abi.report())
    calls = loaded["example_observer_calls"]
    _ = x + x
    assert loaded["example_observer_calls"] == calls


@pytest.mark.parametrize("loaded", ["allocator"], indirect=True)
def test_an_allocator_serves_even_the_smallest_tensor(loaded: Counters) -> None:
    before = loaded["example_allocator_blocks"]
    small, large = pc.ones(1), pc.ones(100_000)
    assert loaded["example_allocator_blocks"] >= before + 2
    assert loaded["example_allocator_live"] >= 400_004
    assert pc.memory_stats()["live_bytes"] == loaded["example_allocator_live"]
    with pytest.raises(RuntimeError, match="`guarded malloc` keeps the peak of the process"):
        pc.reset_peak_memory_stats()
    plait_abi.detach("example-allocator")
    blocks = loaded["example_allocator_blocks"]
    other = pc.ones(100_000)
    assert loaded["example_allocator_blocks"] == blocks
    del small, large, other  # blocks go back to whoever made them
    assert loaded["example_allocator_live"] == 0
    assert loaded["example_allocator_damaged"] == 0


COUNTS_NOTHING = """
#include <plait/abi.h>
#include <stdlib.h>

static plait_status take(void *ctx, DLDevice device, uint64_t nbytes, plait_stream *stream,
                         void **data, void **block) {
  (void)ctx, (void)device, (void)stream;
  *data = *block = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  return *data ? PLAIT_OK : PLAIT_MEMORY_ERROR;
}
static void give(void *ctx, void *data, uint64_t nbytes, void *block) {
  (void)ctx, (void)data, (void)nbytes;
  free(block);
}
static const plait_allocator allocator = {
    .h = PLAIT_HEADER(plait_allocator), .name = "plain", .alloc = take, .free = give};
static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  return runtime->provide(runtime->thread(), "allocator", kDLCPU, &allocator.h, self, NULL);
}
__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "counts-nothing", "1.0", 0, init, NULL};
"""


def test_an_allocator_need_not_count(tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text(COUNTS_NOTHING)
    plait_abi.load(str(compiled(source)))
    try:
        assert float(pc.ones(1000).sum()) == 1000
        with pytest.raises(RuntimeError, match="memory_stats: the allocator `plain` counts noth"):
            pc.memory_stats()
        with pytest.raises(RuntimeError, match="reset_peak_memory_stats: the allocator `plain`"):
            pc.reset_peak_memory_stats()
        pc.empty_cache()  # it keeps no memory to give back
    finally:
        plait_abi.detach("counts-nothing")
    assert pc.memory_stats()["allocator"] == "plait_core.cache"


@pytest.mark.parametrize("loaded", ["communicator"], indirect=True)
def test_a_communicator_stands_beside_ours_under_its_name(loaded: Counters) -> None:
    x = pc.tensor([1.0, 2.0])
    for where, provider in (("self:", "self"), ("shm:test-plugins", "shared_memory")):
        group = mp.Communicator.open(where, 0, 1, provider=provider)
        group.all_reduce(x)
        assert group.all_reduce(x, "max", async_op=True).wait() is None
        part = group.split(0)
        assert part is not None and (part.rank, part.size) == (0, 1)
        group.abort("enough")
        with pytest.raises(mp.GroupError, match=r"rank 0.* aborted the group: enough"):
            group.barrier()
        part.barrier()
    assert loaded["example_communicator_calls"] == 3 and x.tolist() == [1.0, 2.0]
    with pytest.raises(NotImplementedError, match="send: a group of one member"):
        plait_abi.Communicator.open("self", "self:", 0, 1).start("send", [x])
    other = plait_abi.Communicator.open("self", "self:", 0, 1)
    other.interrupt("a step")  # it knows no interrupts, and states no facts
    with pytest.raises(plait_abi.PlaitError, match="was interrupted during a step") as caught:
        other.start("barrier")
    assert (caught.value.failure, caught.value.lost) == ("", ())
    plait_abi.detach("example-communicator")
    with pytest.raises(ValueError, match="no communicator named self"):
        mp.Communicator.open("self:", 0, 1, provider="self")


@pytest.mark.parametrize("loaded", ["executor"], indirect=True)
def test_an_executor_runs_the_kernels_with_the_same_bits(loaded: Counters) -> None:
    x = pc.randn(300, 1000)
    with_theirs = (x.sum(0), (x * 2).exp(), x @ x.T)
    assert loaded["example_executor_regions"] > 0
    assert loaded["example_executor_pieces"] > loaded["example_executor_regions"]
    plait_abi.detach("example-executor")
    regions = loaded["example_executor_regions"]
    with_ours = (x.sum(0), (x * 2).exp(), x @ x.T)
    assert loaded["example_executor_regions"] == regions
    for a, b in zip(with_theirs, with_ours, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("loaded", ["generator"], indirect=True)
def test_a_generator_serves_every_random_operator(loaded: Counters) -> None:
    def draws() -> list[np.ndarray]:
        pc.manual_seed(5)
        result = [
            pc.rand(10_000),
            pc.randn(10_000, dtype="float64"),
            pc.randint(0, 7, (10_000,)).double(),
            pc.poisson(pc.full((2_000,), 4.0)),
            pc.multinomial(pc.ones(4), 400, replacement=True).double(),
            pc.randperm(1000).double(),
            plait_abi.operator("dropout")(pc.ones(10_000), 0.5, True),
        ]
        return [x.numpy() for x in result]

    theirs = draws()
    assert loaded["example_generator_blocks"] > 0
    for a, b in zip(theirs, draws(), strict=True):
        np.testing.assert_array_equal(a, b)
    threads = pc.get_num_threads()
    pc.set_num_threads(1)
    for a, b in zip(theirs, draws(), strict=True):
        np.testing.assert_array_equal(a, b)
    pc.set_num_threads(threads)
    means = [x.mean() for x in theirs]
    np.testing.assert_allclose(means, [0.5, 0, 3, 4, 1.5, 499.5, 1], atol=0.25)
    assert abs(theirs[1].std() - 1) < 0.05
    plait_abi.detach("example-generator")
    blocks = loaded["example_generator_blocks"]
    ours = draws()
    assert loaded["example_generator_blocks"] == blocks
    assert all((a != b).any() for a, b in zip(theirs, ours, strict=True))


def test_what_is_no_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no file.*nowhere\.so"):
        plait_abi.load(str(tmp_path / "nowhere.so"))
    other = ctypes.CDLL(None)  # any library that exports no plait_plugin_v1
    assert not hasattr(other, "plait_plugin_v1")
    with pytest.raises(ValueError, match="no plug-in `stranger` is loaded"):
        plait_abi.detach("stranger")


@pytest.mark.parametrize(
    ("stem", "counter", "role"),
    [
        ("allocator", "example_allocator_blocks", "allocator"),
        ("executor", "example_executor_regions", "executor"),
    ],
)
def test_what_was_chosen_before_the_first_use_stays(stem: str, counter: str, role: str) -> None:
    """plait_core, which brings an allocator and an executor, is loaded after the plug-in."""
    library = str(compiled(EXAMPLES / f"{stem}.c"))
    code = f"""
        import ctypes, sys
        import plait, plait_abi
        plait_abi.load({library!r})
        assert "plait_core" not in sys.modules
        x = plait.ones(1 << 20)
        y = (x + x).sum()
        counted = ctypes.c_uint64.in_dll(ctypes.CDLL({library!r}), {counter!r}).value
        active = [r.provider for r in plait_abi.records() if r.name == {role!r} and r.active]
        print(counted > 0, active)
        plait_abi.detach("example-{stem}")
        print([r.provider for r in plait_abi.records() if r.name == {role!r} and r.active])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == f"True ['example-{stem}']\n['plait_core']\n"
