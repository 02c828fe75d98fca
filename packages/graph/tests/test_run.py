"""plait/run.h and plait-run: what is loaded, set, run, trained and saved without Python."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import export, load

HERE = Path(__file__).parent
ALLOCATIONS = [HERE / "programs" / f"{name}.cpp" for name in ("allocations", "count_allocations")]
Save = Callable[..., Path]
Load = Callable[[Path], tuple[dict[str, str], dict[str, Any]]]

_spec = importlib.util.spec_from_file_location("c_interface", HERE / "c_interface.py")
assert _spec and _spec.loader
c = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(c)

# A training graph: w -= lr * (w - x), and y = x * w + step.
TRAINING: dict[str, Any] = {
    "plait_graph": 1,
    "inputs": [{"name": "x", "dtype": "float32", "shape": [3]}],
    "weights": [{"name": "w", "dtype": "float32", "shape": [3]}],
    "numbers": [
        {"name": "lr", "value": 0.5, "step": 0.0},
        {"name": "step", "value": 1, "step": 1},
    ],
    "nodes": [
        {"op": "mul", "in": ["%x", "%w"], "out": ["%product"]},
        {"op": "add", "in": ["%product", "%step", 1], "out": ["%y"]},
        {"op": "sub", "in": ["%w", "%x", 1], "out": ["%gradient"]},
        {"op": "mul", "in": ["%gradient", "%lr"], "out": ["%change"]},
        {"op": "sub", "form": "inplace", "in": ["%w", "%change", 1], "out": ["%w"]},
    ],
    "outputs": ["%y"],
}
W = np.array([1, 2, 3], np.float32)


class Network:
    """A network of three layers, a batch, and a step of its training."""

    def __init__(self) -> None:
        pc.manual_seed(3)
        layers = [nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 4)]
        self.model = nn.Sequential(*layers)
        self.x, self.target = pc.randn(16, 6), pc.randn(16, 4)
        self.optimizer = optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, x: Any, target: Any) -> Any:
        self.optimizer.zero_grad()
        loss = ((self.model(x) - target) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    return c.load(plait_abi.paths("plait_graph")["libplait_run.so"])


@pytest.fixture
def training_file(tmp_path: Path, save_tensors: Save) -> Path:
    path = tmp_path / "training.safetensors"
    return save_tensors(path, {"plait_graph": json.dumps(TRAINING), "author": "me"}, {"w": W})


@pytest.fixture
def run(library: ctypes.CDLL, libraries: str, training_file: Path) -> Any:
    result = c.Run(library, str(training_file), libraries)
    yield result
    result.close()


@pytest.fixture
def command(plait_run: Path, libraries: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that calls plait-run."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [plait_run, "--libraries", libraries, *map(str, arguments)]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    return call


def floats(data: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(data[2], np.float32).reshape(data[1])


def bytes_of(values: Any) -> bytes:
    return np.asarray(values, np.float32).tobytes()


# Without Python


def test_a_program_in_c99(
    compiled: Callable[..., Path], libraries: str, training_file: Path
) -> None:
    program = compiled("inference", HERE / "programs" / "inference.c", standard="c99")
    done = subprocess.run([program, training_file, libraries], capture_output=True, text=True)
    assert done.stderr == ""
    assert [float(line) for line in done.stdout.split()] == [1.0, 3.0, 7.0]
    done = subprocess.run([program, "missing"], capture_output=True, text=True)
    assert done.stderr == (
        "error -1: missing: the file cannot be opened (No such file or directory)\n"
    )


def test_nothing_is_allocated_after_the_first_runs(
    compiled: Callable[..., Path], libraries: str, training_file: Path
) -> None:
    if "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", ""):
        pytest.skip("the sanitizer has malloc")
    program = compiled("allocations", *ALLOCATIONS)
    done = subprocess.run([program, training_file, libraries], capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", "0 1\n")


def test_nothing_is_allocated_by_a_step_of_an_optimizer(
    compiled: Callable[..., Path], libraries: str, tmp_path: Path
) -> None:
    """With operators that take lists, indices, random numbers, and many parameters."""
    if "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", ""):
        pytest.skip("the sanitizer has malloc")
    table, wide = nn.Embedding(10, 8), nn.Linear(16, 5000)
    last = nn.Sequential(nn.Dropout(0.5), nn.Linear(5000, 2), nn.LayerNorm(2))
    parameters = [*table.parameters(), *wide.parameters(), *last.parameters()]
    optimizer = optim.AdamW(parameters, lr=0.01, amsgrad=True)

    def step(rows: Any) -> Any:
        optimizer.zero_grad()
        words = table(rows)
        both = pc.cat([words, words[pc.tensor([1, 0, 1])].relu()], 1)
        loss = nn.functional.cross_entropy(last(wide(both + pc.rand(16))), rows.clamp(max=1))
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return loss

    path = tmp_path / "step.safetensors"
    export(step, (pc.tensor([1, 2, 3]),), path, training=True)
    program = compiled("allocations", *ALLOCATIONS)
    for threads in ("1", "2"):
        command = [program, path, libraries, threads]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.stderr, done.stdout) == ("", "0 1\n"), threads


@pytest.mark.parametrize("options", [(), ("--map",), ("--threads", "1")])
def test_inference_as_in_python(
    network: Network, command: Any, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "f.safetensors"
    export(network.model, (network.x,), path)
    with autograd.no_grad():
        result = network.model(network.x)
    np.save(tmp_path / "x.npy", network.x.numpy())
    done = command(path, tmp_path / "x.npy", "-o", tmp_path / "y.npy", *options)
    assert done.stderr == ""
    # Python has a library for products, which the program was not given
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), result.numpy(), rtol=1e-5, atol=1e-6)


def test_training_as_in_python(
    network: Network, command: Any, tmp_path: Path, load_tensors: Load
) -> None:
    path, saved = tmp_path / "f.safetensors", tmp_path / "trained.safetensors"
    export(network.step, (network.x, network.target), path, training=True)
    losses = [float(network.step(network.x, network.target)) for _ in range(5)]
    inputs = (tmp_path / "x.npy", tmp_path / "t.npy")
    np.save(inputs[0], network.x.numpy())
    np.save(inputs[1], network.target.numpy())
    assert command(path, *inputs, "-n", 3, "--save", saved).stderr == ""
    done = command(saved, *inputs, "-n", 2, "--save", saved, "-o", tmp_path / "loss.npy")
    assert done.stderr == ""
    np.testing.assert_allclose(np.load(tmp_path / "loss.npy"), losses[-1], rtol=1e-5)
    assert losses[-1] < losses[0]
    _, arrays = load_tensors(saved)
    state = network.model.state_dict()
    assert len(arrays) == 3 * len(state)  # Adam has two tensors for each parameter
    assert set(state) < set(arrays)
    for name, parameter in state.items():
        np.testing.assert_allclose(arrays[name], parameter.numpy(), rtol=1e-4, atol=1e-6)


def test_training_has_the_bits_of_the_file_loaded_in_python(
    library: ctypes.CDLL, libraries: str, tmp_path: Path
) -> None:
    """12 steps of AdamW with clipping: every loss, and the files of the state, by their bytes."""
    pc.manual_seed(0)
    layers = [nn.Linear(6, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 4)]
    model = nn.Sequential(*layers)
    optimizer = optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    batches = [(pc.randn(16, 6), pc.randint(0, 4, (16,))) for _ in range(12)]
    path = tmp_path / "step.safetensors"
    export(step, batches[0], path, training=True)
    loaded, run = load(path), c.Run(library, str(path), libraries)
    for batch in batches:
        for i, tensor in enumerate(batch):
            run.set(c.INPUT, i, tensor.numpy().tobytes())
        run.execute()
        expected = step(*batch).detach().numpy().tobytes()
        assert loaded(*batch).numpy().tobytes() == expected
        assert run.read(c.OUTPUT, 0)[2] == expected
    run.save(str(tmp_path / "c"))
    run.close()
    loaded.save(tmp_path / "python")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "python").read_bytes()
    for name, parameter in model.named_parameters():
        assert loaded.weights[name].numpy().tobytes() == parameter.detach().numpy().tobytes()


def test_the_command_describes_a_graph(command: Any, training_file: Path) -> None:
    done = command(training_file)
    assert done.stderr == ""
    assert done.stdout.splitlines()[:5] == [
        "input x: float32[3]",
        "output y: float32[3]",
        "number lr: 0.5",
        "number step: 1",
        "1 weights: 12 bytes; all tensors of a run: at most "
        + done.stdout.rpartition("at most ")[2].rstrip(),
    ]


def test_the_command_sets_numbers_and_weights(
    command: Any, training_file: Path, tmp_path: Path, load_tensors: Load
) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 1, 1], np.float32))
    np.save(tmp_path / "w.npy", np.array([5, 5, 5], np.float32))
    options = ("--number", "lr=1", "--weight", f"w={tmp_path / 'w.npy'}")
    done = command(training_file, f"x={tmp_path / 'x.npy'}", *options, "--save", training_file)
    assert (done.stdout, done.stderr) == ("y: float32[3] = 6 6 6\n", "")
    texts, arrays = load_tensors(training_file)
    assert arrays["w"].tolist() == [1, 1, 1]
    assert texts["author"] == "me"
    assert json.loads(texts["plait_graph"])["numbers"] == [
        {"name": "lr", "value": 1.0, "step": 0.0},
        {"name": "step", "value": 2, "step": 1},
    ]


def test_errors_of_the_command(command: Any, training_file: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        done = command(*arguments)
        assert done.returncode == 1
        assert done.stdout == ""
        return str(done.stderr).removeprefix("plait-run: ").rstrip("\n")

    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    assert error() == "a file is required"
    assert error(training_file, "--n") == "--n: a value is required"
    assert error(training_file, "-n", "x") == "-n: a whole number is required, got x"
    assert error(training_file, "--number", "a=1") == "the graph has no number a"
    assert "float32[4]; x is float32[3]" in error(training_file, tmp_path / "x.npy")
    assert error(training_file, tmp_path / "bad.npy").endswith("bad.npy: is cut off")
    assert "dtype |O" in error(training_file, tmp_path / "o.npy")


def test_a_memory_limit(command: Any, tmp_path: Path, save_tensors: Save) -> None:
    nodes = [
        {"op": "expand", "in": ["%x", [1000, 1000]], "out": ["%wide"]},
        {"op": "exp", "in": ["%wide"], "out": ["%large"]},
        {"op": "sum", "in": ["%large", [0], False, None], "out": ["%y"]},
    ]
    inputs = [{"name": "x", "dtype": "float32", "shape": [1000]}]
    graph = {"plait_graph": 1, "inputs": inputs, "weights": [], "nodes": nodes, "outputs": ["%y"]}
    path = save_tensors(tmp_path / "f.safetensors", {"plait_graph": json.dumps(graph)}, {})
    np.save(tmp_path / "x.npy", np.zeros(1000, np.float32))
    done = command(path, tmp_path / "x.npy", "--memory", 8_000_000, "--threads", 1)
    assert (done.returncode, done.stderr) == (0, "")
    done = command(path, tmp_path / "x.npy", "--memory", 1_000_000, "--threads", 1)
    assert done.returncode == 1
    assert "it needs 4004000 bytes beside weights and inputs; the memory limit is 1000000" in (
        done.stderr
    )


def test_a_memory_limit_counts_what_kernels_take(
    command: Any, library: ctypes.CDLL, libraries: str, tmp_path: Path
) -> None:
    """The weights in the layout that the kernel reads, and its scratch memory."""
    path, x = tmp_path / "f.safetensors", pc.randn(64, 512)
    export(nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)), (x,), path)
    np.save(tmp_path / "x.npy", x.numpy())
    run = c.Run(library, str(path), libraries)
    told = run.memory()
    run.close()
    assert told > 4 * 512 * 512 * 4  # each weight twice
    done = command(path, tmp_path / "x.npy", "-n", 3, "--memory", told, "--threads", 1)
    assert (done.returncode, done.stderr) == (0, "")
    done = command(path, tmp_path / "x.npy", "--memory", told - 1_000_000, "--threads", 1)
    assert (done.returncode, done.stdout) == (1, "")
    assert "bytes beside weights and inputs; the memory limit is" in done.stderr


def test_to_ask_for_the_memory_changes_nothing(
    library: ctypes.CDLL, libraries: str, tmp_path: Path, network: Network
) -> None:
    """Before and between steps of training, the steps are those without the question."""
    path = tmp_path / "f.safetensors"
    export(network.step, (network.x, network.target), path, training=True)
    results = []
    for asks in (False, True):
        run = c.Run(library, str(path), libraries)
        for i, t in enumerate((network.x, network.target)):
            run.set(c.INPUT, i, t.numpy().tobytes())
        result = []
        for _ in range(3):
            if asks:
                assert run.memory() > 0
            run.execute()
            if asks:
                assert run.memory() > 0
            result.append(run.read(c.OUTPUT, 0))
            result += [run.read(c.WEIGHT, i) for i in range(run.count(c.WEIGHT))]
            result += [run.number(i) for i in range(run.count(c.NUMBER))]
        results.append(result)
        run.close()
    assert results[0] == results[1]


def test_missing_libraries_are_named(plait_run: Path, training_file: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [plait_run, training_file, "--libraries", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (
        f"libplait_abi.so is not there; looked in {tmp_path}, and in plait_abi/lib" in done.stderr
    )


def test_libraries_in_one_folder(
    plait_run: Path, training_file: Path, tmp_path: Path, libraries: str
) -> None:
    for folder in libraries.split(":"):
        for path in Path(folder).glob("*.so"):
            (tmp_path / path.name).symlink_to(path)
    done = subprocess.run(
        [plait_run, training_file, "--libraries", tmp_path], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_graph_on_another_device(
    plait_run: Path, libraries: str, tmp_path: Path, save_tensors: Save, load_tensors: Load
) -> None:
    try:
        folder = plait_abi.paths("plait_cuda")["lib"]
    except ModuleNotFoundError:
        pytest.skip("plait-cuda is not installed")
    graph = json.loads(json.dumps(TRAINING))
    for value in (*graph["inputs"], *graph["weights"]):
        value["device"] = "cuda:0"
    path = tmp_path / "f.safetensors"
    save_tensors(path, {"plait_graph": json.dumps(graph)}, {"w": W})
    np.save(tmp_path / "x.npy", np.ones(3, np.float32))
    words = [plait_run, path, tmp_path / "x.npy", "--libraries", f"{libraries}:{folder}"]
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "1"}
    done = subprocess.run(
        [*words, "--save", path], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (done.stdout, done.stderr) == ("y: float32[3] = 2 3 4\n", "")
    assert load_tensors(path)[1]["w"].tolist() == [1, 1.5, 2]


# The functions


def test_entries_are_counted_and_found(run: Any) -> None:
    assert [run.count(kind) for kind in (c.INPUT, c.OUTPUT, c.WEIGHT, c.NUMBER, 0, 5)] == [
        *(1, 1, 1, 2),
        *(0, 0),
    ]
    assert run.find(c.NUMBER, "step") == 1
    assert run.find(c.INPUT, "w") == -1
    assert run.find(9, "x") == -1
    x, y, w = run.get(c.INPUT, 0), run.get(c.OUTPUT, 0), run.get(c.WEIGHT, 0)
    for tensor, name in ((x, b"x"), (y, b"y"), (w, b"w")):
        assert (tensor.name, tensor.dtype, tensor.ndim) == (name, b"float32", 1)
        assert (tensor.shape[0], tensor.strides[0], tensor.item_size, tensor.nbytes) == (
            3,
            1,
            4,
            12,
        )
    assert (x.data, y.data) == (None, None)
    assert run.read(c.WEIGHT, 0) == ("float32", (3,), W.tobytes())
    assert run.get(c.NUMBER, 0).name == b"lr"
    assert run.memory() >= 36


@pytest.mark.parametrize("dynamic", [None, {0: {0: "n"}}], ids=["fixed", "free size"])
def test_the_seed_is_a_number(
    library: ctypes.CDLL, libraries: str, command: Any, tmp_path: Path, dynamic: Any
) -> None:
    path, x = tmp_path / "dropout.safetensors", pc.ones(6, 5)
    export(lambda x: nn.functional.dropout(x, 0.5) + pc.rand(5), (x,), path, dynamic=dynamic)
    pc.manual_seed(7)
    in_python = load(path)
    expected = [in_python(x).numpy() for _ in range(2)]
    run = c.Run(library, str(path), libraries)
    seed = run.find(c.NUMBER, "generator.seed")
    assert seed == run.count(c.NUMBER) - 1 == (dynamic is not None)
    assert run.get(c.NUMBER, seed).name == b"generator.seed"
    run.set(c.INPUT, 0, x.numpy().tobytes())
    for _ in range(2):
        run.set_number(seed, 7)
        assert run.number(seed) == 7
        for each in expected:
            run.execute()
            assert np.array_equal(floats(run.read(c.OUTPUT, 0)), each)
    with pytest.raises(c.RunError, match=r'"generator\.seed" must not be negative, got -1'):
        run.set_number(seed, -1)
    with pytest.raises(c.RunError, match=r'"generator\.seed" is an integer, got 0\.5'):
        run.set_number(seed, 0.5)
    run.save(str(path))
    run.close()
    assert "generator.seed" not in path.read_bytes().decode(errors="replace")
    np.save(tmp_path / "x.npy", x.numpy())
    words = path, tmp_path / "x.npy", "-o", tmp_path / "y.npy", "--number", "generator.seed=7"
    assert command(*words).stderr == ""
    assert np.array_equal(np.load(tmp_path / "y.npy"), expected[0])


def test_a_graph_that_does_not_draw_has_no_seed(run: Any) -> None:
    assert run.find(c.NUMBER, "generator.seed") == -1 and run.count(c.NUMBER) == 2


def test_steps_and_numbers(run: Any) -> None:
    run.set(c.INPUT, 0, bytes_of([1, 1, 1]))
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [2, 3, 4]
    assert floats(run.read(c.WEIGHT, 0)).tolist() == [1, 1.5, 2]
    assert (run.number(0), run.number(1)) == (0.5, 2.0)
    run.set_number(0, 1)
    run.set_number(1, 10)
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [11, 11.5, 12]
    assert floats(run.read(c.WEIGHT, 0)).tolist() == [1, 1, 1]
    run.set(c.WEIGHT, 0, bytes_of([7, 7, 7]))
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [18, 18, 18]


def test_a_borrowed_input_is_read_at_each_run(run: Any) -> None:
    x = np.zeros(3, np.float32)
    run.set(c.INPUT, 0, x.ctypes.data, x.nbytes, c.BORROW)
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [1, 1, 1]
    x[:] = 2
    run.set_number(1, 0)
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [1, 2, 3]
    run.set(c.INPUT, 0, bytes(12))  # a copy again
    x[:] = 9
    run.set_number(1, 0)
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [0, 0, 0]


def test_a_graph_cannot_write_to_a_borrowed_input(
    library: ctypes.CDLL, libraries: str, tmp_path: Path, save_tensors: Save
) -> None:
    node = {"op": "add", "form": "inplace", "in": ["%x", 1, 1], "out": ["%x"]}
    graph = TRAINING | {"weights": [], "numbers": [], "nodes": [node], "outputs": ["%x"]}
    path = save_tensors(tmp_path / "f.safetensors", {"plait_graph": json.dumps(graph)}, {})
    run = c.Run(library, str(path), libraries)
    x = np.zeros(3, np.float32)
    run.set(c.INPUT, 0, x.ctypes.data, x.nbytes, c.BORROW)
    with pytest.raises(c.RunError, match="read-only"):
        run.execute()
    assert x.tolist() == [0, 0, 0]
    run.set(c.INPUT, 0, bytes(12))
    run.execute()
    assert floats(run.read(c.OUTPUT, 0)).tolist() == [1, 1, 1]
    run.close()


def test_an_input_that_is_not_dense(
    library: ctypes.CDLL, libraries: str, tmp_path: Path, save_tensors: Save
) -> None:
    inputs = [{"name": "x", "dtype": "float32", "shape": [2, 3], "strides": [1, 2]}]
    node = {"op": "mul", "in": ["%x", 1], "out": ["%y"]}
    more = {"inputs": inputs, "weights": [], "numbers": [], "nodes": [node], "outputs": ["%y"]}
    text = json.dumps(TRAINING | more)
    path = save_tensors(tmp_path / "f.safetensors", {"plait_graph": text}, {})
    run = c.Run(library, str(path), libraries)
    run.set(c.INPUT, 0, bytes_of(range(6)))  # in C order, whatever the strides are
    run.execute()
    y = run.get(c.OUTPUT, 0)
    elements = np.frombuffer(ctypes.string_at(y.data, 24), np.float32)
    strides = [4 * n for n in y.strides[:2]]
    view = np.lib.stride_tricks.as_strided(elements, (2, 3), strides)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(c.RunError, match="is not dense in memory of the host"):
        run.set(c.INPUT, 0, np.zeros(6, np.float32).ctypes.data, 24, c.BORROW)
    run.close()


def test_errors_name_the_argument(run: Any, library: ctypes.CDLL) -> None:
    def check(code: int, text: str, function: Callable[..., Any], *arguments: Any) -> None:
        with pytest.raises(c.RunError) as error:
            function(*arguments)
        assert (error.value.code, str(error.value)) == (code, text)

    check(-4, 'plait_run_execute: the input "x" was not set', run.execute)
    size = 'plait_run_set: the input "x" is float32 of shape (3,), which has 12 bytes; got 11'
    check(-2, size, run.set, c.INPUT, 0, bytes(11))
    null = 'plait_run_set: the input "x": `data` must not be NULL'
    check(-4, null, run.set, c.INPUT, 0, None, 12)
    check(-5, "plait_run_get: there is no output 1; the graph has 1", run.get, c.OUTPUT, 1)
    check(-4, "plait_run_get: there is no kind 9", run.get, 9, 0)
    kind = "plait_run_set: an output cannot be set"
    check(-4, kind, run.set, c.OUTPUT, 0, bytes(12))
    flags = "plait_run_set: unknown flags, or a weight or number that is borrowed"
    check(-4, flags, run.set, c.WEIGHT, 0, bytes(12), 12, c.BORROW)
    aligned = 'plait_run_set: the input "x" is borrowed: `data` must be a multiple of 4'
    array = np.zeros(4, np.float32)
    check(-4, aligned, run.set, c.INPUT, 0, array.ctypes.data + 1, 12, c.BORROW)
    whole = 'plait_run_set: the number "step" is an integer, got 1.500000'
    check(-4, whole, run.set_number, 1, 1.5)
    finite = 'plait_run_set: the number "lr" must be finite'
    check(-4, finite, run.set_number, 0, float("nan"))
    check(-4, flags, run.set, c.NUMBER, 0, bytes(8), 8, c.BORROW)
    size = 'plait_run_set: the number "step" is float64 of shape (), which has 8 bytes; got 4'
    check(-2, size, run.set, c.NUMBER, 1, bytes(4))
    tensor = c.Tensor(8)
    code = library.plait_run_get(run.handle, c.INPUT, 0, ctypes.byref(tensor))
    assert (code, tensor.name) == (-4, None)


def test_functions_without_a_handle(library: ctypes.CDLL) -> None:
    assert library.plait_run_execute(None) == -4
    assert library.plait_run_count(None, c.INPUT) == 0
    assert library.plait_run_find(None, c.INPUT, b"x") == -1
    assert library.plait_run_memory(None) == 0
    assert library.plait_run_error(None) != b""
    library.plait_run_close(None)


def test_a_handle_of_a_failed_open_has_the_text_alone(library: ctypes.CDLL) -> None:
    handle = ctypes.c_void_p()
    assert library.plait_run_open(b"no.file", None, ctypes.byref(handle)) == -1
    assert library.plait_run_error(handle).startswith(b"no.file: the file cannot be opened")
    assert library.plait_run_execute(handle) == -4
    assert library.plait_run_error(handle) == b"plait_run_execute: no file is open"
    assert library.plait_run_save(handle, b"x") == -4
    assert library.plait_run_count(handle, c.INPUT) == 0
    library.plait_run_close(handle)
    assert library.plait_run_open(None, None, ctypes.byref(handle)) == -4
    library.plait_run_close(handle)


def test_settings_are_checked(library: ctypes.CDLL, training_file: Path) -> None:
    handle = ctypes.c_void_p()
    for size, flags, text in ((8, 0, b"their sizeof"), (32, 6, b"unknown flag")):
        settings = c.Settings(size, None, 0, 0, flags)
        path = str(training_file).encode()
        code = library.plait_run_open(path, ctypes.byref(settings), ctypes.byref(handle))
        assert code == -4
        assert text in library.plait_run_error(handle)
        library.plait_run_close(handle)


def test_a_saved_graph_goes_on(
    run: Any, library: ctypes.CDLL, libraries: str, tmp_path: Path, load_tensors: Load
) -> None:
    run.set(c.INPUT, 0, bytes_of([1, 1, 1]))
    run.execute()
    run.save(str(tmp_path / "new.safetensors"))
    texts, arrays = load_tensors(tmp_path / "new.safetensors")
    assert texts["author"] == "me"
    graph = json.loads(texts["plait_graph"])
    assert [number["value"] for number in graph.pop("numbers")] == [0.5, 2]
    assert graph == {key: value for key, value in TRAINING.items() if key != "numbers"}
    assert arrays["w"].tolist() == [1, 1.5, 2]
    again = c.Run(library, str(tmp_path / "new.safetensors"), libraries)
    for each in (run, again):
        each.set(c.INPUT, 0, bytes_of([2, 2, 2]))
        each.execute()
    assert again.read(c.OUTPUT, 0) == run.read(c.OUTPUT, 0)
    assert again.read(c.WEIGHT, 0) == run.read(c.WEIGHT, 0)
    again.close()


def test_a_graph_in_memory(
    run: Any, library: ctypes.CDLL, libraries: str, training_file: Path, tmp_path: Path
) -> None:
    run.set(c.INPUT, 0, bytes_of([1, 1, 1]))
    run.execute()
    run.save(str(tmp_path / "new.safetensors"))
    saved = run.saved()
    assert saved == (tmp_path / "new.safetensors").read_bytes()
    for start in (training_file.read_bytes(), saved):
        mapped = c.Run(library, start, libraries, flags=1)  # memory is not mapped, but copied
        again = c.Run(library, start, libraries)
        for each in (mapped, again):
            each.set(c.INPUT, 0, bytes_of([2, 2, 2]))
            each.execute()
        assert again.read(c.OUTPUT, 0) == mapped.read(c.OUTPUT, 0)
        mapped.close()
    run.set(c.INPUT, 0, bytes_of([2, 2, 2]))
    run.execute()
    assert again.read(c.WEIGHT, 0) == run.read(c.WEIGHT, 0)
    again.close()
    for n in (*range(9), 100, len(saved) - 1):
        with pytest.raises(c.RunError, match=r"^the (file|header)"):
            c.Run(library, saved[:n], libraries)


def test_errors_of_a_graph_in_memory(run: Any, library: ctypes.CDLL) -> None:
    handle, nbytes = ctypes.c_void_p(), ctypes.c_uint64()
    assert library.plait_run_open_memory(None, 8, None, ctypes.byref(handle)) == -4
    assert library.plait_run_error(handle) == b"plait_run_open_memory: `data` must not be NULL"
    data = ctypes.c_void_p()
    assert library.plait_run_save_memory(handle, ctypes.byref(data), ctypes.byref(nbytes)) == -4
    assert library.plait_run_error(handle) == b"plait_run_save_memory: no file is open"
    library.plait_run_close(handle)
    assert library.plait_run_save_memory(run.handle, None, ctypes.byref(nbytes)) == -4
    assert b"must not be NULL" in library.plait_run_error(run.handle)


def test_a_save_that_fails_changes_nothing(run: Any, tmp_path: Path) -> None:
    with pytest.raises(c.RunError, match="no file can be made beside it"):
        run.save(str(tmp_path / "no" / "file"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(c.RunError, match="is not a regular file"):
        run.save(str(tmp_path / "folder"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "training.safetensors"]


def test_a_save_keeps_links_and_modes(run: Any, tmp_path: Path, load_tensors: Load) -> None:
    path, link = tmp_path / "training.safetensors", tmp_path / "link"
    path.chmod(0o640)
    link.symlink_to(path.name)
    run.set(c.WEIGHT, 0, bytes_of([4, 5, 6]))
    run.save(str(link))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert load_tensors(path)[1]["w"].tolist() == [4, 5, 6]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_saved_file_is_a_checkpoint(run: Any, tmp_path: Path) -> None:
    run.save(str(tmp_path / "new.safetensors"))
    assert pc.load(tmp_path / "new.safetensors")["w"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("maps", [0, 1])
def test_weights_of_every_dtype(
    library: ctypes.CDLL,
    libraries: str,
    tmp_path: Path,
    save_tensors: Save,
    load_tensors: Load,
    maps: int,
) -> None:
    source = np.random.default_rng(1)
    arrays: dict[str, Any] = {
        "odd": np.array([7], np.uint8),  # what follows is not aligned in the file
        "bool": np.array([True, False]),
        "int8": source.integers(-128, 128, (2, 3)).astype(np.int8),
        "uint16": source.integers(0, 2**16, 5).astype(np.uint16),
        "int64": source.integers(-(2**63), 2**63 - 1, (2, 1, 2)),
        "uint64": source.integers(0, 2**64, 3, np.uint64),
        "float16": source.standard_normal(3).astype(np.float16),
        "float64": source.standard_normal(()),
        "complex64": (source.standard_normal(2) + 1j).astype(np.complex64),
        "empty": np.zeros((2, 0, 3), np.float32),
    }
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    weights = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    pairs = np.array([[1.5, -2.0], [0.25, 8.0]])
    weights.append({"name": "complex128", "dtype": "complex128", "shape": [2]})
    columns = np.arange(6, dtype=np.float32).reshape(2, 3)
    weights.append({"name": "f", "dtype": "float32", "shape": [2, 3], "strides": [1, 2]})
    graph = TRAINING | {"inputs": [], "weights": weights, "nodes": [], "outputs": [], "numbers": []}
    stored = arrays | {"complex128": pairs, "f": columns, "unused": W}
    path = save_tensors(tmp_path / "f.safetensors", {"plait_graph": json.dumps(graph)}, stored)
    run = c.Run(library, str(path), libraries, flags=maps)
    for i, (name, array) in enumerate(arrays.items()):
        data = run.read(c.WEIGHT, i) if array.size else (array.dtype.name, array.shape, b"")
        assert data == (array.dtype.name, array.shape, array.tobytes()), name
    assert run.read(c.WEIGHT, len(arrays)) == ("complex128", (2,), pairs.tobytes())
    tensor = run.get(c.WEIGHT, len(arrays) + 1)
    assert tensor.strides[:2] == [1, 2]
    assert ctypes.string_at(tensor.data, 24) == columns.T.tobytes()
    run.save(str(tmp_path / "new.safetensors"))
    run.close()
    _, saved = load_tensors(tmp_path / "new.safetensors")
    assert sorted(saved) == sorted([*arrays, "complex128", "f"])
    for name, array in saved.items():
        np.testing.assert_array_equal(array, stored[name])
        assert array.dtype == stored[name].dtype


def test_training_on_mapped_weights_leaves_the_file(
    library: ctypes.CDLL, libraries: str, training_file: Path
) -> None:
    before = training_file.read_bytes()
    run = c.Run(library, str(training_file), libraries, flags=1)
    run.set(c.INPUT, 0, bytes_of([1, 1, 1]))
    run.execute()
    assert floats(run.read(c.WEIGHT, 0)).tolist() == [1, 1.5, 2]
    assert training_file.read_bytes() == before
    run.save(str(training_file))  # while it is mapped
    run.execute()
    run.close()
    assert training_file.read_bytes() != before


def test_handles_in_threads(library: ctypes.CDLL, libraries: str, training_file: Path) -> None:
    code = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import c_interface as c
library = c.load(sys.argv[2])
results = []
def work(n):
    run = c.Run(library, sys.argv[3], sys.argv[4])
    import struct
    run.set(c.INPUT, 0, struct.pack("3f", n, n, n))
    for _ in range(200):
        run.execute()
    results.append((n, struct.unpack("3f", run.read(c.WEIGHT, 0)[2])))
    run.close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert sorted(n for n, _ in results) == list(range(8))
assert all(abs(w - n) < 1e-6 for n, weights in results for w in weights), results
"""
    path = plait_abi.paths("plait_graph")["libplait_run.so"]
    words = [sys.executable, "-c", code, str(HERE), path, str(training_file), libraries]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
