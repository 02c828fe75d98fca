"""Open files that nobody vouches for, in a process with little memory.

    python hostile_child.py LIBRARY FOLDERS VALID_FILE MEGABYTES open|run < paths
    python hostile_child.py LIBRARY FOLDERS VALID_FILE MEGABYTES fuzz COUNT SEED FOLDER

It opens, or also runs, each file, and prints a line of JSON: the number and text of the error, or 0
and "". The second form opens and runs damaged copies of the valid file and prints how many were
opened and refused. The process may take MEGABYTES more than it has when the valid file was opened
and run.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import sys
from pathlib import Path

from c_interface import INPUT, Run, RunError, load

library = load(sys.argv[1])
folders = sys.argv[2]


def try_file(path: str, runs: bool = True) -> tuple[int, str]:
    """Open a file, and run it with zeros; return the number and the text of the error."""
    try:
        run = Run(library, path, folders)
    except RunError as error:
        return error.code, str(error)
    try:
        for i in range(run.count(INPUT) if runs else 0):
            size = run.get(INPUT, i).nbytes
            if size < 1 << 20:
                run.set(INPUT, i, bytes(size))
        if runs:
            run.execute()
    except RunError as error:
        return error.code, "run: " + str(error)
    finally:
        run.close()
    return 0, ""


def damage(data: bytes, source: random.Random) -> bytes:
    """Return a copy with some bytes changed, cut out or repeated."""
    result = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        at = source.randrange(len(result) or 1)
        kind = source.randrange(6) if result else 4
        if kind == 0:
            result[at] = source.randrange(256)
        elif kind == 1:
            result[at] ^= 1 << source.randrange(8)
        elif kind == 2:
            del result[at : at + source.randrange(1, 9)]
        elif kind == 3:
            result[at:at] = result[at : at + source.randrange(1, 33)]
        elif kind == 4:
            result[at : at + 1] = source.choice(
                (b"9" * 19, b"-1", b"0", b"null", b"[]", b'"', b"}")
            )
        else:
            del result[at:]
    return bytes(result) or b"\0"


def with_graph(data: bytes, source: random.Random) -> bytes:
    """Return a copy whose graph has changed values, and whose header is sound."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    graph = json.loads(header["__metadata__"]["plait_graph"])
    names = [value["name"] for value in graph["inputs"] + graph["weights"]]
    values = [*(f"%{name}" for name in names), None, True, [], [1], "%?", {"string": "x"}]
    values += [{"dtype": "float32"}, {"device": "cpu"}, {"float": "nan"}, {"complex": [0.0, 1.0]}]
    values += [0, 1, -1, 2, 7, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 0.5, -1e300]

    def place(item: object) -> list[tuple[object, object]]:
        """Return each container with each key in it."""
        pairs = item.items() if isinstance(item, dict) else enumerate(item)  # type: ignore[arg-type]
        found = []
        for key, value in pairs:
            found.append((item, key))
            if isinstance(value, (dict, list)):
                found += place(value)
        return found

    for _ in range(source.choice((1, 1, 2, 3))):
        container, key = source.choice(place(graph))
        container[key] = copy.deepcopy(source.choice(values))  # type: ignore[index]
    header["__metadata__"]["plait_graph"] = json.dumps(graph)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[start:]


def fuzz(count: int, seed: int, folder: str) -> None:
    """Open damaged copies of the valid file."""
    source = random.Random(seed)
    data = Path(sys.argv[3]).read_bytes()
    path = Path(folder) / "damaged.safetensors"
    opened = refused = 0
    for _ in range(count):
        path.write_bytes(source.choice((damage, with_graph))(data, source))
        code, text = try_file(str(path))
        assert (code == 0) == (text == ""), (code, text)
        opened += code == 0 or text.startswith("run: ")
        refused += code != 0
    print(json.dumps([opened, refused]))


def main() -> None:
    """Warm up, set the limit, and do what the command line says."""
    result = try_file(sys.argv[3])
    assert result == (0, ""), result
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(sys.argv[4]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if sys.argv[5] == "fuzz":
        fuzz(int(sys.argv[6]), int(sys.argv[7]), sys.argv[8])
        return
    for line in sys.stdin:
        print(json.dumps(try_file(line.rstrip("\n"), sys.argv[5] == "run")), flush=True)


if __name__ == "__main__":
    main()
