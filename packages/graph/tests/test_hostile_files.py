"""Files that nobody vouches for: clear errors, no crash, no more memory than their size allows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_graph

sys.path.insert(0, str(Path(__file__).parent))

from hostile_files import ENTRY, GRAPH, SOUND, chain, file_of, file_with, file_with_graph

HERE = Path(__file__).parent
SANITIZED = "-fsanitize" in os.environ.get("PLAIT_BUILD_FLAGS", "")


def changed(path: str, value: Any) -> bytes:
    """Return a file with the graph in which one thing, such as "nodes.0.op", is another one."""
    graph = json.loads(json.dumps(GRAPH))
    at, keys = graph, [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return file_with_graph(graph)


def entry(**more: Any) -> dict[str, Any]:
    """Return the weight's entry with other members."""
    return {"w": ENTRY | more}


PARTS = GRAPH | {
    "inputs": [
        {"name": "x", "dtype": "float32", "shape": [2**56]},
        {"name": "m", "dtype": "float32", "shape": [2**56, 1]},
    ],
    "outputs": [],
}


def sized(value: int, size: Any = "n", **more: Any) -> bytes:
    """Return a file whose graph has a free size, which is the first dimension of the input."""
    shape = {"name": "x", "dtype": "float32", "shape": ["n", 3]}
    node = {"op": "zeros", "in": [[{"size": size}], {"dtype": "int8"}, None], "out": ["%y"]}
    sizes = {"n": {"min": 0, "max": 2**62, "value": value}}
    parts = {"inputs": [shape], "weights": [], "nodes": [node], "outputs": ["%y"]}
    return file_with({}, b"", graph={"plait_graph": 1, "sizes": sizes, **parts, **more})


START = 'header is damaged: "w": '
OFFSETS = [0, 12]
FILES: dict[str, tuple[bytes, str]] = {
    "a free size of 2^62": (sized(2**62), "2\\^6"),
    "an expression beyond 64 bits": (sized(2, "n*9223372036854775807"), "is beyond 64 bits"),
    "an expression that divides by zero": (sized(2, "1 // (n - 2)"), "divides by zero"),
    "a negative size by an expression": (sized(2, "1 - n"), "size|negative"),
    "no expression": (sized(2, "n" * 10**6), "more than 1000 characters"),
    "an expression that is a number": (sized(2, 3), "a string is expected"),
    "a guard that does not hold": (sized(2, guards=["n > 2"]), "n > 2; got n = 2"),
    "10,000 levels of an expression": (sized(2, "(" * 999), "levels"),
    "empty": (b"", "the file has 0 bytes; a safetensors file has at least 8"),
    "7 bytes": (b"\0" * 7, "the file has 7 bytes"),
    "no header": (bytes(8), "header is damaged: byte 0: a value is expected"),
    "cut in the header": (SOUND[:100], "the file is cut off: it has 100 bytes, the header ends at"),
    "cut in the data": (
        SOUND[:-1],
        "tensors have 12 bytes, behind the header are 11",
    ),
    "longer": (SOUND + b"\0", "is longer than its header says"),
    "length 2^64-1": (file_of("{}", length=2**64 - 1), "the header has 18446744073709551615 bytes"),
    "length 2^63": (file_of("{}", length=2**63), "the header has 9223372036854775808 bytes"),
    "length of a TiB": (file_of("{}", length=2**40), "more than 100000000: the file is damaged"),
    "another format": (b"PK\x03\x04" + bytes(100), "more than 100000000|is cut off"),
    "a list": (file_of("[]"), "an object is expected, found a list"),
    "text behind the header": (file_of("{} x"), "byte 3: the end of the text is expected"),
    "no UTF-8": (file_of(b'{"\xff": 1}'), "byte 2: a string that is not valid UTF-8"),
    "a tensor twice": (
        file_of('{"w":1,"w":1}'),
        'byte 12: the object that ends here has the key "w" twice',
    ),
    "1000 levels": (file_of("[" * 1000 + "]" * 1000), "byte 64: .* nested deeper than 64 levels"),
    "100,000 levels": (file_of('{"a":' * 10**5), "nested deeper than 64 levels"),
    "metadata of numbers": (
        file_of('{"__metadata__":{"a":1}}'),
        "a string is expected, found",
    ),
    "no graph": (file_of(json.dumps({"w": ENTRY})), 'no graph: its metadata has no "plait_graph"'),
    "no weight": (file_with({}, b""), 'the graph has a weight "w", the file has not'),
    "a null character": (file_with({"w\0": ENTRY}), '"w\\\\u0000": a name with a null character'),
    "an entry that is a number": (file_with({"w": 1}), START + "a list or an object is expected"),
    "no shape": (file_with({"w": {"dtype": "F32"}}), START + "dtype, shape and data_offsets"),
    "an unknown dtype": (file_with(entry(dtype="F4")), START + 'the dtype "F4" is unknown'),
    "a dtype that is null": (
        file_with(entry(dtype=None)),
        START + "a string is expected",
    ),
    "a negative size": (file_with(entry(shape=[-3])), START + "a size must not be negative"),
    "a size of 3.0": (
        file_with(entry(shape=[3.0])),
        START + "an integer is expected, found",
    ),
    "a size of 2^63": (file_with(entry(shape=[2**63])), "an integer beyond 64 bits"),
    "a product of 2^64": (
        file_with(entry(shape=[2**32, 2**32])),
        START + "the shape .* does not fit",
    ),
    "a product that wraps to 12": (
        file_with(entry(shape=[2**62 + 1, 3])),
        START + "the shape .* does not fit 12 bytes",
    ),
    "a product of 2^125 and 0": (
        file_with(entry(shape=[2**62, 2**62, 0], data_offsets=[0, 0]), b""),
        START + "the shape .* does not fit 0 bytes",
    ),
    "65 dimensions": (file_with(entry(shape=[1] * 65)), START + "a list of at most 64 sizes"),
    "three offsets": (file_with(entry(data_offsets=[0, 4, 12])), START + "a list of at most 2"),
    "one offset": (file_with(entry(data_offsets=[12])), START + "data_offsets must be a"),
    "reversed offsets": (
        file_with(entry(data_offsets=[12, 0])),
        START + "data_offsets must be a",
    ),
    "a gap": (
        file_with(entry(data_offsets=[4, 16]), bytes(16)),
        '"w" begin at 4, .* at 0',
    ),
    "overlapping tensors": (
        file_with({"w": ENTRY, "v": ENTRY | {"data_offsets": [8, 20]}}, bytes(20)),
        'bytes of "v" begin at 8, those of the tensors before it end at 12',
    ),
    "offsets near 2^63": (
        file_with(entry(shape=[2**61 - 1], data_offsets=[0, 2**63 - 4])),
        "is cut off: its tensors have 9223372036854775804 bytes",
    ),
    "offsets that begin near 2^63": (
        file_with(entry(data_offsets=[2**63 - 13, 2**63 - 1])),
        "begin at 9223372036854775795",
    ),
    "another shape": (
        file_with(entry(shape=[1, 3])),
        r'the tensor "w" is float32 of shape \(1, 3\); float32 of shape \(3,\) is required',
    ),
    "another dtype": (file_with(entry(dtype="I32")), "is int32 of shape .* float32 of shape"),
    "a bool of 63": (
        file_with(
            {"w": {"dtype": "BOOL", "shape": [12], "data_offsets": OFFSETS}},
            graph=GRAPH | {"weights": [{"name": "w", "dtype": "bool", "shape": [12]}], "nodes": []},
        ),
        'the tensor "w" of bool has the byte 128|before it is defined',
    ),
    # graphs
    "a graph that is no JSON": (file_with_graph("{"), "byte 1: a key is expected"),
    "a graph that is null": (file_with_graph("null"), "an object is expected, found null"),
    "an empty graph": (file_with_graph({}), 'no member "plait_graph"'),
    "a graph of 1000 levels": (file_with_graph("[" * 1000), "byte 64: .* nested deeper than 64 l"),
    "a later version": (changed("plait_graph", 2), "a graph of version 2; this plait-graph reads"),
    "an unknown operator": (changed("nodes.0.op", "mule"), 'node 0.*: there is no operator "mule"'),
    "an operator without its overload": (changed("nodes.2.op", "max"), "node 2"),
    "an operator with a null character": (changed("nodes.0.op", "mul\0x"), "there is no operator"),
    "a name before it is defined": (
        changed("nodes.0.in.1", "%y"),
        'node 0 .*: `other`: the name "%y" is used before it is defined',
    ),
    "a cycle": (changed("nodes.0.in.0", "%a"), '"%a" is used before it is defined'),
    "a name twice": (changed("weights.0.name", "x"), 'the name "x" is defined twice'),
    "an empty name": (changed("inputs.0.name", ""), "a name is empty"),
    "an argument too few": (changed("nodes.1.in", ["%a", "%n"]), "has 3 arguments, got 2"),
    "a result too many": (changed("nodes.1.out", ["%b", "%b2"]), "has 1 results, got 2"),
    "a tensor for a list": (changed("nodes.2.in.0", "%a"), "node 2 .*: `tensors`: a list"),
    "null in a list of tensors": (
        changed("nodes.2.in.0", ["%a", None]),
        "`tensors`: null is given in a list whose tensors are not optional",
    ),
    "null for a tensor": (
        changed("nodes.0.in.0", None),
        "null is given for an argument",
    ),
    "a number for a tensor": (
        changed("nodes.6.in.0", 1),
        "node 6 .*: `self`: a string is",
    ),
    "a float for an integer": (
        changed("nodes.3.in.1", 2.0),
        "an integer is expected, found a float",
    ),
    "a text for an integer": (
        changed("nodes.3.in.1", "%x"),
        '"%x" is a tensor; a number is',
    ),
    "an unknown form": (changed("nodes.5.form", "out_of"), 'there is no form "out_of"'),
    "an unknown dtype in a graph": (changed("inputs.0.dtype", "float12"), 'no dtype "float12"'),
    "an unknown device": (changed("inputs.0.device", "toaster"), 'there is no device "toaster"'),
    "an unknown string": (changed("nodes.8.in.1", {"string": "x"}), "clone"),
    "a negative size in a graph": (changed("inputs.0.shape", [-1]), "a shape has the size -1"),
    "sizes of 2^63 in a graph": (
        changed("inputs.0.shape", [2**32, 2**31]),
        "larger than|more than",
    ),
    "sizes of 2^96 beside 0": (
        changed("inputs.0.shape", [0, 2**56, 2**40]),
        "more than 2.63 elements",
    ),
    "strides near 2^63": (
        changed("inputs.0.strides", [2**62, 2**62]),
        "larger|more than",
    ),
    "a weight with gaps": (changed("weights.0.strides", [2**40]), "has the strides .* leave gaps"),
    "shapes that do not fit": (changed("nodes.6.in.1", "%z"), "before it is defined|shape"),
    "a size of 2^62": (
        changed("nodes.7.in.0", [2**62]),
        "zeros|bytes",
    ),
    "sizes whose product wraps": (changed("nodes.7.in.0", [2**33, 2**33]), "zeros|bytes"),
    "a part of size -2^63": (changed("nodes.3.in.1", -(2**63)), "split"),
    "a dimension of 2^62": (changed("nodes.2.in.1", 2**62), "cat"),
    "a tensor of 2^56 rows in 2^56 parts": (
        file_with_graph(PARTS | {"nodes": [{"op": "unbind", "in": ["%x", 0], "out": [["%p"]]}]}),
        'node 0 ."unbind".: more than .* operator calls are needed to find the shapes',
    ),
    "2^60 empty parts": (
        changed("nodes.3", {"op": "chunk", "in": ["%c", 2**60, 0], "out": [["%d", "%e"]]}),
        "result 0 has .* tensors; the graph has 2 names for it",
    ),
    "all pairs of 2^56 rows": (
        file_with_graph(PARTS | {"nodes": [{"op": "pdist", "in": ["%m", 2.0], "out": ["%p"]}]}),
        'node 0 ."pdist".: more than .* operator calls',
    ),
    "an output that is a number": (changed("outputs.0", "%n"), '"%n" is a number; a tensor'),
    "an output that is nothing": (changed("outputs.0", "%q"), '"%q" is used before it is defined'),
    "an infinite number": (changed("numbers.0.value", "inf"), "a float is expected"),
}


@pytest.fixture(scope="module")
def child(
    tmp_path_factory: pytest.TempPathFactory, libraries: str
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs hostile_child.py."""
    folder = tmp_path_factory.mktemp("child")
    sound = folder / "sound.safetensors"
    sound.write_bytes(SOUND)
    library = plait_abi.paths("plait_graph")["libplait_run.so"]

    def run(megabytes: int, *words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "faulthandler", str(HERE / "hostile_child.py"), library]
        command += [libraries, str(sound), str(1 << 30 if SANITIZED else megabytes), *words]
        return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=600)

    return run


def outcomes(child: Any, megabytes: int, paths: list[Path]) -> list[tuple[int, str]]:
    """Return number and text of the error for each file."""
    done = child(megabytes, "run", lines="".join(f"{path}\n" for path in paths))
    assert (done.returncode, done.stderr) == (0, "")
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def errors(child: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Return the outcome of each of the files; they are opened by one process."""
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for i, (data, _) in enumerate(FILES.values()):
        paths.append(folder / f"{i}.safetensors")
        paths[-1].write_bytes(data)
    results = outcomes(child, 32, paths)
    return dict(zip(FILES, results, strict=True))


@pytest.mark.parametrize("name", FILES)
def test_an_error_says_what_is_wrong(name: str, errors: dict[str, tuple[int, str]]) -> None:
    code, text = errors[name]
    assert code < 0
    assert not text.startswith("run: ")
    assert re.search(FILES[name][1], text), text
    assert re.match(r"/.*/\d+\.safetensors: ", text), text
    assert len(text) < 600


def test_what_is_no_file(child: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    names = ("missing", ".", "pipe")
    texts = [text for _, text in outcomes(child, 32, [tmp_path / name for name in names])]
    assert texts[0].endswith("the file cannot be opened (No such file or directory)")
    assert texts[1].endswith("a regular file is required")
    assert texts[2].endswith("a regular file is required")


def test_a_large_file_of_holes(child: Any, tmp_path: Path) -> None:
    size = 2**40
    path = tmp_path / "holes.safetensors"
    weights = [{"name": "w", "dtype": "float32", "shape": [size // 4]}]
    graph = GRAPH | {"weights": weights, "nodes": [], "outputs": []}
    data = file_with(entry(shape=[size // 4], data_offsets=[0, size]), b"", graph)
    path.write_bytes(data)
    os.truncate(path, len(data) + size)
    ((code, text),) = outcomes(child, 32, [path])
    assert code == -7
    assert "memory" in text


def test_many_names_and_long_ones(child: Any, tmp_path: Path) -> None:
    inputs = [{"name": f"i{i}", "dtype": "float32", "shape": [1]} for i in range(20_000)]
    paths = [tmp_path / "many", tmp_path / "long"]
    paths[0].write_bytes(file_with_graph(GRAPH | {"inputs": inputs, "nodes": [], "outputs": []}))
    paths[1].write_bytes(changed("nodes.0.op", "x" * 1_000_000))
    results = outcomes(child, 200, paths)
    assert results[0] == (0, "")
    assert len(results[1][1]) < 600
    assert "there is no operator" in results[1][1]


def test_a_graph_that_needs_more_memory_than_there_is(child: Any, tmp_path: Path) -> None:
    """It can be opened, as nothing is computed; to run it is an error."""
    path = tmp_path / "large"
    nodes = [{"op": "ones", "in": [[2**33], {"dtype": "float64"}, None], "out": ["%o"]}]
    nodes += [{"op": "exp", "in": ["%o"], "out": ["%e"]}]
    nodes += [{"op": "sum", "in": ["%e", [0], False, None], "out": ["%s"]}]
    path.write_bytes(file_with_graph(GRAPH | {"inputs": [], "nodes": nodes, "outputs": ["%s"]}))
    ((code, text),) = outcomes(child, 64, [path])
    assert code == -7
    assert text.startswith("run: ")


def test_many_nodes(child: Any, tmp_path: Path) -> None:
    paths = [tmp_path / "sound", tmp_path / "wrong"]
    paths[0].write_bytes(file_with_graph(chain(5_000)))
    paths[1].write_bytes(file_with_graph(chain(5_000, last="rely")))
    results = outcomes(child, 20, paths)
    assert results[0] == (0, "")
    assert 'node 4999 ("rely"): there is no operator "rely"' in results[1][1]


def test_damaged_copies(child: Any, tmp_path: Path) -> None:
    """tests/attack has more of them."""
    done = child(64, "fuzz", "300", "1", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, ""), sorted(tmp_path.iterdir())
    opened, refused = json.loads(done.stdout)
    assert opened > 0
    assert refused > 20


def test_arguments_that_no_operator_takes_are_value_errors(tmp_path: Path) -> None:
    """`load` raises ValueError alone, also where the operator's own call has another error."""
    path = tmp_path / "forged.safetensors"
    for node in (
        {"op": "sum", "in": ["%x", [7], False, None], "out": ["%y"]},
        {"op": "select", "in": ["%x", 255, 0], "out": ["%y"]},
    ):
        path.write_bytes(file_with({}, b"", GRAPH | {"weights": [], "numbers": [], "nodes": [node],
                                                     "outputs": ["%y"]}))  # fmt: skip
        with pytest.raises(
            ValueError, match=r"load: .*forged.safetensors has a node that cannot run"
        ):
            plait_graph.load(path)
