"""What the profiler sees of the device: rows by CUPTI's clock, and by pairs of events."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from emulation_control import LIBRARY, Emulation, run_program

import plait_core as pc
from plait_profiler import Kind, profile

cuda = pc.cuda
CUPTI = ctypes.CDLL(str(LIBRARY.parent / "libcupti.so.13"))
CUPTI.plait_cupti_records.restype = CUPTI.plait_cupti_buffers.restype = ctypes.c_int64
SOURCES = pathlib.Path(__file__).resolve().parents[1] / "cpp"


@pytest.fixture(params=["cupti", "events"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Choose each clock of the rows in turn, and return its name."""
    name = str(request.param)
    monkeypatch.setenv("PLAIT_CUDA_CUPTI", str(int(name == "cupti")))
    return name


class Rows:
    """The device's rows of a profile, by their begin."""

    def __init__(self, prof: profile) -> None:
        self.recording = prof.recording()
        rows = self.recording.rows
        self.rows = np.sort(rows[rows["kind"] == Kind.DEVICE], order="start")
        self.names = [self.recording.signatures[each].name for each in self.rows["signature"]]
        self.streams = (self.rows["b"] & 0xFFFF).tolist()
        self.waits = (self.rows["b"] >> 16).tolist()
        self.ends = self.rows["start"] + self.rows["duration"]

    def operators(self) -> list[str]:
        """Return the names of the operators that the rows belong to; "" for none."""
        calls = self.recording.rows[self.recording.rows["kind"] == Kind.OP]
        names = {0: ""}
        for call in calls[calls["a"] != 0][::-1]:
            names[int(call["a"])] = self.recording.signatures[call["signature"]].name
        return [names[int(each)] for each in self.rows["a"]]


def test_a_kernel_is_a_row_with_its_times_and_its_operator(
    emulation: Emulation, clock: str
) -> None:
    x = pc.ones(1000, device="cuda")
    cuda.synchronize()
    emulation.set("delay_us", 500_000)
    with profile() as prof:
        y = (x * 2).exp()
        cuda.synchronize()
    seen = Rows(prof)
    assert ["mul" in seen.names[0], "exp" in seen.names[1]] == [True, True] and len(seen.names) == 2
    assert seen.operators() == ["mul", "exp"]
    assert (seen.rows["duration"] >= 500_000_000).all()
    assert seen.rows["start"][1] + 1_000_000 >= seen.ends[0]  # nanoseconds
    # the second one was put into the stream while the first one ran
    assert seen.waits[1] > 200_000_000 and seen.waits[0] < 200_000_000
    if clock == "cupti":  # the host sees an event as late as its thread is scheduled
        begin, end = seen.recording.begin, seen.recording.end
        assert begin <= seen.rows["start"][0] + 10_000 and seen.ends[1] <= end + 10_000
    assert float(y.cpu()[0]) == pytest.approx(7.389, abs=1e-3)


def test_each_clock_is_used_where_it_is_chosen(clock: str) -> None:
    x = pc.ones(10, device="cuda")
    before = CUPTI.plait_cupti_records()
    with profile() as prof:
        x.add_(1)
    assert len(Rows(prof).names) == 1
    assert (CUPTI.plait_cupti_records() > before) == (clock == "cupti")
    before = CUPTI.plait_cupti_records()
    x.add_(1)
    cuda.synchronize()
    assert CUPTI.plait_cupti_records() == before  # nothing is recorded any more
    with profile() as prof:
        x.mul_(2)
    assert Rows(prof).operators() == ["mul_"]


def test_copies_and_fills(clock: str) -> None:
    host = pc.arange(1000.0).pin_memory()
    with profile() as prof:
        x = host.to("cuda")
        y = x.clone()
        z = pc.zeros(500, device="cuda")
        z.copy_(y[:500])
        back = y.cpu()
    assert np.array_equal(back.numpy(), host.numpy())
    names = Rows(prof).names
    assert names.count("copy") >= 2, names
    assert all("copy" in name or "fill" in name for name in names), names


def test_streams_have_numbers_and_the_default_one_has_none(
    emulation: Emulation, clock: str
) -> None:
    x = pc.ones(100, device="cuda")
    streams = [cuda.Stream(), cuda.Stream()]
    cuda.synchronize()
    emulation.set("delay_us", 2000)
    with profile() as prof:
        x + 1
        for _ in range(2):
            for stream in streams:
                with cuda.stream(stream):
                    x * 2
        cuda.synchronize()
    seen = Rows(prof)
    of_sums = {s for s, name in zip(seen.streams, seen.operators(), strict=True) if name == "add"}
    of_products = [s for s, n in zip(seen.streams, seen.operators(), strict=True) if n == "mul"]
    assert of_sums == {0}
    assert sorted(of_products.count(s) for s in set(of_products)) == [2, 2] and 0 not in of_products


def test_rows_of_a_graph(clock: str) -> None:
    x = pc.ones(1000, device="cuda")
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = (x * 2 + 1).exp()
    with profile() as prof:
        graph.replay()  # no operator is called
        cuda.synchronize()
    names = Rows(prof).names
    if clock == "events":
        assert names == ["graph"]
    else:  # CUPTI sees the kernels
        expected = ["mul", "add", "exp"]
        assert [key for name in names for key in expected if key in name] == expected, names
    assert float(y.cpu()[0]) == pytest.approx(20.0855, abs=1e-3)


def test_a_product_by_the_library_belongs_to_its_operator(clock: str) -> None:
    a, b = pc.rand(30, 40, device="cuda"), pc.rand(40, 50, device="cuda")
    cuda.synchronize()
    with profile() as prof:
        a @ b
        cuda.synchronize()
    seen = Rows(prof)
    assert set(seen.operators()) == {"mm"}
    if clock == "events":
        assert seen.names == ["cublasLtMatmul"]


def test_many_rows_fill_many_buffers() -> None:
    x = pc.ones(10, device="cuda")
    with profile() as prof:
        for _ in range(500):
            x.add_(1)
    assert Rows(prof).operators() == ["add_"] * 500
    assert CUPTI.plait_cupti_buffers() == 0  # all came back


def test_events_serve_where_cupti_refuses(emulation: Emulation) -> None:
    x = pc.ones(10, device="cuda")
    CUPTI.plait_cupti_refuse(ctypes.c_int64(1))
    try:
        before = CUPTI.plait_cupti_records()
        with profile() as prof:
            x.add_(1)
        assert Rows(prof).operators() == ["add_"]
        assert CUPTI.plait_cupti_records() == before
    finally:
        CUPTI.plait_cupti_refuse(ctypes.c_int64(0))


def test_a_training_step_has_the_same_operators_by_both_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from plait import nn, optim

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).cuda()
    optimizer = optim.Adam(model.parameters())
    x, t = pc.rand(4, 1, 8, 8).cuda(), pc.tensor([0, 1, 2, 3]).cuda()

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), t).backward()
        optimizer.step()

    step()  # the optimizer makes its state
    seen: dict[str, Any] = {}
    for choice in ("0", "1"):
        monkeypatch.setenv("PLAIT_CUDA_CUPTI", choice)
        with profile() as prof:
            step()
        seen[choice] = set(Rows(prof).operators())
    assert seen["0"] == seen["1"] and len(seen["0"]) > 8, seen


@pytest.mark.parametrize("choice", ["0", "1"])
def test_two_devices(choice: str) -> None:
    run_program(
        """
        from plait.profiler import Kind, profile
        x, y = plait.ones(10, device="cuda:0"), plait.ones(1000, device="cuda:1")
        plait.cuda.synchronize(0), plait.cuda.synchronize(1)
        with profile() as prof:
            x.add_(1)
            y.mul_(2)
            z = y.to("cuda:0")
        plait.cuda.synchronize(0)
        recording = prof.recording()
        rows = recording.rows[recording.rows["kind"] == Kind.DEVICE]
        name = [recording.signatures[each].name for each in rows["signature"]]
        devices = {n: d & 255 for n, d in zip(name, rows["device"].tolist())}
        assert sorted(devices.values())[:1] == [0] and len(devices) == 3, devices
        assert [d for n, d in devices.items() if "add" in n] == [0], devices
        assert [d for n, d in devices.items() if "mul" in n] == [1], devices
        assert "copy" in devices and float(z.cpu()[0]) == 2
        """,
        PLAIT_CUDA_DEVICES="2",
        PLAIT_CUDA_CUPTI=choice,
    )


@pytest.mark.parametrize("choice", ["0", "1"])
def test_a_device_that_is_lost_while_it_is_measured(choice: str) -> None:
    run_program(
        """
        from plait.profiler import profile
        x = plait.ones(10, device="cuda")
        plait.cuda.synchronize()
        emulation.set("lost_in", 2)
        def work():
            with profile():
                for _ in range(5):
                    x.add_(1)
                plait.cuda.synchronize()
        refused(RuntimeError, work, "cuda")
        """,
        PLAIT_CUDA_CUPTI=choice,
    )


def header_folders() -> list[pathlib.Path]:
    """Return the folders of CUPTI's header and of the driver's; none if one is not installed."""
    nvidia = [pathlib.Path(folder) / "nvidia" / "cu13" / "include" for folder in sys.path]
    places = [*nvidia, pathlib.Path("/usr/local/cuda/include")]
    found = [
        next((place for place in places if (place / name).is_file()), None)
        for name in ("cupti_activity.h", "cuda.h")
    ]
    return [place for place in found if place] if all(found) else []


FIELDS = {
    "KernelRecord": (
        "CUpti_ActivityKernel10",
        "kind start=begin end deviceId=device streamId=stream correlationId=correlation name",
    ),
    "MemoryRecord": (
        "CUpti_ActivityMemcpy6",
        "kind bytes start=begin end deviceId=device streamId=stream correlationId=correlation",
    ),
    "PeerCopyRecord": (
        "CUpti_ActivityMemcpyPtoP4",
        "kind bytes start=begin end deviceId=device streamId=stream correlationId=correlation",
    ),
    "ExternalRecord": (
        "CUpti_ActivityExternalCorrelation",
        "kind externalKind=whose externalId=number correlationId=correlation",
    ),
}
NUMBERS = {
    "kCopy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "kFill": "CUPTI_ACTIVITY_KIND_MEMSET",
    "kDriverCall": "CUPTI_ACTIVITY_KIND_DRIVER",
    "kRuntimeCall": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "kKernel": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "kPeerCopy": "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "kExternal": "CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION",
    "kCustom2": "CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2",
    "kLimitReached": "CUPTI_ERROR_MAX_LIMIT_REACHED",
}


@pytest.mark.skipif(not header_folders(), reason="nvidia-cuda-cupti or cuda.h is not installed")
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_records_lie_as_in_the_header_of_cupti(tmp_path: pathlib.Path) -> None:
    lines = ["#include <cupti.h>", '#include "host/cupti_types.h"', "#include <cstddef>"]
    lines.append("namespace own = plait::cuda::cupti;")
    records = {**FIELDS, "MemoryRecord ": ("CUpti_ActivityMemset4", FIELDS["MemoryRecord"][1])}
    for own, (theirs, names) in records.items():
        for name in names.split():
            field, _, ours = name.partition("=")
            offsets = (
                f"offsetof({theirs}, {field}) == offsetof(own::{own.strip()}, {ours or field})"
            )
            lines.append(f'static_assert({offsets}, "{theirs}.{field}");')
    lines += [f"static_assert(int(own::{own}) == int({name}));" for own, name in NUMBERS.items()]
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n")
    folders = [f"-I{folder}" for folder in [SOURCES, *header_folders()]]
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", *folders, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
