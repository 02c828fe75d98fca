"""Run the generators of a package and leave files that did not change as they are."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import sys
from collections.abc import Sequence

from plait_abi.build._commands import run
from plait_abi.build._errors import BuildError
from plait_abi.build._objects import content_hash
from plait_abi.build._targets import Generate, expand
from plait_abi.build._toolchain import package_folder


def generate(step: Generate, number: int, root: pathlib.Path, out: pathlib.Path) -> bool:
    """Fill ``out`` with what ``step`` writes; return whether it had to run."""
    stamp = out.parent / f"generated-{number}.json"
    key = _key(step, root, out)
    before, old = _read_stamp(stamp)
    if step.inputs and before == key and all((out / name).exists() for name in old):
        return False
    fresh = out.parent / f"generated-{number}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    _run(step, root, fresh)
    files = sorted(path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file())
    for file in files:
        copy_if_changed(fresh / file, out / file)
    written = [file.as_posix() for file in files]
    for name in set(old) - set(written):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(fresh)
    stamp.write_text(json.dumps([key, written]))
    return True


def package_files(
    steps: Sequence[Generate], out: pathlib.Path
) -> list[tuple[pathlib.Path, pathlib.Path]]:
    """Return the generated files to ship, as pairs (file, path below ``src``)."""
    pairs = []
    for step in steps:
        for origin, target in step.package_files.items():
            source = out / origin
            if source.is_file():
                pairs.append((source, pathlib.Path(target)))
                continue
            if not source.is_dir():
                raise BuildError(
                    f"Generate: `package_files` names {origin!r}, which was not written"
                )
            inside = sorted(path for path in source.rglob("*") if path.is_file())
            pairs += [(path, target / path.relative_to(source)) for path in inside]
    return pairs


def _run(step: Generate, root: pathlib.Path, fresh: pathlib.Path) -> None:
    if callable(step.run):
        step.run(fresh)
        return
    command = [word.replace("{out}", str(fresh)) for word in step.run]
    if command[0] == "python":
        command[0] = sys.executable
    path = [str(root / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, path)))
    code, text = run(command, root, environment)
    if code != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{text.rstrip()}")


def _key(step: Generate, root: pathlib.Path, out: pathlib.Path) -> str:
    inputs = expand(step.inputs, root, out)
    for package in step.requires:
        inputs += sorted(package_folder(package).rglob("*.py"))
    key = hashlib.sha256(sys.version.encode())
    if callable(step.run):
        # pip runs setup.py from a string, so the function's own file name says nothing.
        inputs += expand(["setup.py"], root, out)
    else:
        key.update(repr(list(step.run)).encode())
    for path in inputs:
        key.update(f"{path.name} {content_hash(path)}".encode())
    return key.hexdigest()


def _read_stamp(stamp: pathlib.Path) -> tuple[str, list[str]]:
    """Return the key and the files of the last run."""
    try:
        key, files = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return "", []
    return str(key), [str(name) for name in files]


def copy_if_changed(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy a file in one step, leaving an equal one as it is."""
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    unfinished.replace(target)
