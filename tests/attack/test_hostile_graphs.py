"""Graphs in files that nobody checked, opened by libplait_run: errors, no crash, little time and
memory. packages/graph/tests/test_hostile_files.py has the fixed cases.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plait_abi
import plait_core as pc
import plait_graph
import plait_nn as nn
import plait_optim as optim
from plait_graph._schemas import Definition, definition_of
from plait_graph._values import encode
from plait_ops import specs
from plait_ops.samples import draw

TESTS = pathlib.Path(__file__).parents[2] / "packages" / "graph" / "tests"
sys.path.insert(0, str(TESTS))
from hostile_files import GRAPH, SOUND, chain, file_with, file_with_graph  # noqa: E402

SANITIZED = "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", "")
PATIENCE = 30.0  # seconds to open a file of some kilobytes, on a loaded machine
COPIES = 400  # that a round damages
CALLS = 50  # that a round forges
NUMBERS = (0, 1, -1, 7, 10**6, 2**20, 2**31, 2**40, 2**62, -(2**31), -(2**62), -(2**63), 2**63 - 1)
FLOATS = (0.0, -1.0, 1e-300, 1e9, 1e18, 1e300, -1e300)
SIZES = (0, 1, 2**20, 2**31, 2**40, 2**56)
LENGTHS = (0, 1, 64, 65, 1000, 100_000)


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Any]]:
    """Return a function that runs hostile_child.py; see there."""
    sound = tmp_path_factory.mktemp("sound") / "sound.safetensors"
    sound.write_bytes(SOUND)
    library = plait_abi.paths("plait_graph")["libplait_run.so"]
    packages = ("abi", "ops", "core", "optim", "graph")
    folders = ":".join(plait_abi.paths(f"plait_{name}")["lib"] for name in packages)

    def run(
        megabytes: int, *words: str, lines: str = "", timeout: float = 600, valid: Any = sound
    ) -> list[Any]:
        command = [sys.executable, "-X", "faulthandler", str(TESTS / "hostile_child.py"), library]
        command += [folders, str(valid), str(1 << 30 if SANITIZED else megabytes), *words]
        done = subprocess.run(
            command, input=lines, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), (words, done.stdout[-1000:])
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def exported(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield files of models: of a step of training, an attention, and a recurrence."""
    pc.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x: pc.Tensor) -> pc.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    yield write(folder / "step", step, pc.randn(2, 1, 6, 6), training=True)
    attention = nn.TransformerEncoderLayer(8, 2, 16).eval()
    yield write(folder / "attention", attention, pc.randn(3, 2, 8))
    yield write(folder / "recurrence", nn.GRU(4, 4, 2).eval(), pc.randn(3, 2, 4))


def write(path: pathlib.Path, function: Any, x: pc.Tensor, training: bool = False) -> pathlib.Path:
    plait_graph.export(function, (x,), path, training=training)
    return path


def test_damaged_copies(rounds: Any, child: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "sound").write_bytes(SOUND)
    files = [tmp_path / "sound", *exported(tmp_path)]
    for source in rounds:
        seed, valid = str(source.randrange(2**31)), source.choice(files)
        ((opened, refused),) = child(64, "fuzz", str(COPIES), seed, str(tmp_path), valid=valid)
        assert opened + refused >= COPIES


def graph_of(definition: Definition, sample: Any) -> dict[str, Any]:
    """Return a graph with one node: the call of a sample."""
    inputs: dict[int, tuple[str, pc.Tensor]] = {}

    def encoded(value: Any) -> Any:
        if isinstance(value, pc.Tensor):
            return "%" + inputs.setdefault(id(value), (f"x{len(inputs)}", value))[0]
        if isinstance(value, (list, tuple)):
            return [encoded(each) for each in value]
        return encode(value.item() if type(value).__module__ == "numpy" else value)

    parameters = definition.schema.arguments
    given = dict(zip([p.name for p in parameters], sample.args, strict=False)) | sample.kwargs
    args = []
    for p in parameters:
        value = encoded(given.get(p.name, p.default))
        if isinstance(value, dict) and p.type.startswith("dtype"):
            value = {"dtype": value.get("string", value.get("dtype"))}
        is_list = "[]" in p.type and value is not None and not isinstance(value, list)
        args.append([value] if is_list else value)
    results = definition.schema.results
    out = [[f"%r{i}", f"%s{i}"] if "[]" in r.type else f"%r{i}" for i, r in enumerate(results)]
    types = [
        {"name": name, "dtype": t.dtype.name, "shape": list(t.shape)} for name, t in inputs.values()
    ]
    node = {"op": definition.schema.name, "in": args, "out": out}
    return GRAPH | {"inputs": types, "weights": [], "numbers": [], "nodes": [node], "outputs": []}


def numbers_in(item: list[Any]) -> Iterator[tuple[list[Any], int]]:
    """Yield the places of numbers, and of lists, in the arguments of a node."""
    for i, value in enumerate(item):
        if type(value) in (int, float, list):
            yield item, i
        if isinstance(value, list):
            yield from numbers_in(value)


def forge(graph: dict[str, Any], source: random.Random) -> None:
    """Put other numbers into a node, and other sizes into the inputs."""
    places = list(numbers_in(graph["nodes"][0]["in"]))
    for _ in range(source.choice((1, 1, 2, 4)) if places else 0):
        container, i = source.choice(places)
        value = container[i] if i < len(container) else None
        if type(value) is int:
            container[i] = source.choice(NUMBERS)
        elif type(value) is float:
            container[i] = source.choice(FLOATS)
        elif isinstance(value, list) and value:
            length = source.choice(LENGTHS)
            container[i] = (value * (length // len(value) + 1))[:length]
    for each in graph["inputs"]:
        for d in range(len(each["shape"])):
            if source.random() < 0.3:
                each["shape"][d] = source.choice(SIZES)


def test_forged_calls(rounds: Any, child: Any, tmp_path: pathlib.Path) -> None:
    """Each operator, with numbers and sizes that ask for endless work."""
    operators = list(specs.all())
    path = tmp_path / "forged"
    for source in rounds:
        paths, texts = [], []
        while len(paths) < CALLS:
            spec = source.choice(operators)
            samples = [s.copied().mapped(pc.from_numpy) for s in itertools.islice(draw(spec), 4)]
            graph = graph_of(definition_of(spec.name), source.choice(samples))
            forge(graph, source)
            paths.append(path.with_suffix(f".{len(paths)}"))
            paths[-1].write_bytes(file_with({}, b"", graph))
            texts.append(json.dumps(graph)[:1000])
        lines = "".join(f"{each}\n" for each in paths)
        results = child(256, "open", lines=lines, timeout=PATIENCE * CALLS)
        assert len(results) == CALLS
        for (code, error), text in zip(results, texts, strict=True):
            assert (code == 0) == (error == ""), text
            assert len(error) < 1000, text


def test_large_graphs(child: Any, tmp_path: pathlib.Path) -> None:
    count = 100_000
    cycle = chain(count)
    cycle["nodes"][0]["in"] = [f"%v{count}"]
    backwards = chain(count)
    backwards["nodes"].reverse()
    files = {
        "sound": file_with_graph(chain(count)),
        "an unknown operator": file_with_graph(chain(count, last="rely")),
        "a cycle": file_with_graph(cycle),
        "backwards": file_with_graph(backwards),
        "1,000 levels": file_with_graph('{"nodes": ' * 1000),
        "cut": file_with_graph(chain(count))[: 1 << 20],
    }
    paths = [tmp_path / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    lines = "".join(f"{path}\n" for path in paths)
    results = child(30 * paths[0].stat().st_size >> 20, "run", lines=lines)
    expected = (
        "",
        'node 99999 ("rely"): there is no operator "rely"',
        'node 0 ("relu"): `self`: the name "%v100000" is used before it is defined',
        'node 0 ("relu"): `self`: the name "%v99999" is used before it is defined',
        "nested deeper than 64 levels",
        "the file is cut off",
    )
    for (code, error), text in zip(results, expected, strict=True):
        assert (code == 0) == (text == "")
        assert text in error
    (result,) = child(20, "run", lines=f"{paths[0]}\n")
    assert SANITIZED or result == [-7, f"{paths[0]}: out of memory"]


MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import c_interface
library = c_interface.load(sys.argv[2])
run = c_interface.Run(library, sys.argv[3], sys.argv[4], memory_limit=64 << 20)
planned = run.memory()
try:
    run.execute()
except c_interface.RunError as error:
    print(error.code, planned, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, error)
"""
NODES: dict[str, list[dict[str, Any]]] = {
    "a value in between": [
        {"op": "ones", "in": [[2**34], {"dtype": "float64"}, None], "out": ["%a"]},
        {"op": "sum", "in": ["%a", [0], False, None], "out": ["%o"]},
    ],
    "an output": [{"op": "ones", "in": [[2**34], {"dtype": "float64"}, None], "out": ["%o"]}],
    "a constant": [
        {"op": "expand", "in": ["%w", [2**34, 3]], "out": ["%a"]},
        {"op": "exp", "in": ["%a"], "out": ["%b"]},
        {"op": "sum", "in": ["%b", [0], False, None], "out": ["%o"]},
    ],
}


@pytest.mark.parametrize("where", NODES)
def test_the_limit_of_memory(where: str, tmp_path: pathlib.Path) -> None:
    """A file of a kilobyte that asks for 100 GB: known before the run, refused by the run."""
    path = tmp_path / "large"
    graph = GRAPH | {"inputs": [], "nodes": NODES[where], "outputs": ["%o"]}
    path.write_bytes(file_with_graph(graph))
    packages = ("abi", "ops", "core", "optim", "graph")
    folders = ":".join(plait_abi.paths(f"plait_{name}")["lib"] for name in packages)
    library = plait_abi.paths("plait_graph")["libplait_run.so"]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(TESTS), library, str(path), folders],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    code, planned, kilobytes, error = done.stdout.split(maxsplit=3)
    assert code == "-7"
    assert int(planned) >= 100 * 10**9
    assert int(kilobytes) < 500_000
    assert "the memory limit is 67108864 bytes" in error
