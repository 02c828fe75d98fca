"""Compile source files to objects: in parallel, and only those whose inputs changed.

An object is named by a key of its command line and compiler; beside it is a record of every header
it read, but for those of the system, with size, time and content hash. A file whose time alone
changed is not compiled again. Folders stand under short names in keys and records, so that two
copies of a package (the tree, and the sources that a wheel is built from) use one object while the
files are equal.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import time
from collections.abc import Callable, Sequence

from plait_abi.build._commands import run
from plait_abi.build._errors import BuildError


class Folders:
    """Short names of folders of a build, for paths that do not depend on where these lie."""

    def __init__(self, folders: Sequence[pathlib.Path]) -> None:
        named = [(f"{folder}/", f"<{number}>/") for number, folder in enumerate(folders)]
        # the innermost folder of a path names it
        self._named = sorted(named, key=lambda pair: len(pair[0]), reverse=True)

    def shorten(self, path: str) -> str:
        """Return ``path`` with the name of the folder that it lies in."""
        for folder, name in self._named:
            if path.startswith(folder):
                return name + path[len(folder) :]
        return path

    def resolve(self, path: str) -> pathlib.Path:
        """Return the path that `shorten` was given."""
        for folder, name in self._named:
            if path.startswith(name):
                return pathlib.Path(folder, path[len(name) :])
        return pathlib.Path(path)


@dataclasses.dataclass(frozen=True)
class Compile:
    """One source file and the command that compiles it, without its outputs."""

    source: pathlib.Path
    command: tuple[str, ...]
    object: pathlib.Path
    label: str
    folders: Folders
    phase: str = "-c"  # the option that makes the object of the source

    @property
    def record(self) -> pathlib.Path:
        """The file that remembers what the object was made from."""
        return self.object.with_suffix(".json")


def job_count() -> int:
    """Return how many compilers may run at once."""
    text = os.environ.get("PLAIT_BUILD_JOBS", "")
    if not text:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise BuildError(f"PLAIT_BUILD_JOBS: a positive integer is required; got {text!r}")
    return int(text)


@functools.cache
def _hash_at(path: str, size: int, modified: int) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def content_hash(path: pathlib.Path) -> str:
    """Return the SHA-256 of a file, reading it again only when size or time changed."""
    status = path.stat()
    return _hash_at(str(path), status.st_size, status.st_mtime_ns)


def is_current(job: Compile) -> bool:
    """Return whether the object was made from the files as they are on the disk."""
    if not job.object.exists():
        return False
    try:
        record = json.loads(job.record.read_text())
        inputs: dict[str, list[object]] = record["inputs"]
        # files of another copy may differ and have one size and time, such as those of archives
        here = record["source"] == str(job.source)
        return all(
            _unchanged(job.folders.resolve(path), seen, trust_time=here)
            for path, seen in inputs.items()
        )
    except (OSError, ValueError, KeyError):
        return False


def _unchanged(path: pathlib.Path, seen: Sequence[object], *, trust_time: bool) -> bool:
    status = path.stat()
    if trust_time and [status.st_size, status.st_mtime_ns] == list(seen[:2]):
        return True
    return status.st_size == seen[0] and content_hash(path) == seen[2]


def read_depfile(text: str) -> list[str]:
    """Return the prerequisites in a make rule written by ``-MMD``."""
    rule = text.replace("\\\n", " ").split("\n", 1)[0].split(": ", 1)[-1]
    words = re.split(r"(?<!\\)\s+", rule.strip())
    return [word.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$") for word in words]


def _compile(job: Compile, folder: pathlib.Path) -> tuple[str, str]:
    """Run one compiler; return its messages, and its error output when it failed."""
    job.object.parent.mkdir(parents=True, exist_ok=True)
    unfinished = job.object.with_suffix(f".{os.getpid()}.o")
    depfile = unfinished.with_suffix(".d")
    start = time.time_ns()
    clock = time.monotonic()
    outputs = ["-MMD", "-MF", str(depfile), "-MT", "object", job.phase, str(job.source)]
    code, text = run([*job.command, *outputs, "-o", str(unfinished)], folder)
    if code != 0:
        unfinished.unlink(missing_ok=True)
        depfile.unlink(missing_ok=True)
        return "", f"{' '.join(job.command)} {job.source}\n{text}"
    inputs = {}
    for name in read_depfile(depfile.read_text()):
        path = pathlib.Path(os.path.normpath(folder / name))  # ccache writes ../
        status = path.stat()
        # A file saved while the compiler read it must not count as compiled.
        stamp = status.st_mtime_ns if status.st_mtime_ns < start else 0
        inputs[job.folders.shorten(str(path))] = [
            status.st_size,
            stamp,
            content_hash(path) if stamp else "",
        ]
    depfile.unlink()
    job.record.unlink(missing_ok=True)  # an interrupt here must not leave it with another object
    unfinished.replace(job.object)
    record = {
        "source": str(job.source),
        "inputs": inputs,
        "seconds": round(time.monotonic() - clock, 2),
    }
    job.record.write_text(json.dumps(record))
    return text, ""


def _seconds(job: Compile) -> float:
    """Return how long this file took last time, for any key: the longest are started first."""
    stem = job.object.name.rsplit("-", 1)[0]
    times = [0.0]
    for record in job.object.parent.glob(f"{stem}-*.json"):
        try:
            times.append(float(json.loads(record.read_text())["seconds"]))
        except (OSError, ValueError, KeyError):
            continue
    return max(times) or job.source.stat().st_size / 1e4


def compile_all(
    jobs: Sequence[Compile],
    folder: pathlib.Path,
    log: Callable[[str], None],
    *,
    keep_going: bool = False,
) -> list[Compile]:
    """Compile what is out of date and return the jobs that failed; report each as it ends."""
    stale = sorted((job for job in jobs if not is_current(job)), key=_seconds, reverse=True)
    failed: list[Compile] = []
    if not stale:
        return failed
    done = 0
    with concurrent.futures.ThreadPoolExecutor(job_count()) as pool:
        waiting = {pool.submit(_compile, job, folder): job for job in stale}
        for future in concurrent.futures.as_completed(waiting):
            if future.cancelled():
                continue
            job = waiting[future]
            messages, error = future.result()
            done += 1
            log(f"[{done}/{len(stale)}] {'FAILED ' if error else ''}{job.label}")
            if messages or error:
                log((messages or error).rstrip())
            if error:
                failed.append(job)
                if not keep_going:
                    # after pool.shutdown(cancel_futures=True) as_completed would wait for ever
                    for other in waiting:
                        other.cancel()
    return failed
