"""Roles of the kit: ours and the examples pass, and broken components fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plait_abi

HERE = Path(__file__).resolve().parent
PLUGINS = HERE.parent / "examples" / "plugins"
Kit = Callable[..., "subprocess.CompletedProcess[str]"]


def build(folder: Path, source: str, mistake: str | None = None) -> Path:
    """Compile an example, with a mistake in its table."""
    library = folder / f"{source}.so"
    file = PLUGINS / f"{source}.c" if mistake is None else HERE / "broken_component.c"
    flags = [f'-DSOURCE="{PLUGINS / source}.c"', f"-DBREAK={mistake}"] if mistake else []
    cc = os.environ.get("CC", "cc").split()
    packages = ("plait_abi", "plait_graph") if source == "compiler" else ("plait_abi",)
    flags += [f"-I{plait_abi.paths(package)['include']}" for package in packages]
    subprocess.run(
        [
            *(*cc, "-std=c11", "-O1", "-shared", "-fPIC", *flags),
            *(str(file), "-o", str(library), "-lpthread"),
        ],
        check=True,
    )
    return library


def run_kit(role: str, *options: str, modules: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run some of the kit's modules, or all of a role."""
    names = [f"plait_conformance.{module}" for module in modules] or ["plait_conformance"]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--role", role),
        *(*options, "--tb=line", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"),
        *("--pyargs", *names),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def failed(text: str) -> set[str]:
    """Names of the tests that failed, without their parameters."""
    return set(re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", text, flags=re.MULTILINE))


BESIDE_KERNELS = (
    *("test_device_streams", "test_device_copies", "test_device_memory", "test_allocator"),
    "test_device_sharing",
)


def test_the_pretend_device_passes(tmp_path: Path) -> None:
    options = ("--device", "ext", "--load", str(build(tmp_path, "device")))
    code, text = run_kit("device", *options, modules=BESIDE_KERNELS)
    assert code == 0 and "passed" in text, text


def test_operators_on_the_pretend_device(tmp_path: Path) -> None:
    """The first sample of each; ``nox -s conformance`` takes all of them."""
    options = ("--device", "ext", "--load", str(build(tmp_path, "device")), "-k-0]")
    code, text = run_kit("device", *options, modules=("test_device_kernels",))
    assert code == 0, text
    passed = re.search(r"(\d+) passed", text)
    assert passed and int(passed[1]) > 1500, text
    assert "missing" not in text


@pytest.mark.parametrize(
    ("mistake", "caught"),
    [
        ("broken_device.copy = copy_nothing", "test_there_and_back"),
        ("broken_device.copy = copy_elsewhere", "test_a_copy_to_the_host_waits_for_its_stream"),
        ("broken_device.event_wait = wait_nothing", "test_what_is_waited_for_is_done"),
        ("broken_device.event_query = always_reached", "test_what_is_waited_for_is_done"),
        ("broken_device.stream_query = always_done", "test_what_is_waited_for_is_done"),
        ("broken_device.synchronize = synchronize_nothing", "test_what_is_waited_for_is_done"),
        (
            "broken_device.stream_synchronize = stream_synchronize_nothing",
            "test_what_is_waited_for_is_done",
        ),
        ("broken_device.stream_wait = stream_wait_nothing", "test_a_stream_waits_for_another"),
        (
            "broken_device.take_error = no_error",
            "test_whoever_waits_is_told_the_error",
        ),
        ("broken_device.take_error = nameless_error", "test_whoever_waits_is_told_the_error"),
        (
            "broken_allocator.record_use = NULL",
            "test_memory_is_not_given_out_while_another_stream_uses_it",
        ),
        ("broken_allocator.alloc = misaligned", "test_blocks_are_aligned"),
        ("broken_device.share = share_the_first", "test_another_process_reads_and_writes_it"),
        ("broken_device.share_open = open_a_copy", "test_another_process_reads_and_writes_it"),
    ],
)
def test_a_broken_device_fails(tmp_path: Path, mistake: str, caught: str) -> None:
    library = build(tmp_path, "device", mistake)
    options = ("--device", "ext", "--load", str(library), "-k", caught)
    code, text = run_kit("device", *options, modules=BESIDE_KERNELS)
    assert code == 1 and caught in failed(text), text


def test_a_device_whose_kernels_do_nothing_fails(tmp_path: Path) -> None:
    library = build(tmp_path, "device", "broken_kernel = compute_nothing")
    options = ("--device", "ext", "--load", str(library), "--operators", "add,mm")
    code, text = run_kit("device", *options, modules=("test_device_kernels",))
    assert code == 1, text
    assert failed(text) >= {"test_what_the_runtime_calls", "test_values", "test_out"}, text


@pytest.mark.parametrize("role", ["allocator", "compiler", "executor"])
def test_our_components_and_the_examples_pass(tmp_path: Path, role: str) -> None:
    for options in ((), ("--load", str(build(tmp_path, role)), "--provider", f"example-{role}")):
        code, text = run_kit(role, *options)
        assert code == 0 and "passed" in text, text


@pytest.mark.parametrize(
    ("role", "mistake", "caught"),
    [
        ("allocator", "broken_allocator.alloc = misaligned", "test_blocks_are_aligned"),
        (
            "allocator",
            "broken_allocator.alloc = overlapping; broken_allocator.free = keep",
            "test_blocks_are_apart_and_keep_what_is_written",
        ),
        ("allocator", "broken_allocator.alloc = one", "test_out_of_memory_is_a_status"),
        ("allocator", "broken_allocator.stats = count_nothing", "test_statistics_add_up"),
        ("compiler", "broken_compiler.run = run_twice", "test_results"),
        (
            "compiler",
            "broken_compiler.run = return_input",
            "test_inputs_of_other_shapes_are_refused",
        ),
        ("executor", "broken_executor.parallel = skip_last", "test_every_index_is_called_once"),
        ("executor", "broken_executor.parallel = repeat_first", "test_every_index_is_called_once"),
        ("executor", "broken_executor.width = same_width", "test_nested_calls_run_in_their_caller"),
    ],
)
def test_a_broken_one_fails(tmp_path: Path, role: str, mistake: str, caught: str) -> None:
    code, text = run_kit(role, "--load", str(build(tmp_path, role, mistake)), "-k", caught)
    assert code == 1 and caught in failed(text), text


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    code, text = run_kit("device")
    assert code != 0 and "there is no device" in text and "--load" in text
    code, text = run_kit("executor", "--provider", "nobody")
    assert code != 0 and "nobody" in text


def test_operators_without_a_kernel_are_listed(tmp_path: Path) -> None:
    mistake = "broken_kernel = decline_products"
    library = build(tmp_path, "device", mistake)
    options = ("--device", "ext", "--load", str(library), "--operators", "add,mm", "-rs")
    code, text = run_kit("device", *options, modules=("test_device_kernels",))
    assert code == 0, text
    assert re.search(r"1 operators are missing on ext:0 =+\nmm\n", text), text
    assert "declined dtypes" not in text


def test_dtypes_without_a_kernel_are_listed(tmp_path: Path) -> None:
    library = build(tmp_path, "device", "broken_kernel = decline_double")
    options = ("--device", "ext", "--load", str(library), "--operators", "exp,cast")
    code, text = run_kit("device", *options, modules=("test_device_kernels",))
    assert code == 0, text
    assert "missing on" not in text
    listed = re.search(r"\d operators declined dtypes on ext:0 =+\n((?:\w+: .*\n)+)", text)
    assert listed and "\nexp: float64 -> float64\n" in "\n" + listed[1], text
    assert re.search(r"^cast: .*float32 -> float64", listed[1], re.MULTILINE), text
