"""Collect what a machine with a GPU and without a network needs to run tools/gpu_check.py.

    python tools/gpu_set.py [--python PYTHON] [--architectures 90] [--out dist/gpu] [--limit 45]

The folder gets wheels for that Python: ours, with code for the named GPUs, and those of other
projects; the files of the repository that gpu_check.py reads, as an archive; and ``run.sh``, which
installs the wheels beside what the machine's own Python has, such as PyTorch, and runs the check.
Sizes are printed; more than ``--limit`` MiB in all is an error. A project that the machine has
anyway is left out by ``--without numpy``.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence

from package_graph import ROOT

from wheels import Builder, source_files

__all__ = ["archive", "main", "table"]

OURS = ("plait", "cuda", "torch", "conformance")
OTHERS = ("numpy", "scipy-openblas32", "cloudpickle", "pytest>=8", "pytest-timeout>=2.3")
SOURCES = ("tools", "benchmarks", "packages/cuda/tests")
MIB = 1 << 20
RUN = """#!/bin/sh
# Install the wheels beside what this machine's Python has, and run the check: ./run.sh [PART ...]
set -e
cd "$(dirname "$0")"
"${PYTHON:-python3}" -m venv --system-site-packages environment
environment/bin/python -m pip install --quiet --no-index --find-links wheels \\
    plait plait-cuda plait-torch plait-conformance pytest pytest-timeout
tar -xf sources.tar.gz
exec environment/bin/python sources/tools/gpu_check.py --out results "$@"
"""


def archive(path: pathlib.Path, commit: str) -> None:
    """Write the files of the repository that gpu_check.py reads, and the commit they are of."""
    mark = path.with_name("COMMIT")
    mark.write_text(commit + "\n")
    with tarfile.open(path, "w:gz") as result:
        for folder in SOURCES:
            for file in source_files(ROOT / folder, tests=True):
                if file.suffix in (".py", ".cpp", ".h", ".c"):
                    result.add(file, f"sources/{file.relative_to(ROOT).as_posix()}")
        result.add(mark, "sources/COMMIT")
    mark.unlink()


def table(folder: pathlib.Path) -> tuple[str, float]:
    """Return the sizes of the files in a folder, largest first, and their sum in MiB."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size / MIB for path in files}
    rows = sorted(sizes.items(), key=lambda item: -item[1])
    total = sum(sizes.values())
    lines = [f"{size:7.2f} MiB  {name}" for name, size in rows]
    return "\n".join([*lines, f"{total:7.2f} MiB  in all"]), total


def collect(python: str, architectures: str, out: pathlib.Path, without: Sequence[str]) -> None:
    """Fill the folder."""
    wheels = out / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    wheels.mkdir(parents=True)
    for path in Builder(python, architectures=architectures).build(list(OURS)).values():
        shutil.copy(path, wheels)
    others = [name for name in OTHERS if name.split(">")[0] not in without]
    command = [python, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    subprocess.run([*command, "--only-binary", ":all:", "-d", str(wheels), *others], check=True)
    words = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    archive(out / "sources.tar.gz", commit)
    script = out / "run.sh"
    script.write_text(RUN)
    script.chmod(0o755)


def main(words: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser("tools/gpu_set.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter of the version")
    parser.add_argument("--architectures", default="90")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist" / "gpu")
    parser.add_argument("--limit", type=float, default=45, metavar="MIB")
    parser.add_argument("--without", action="append", default=[], metavar="PROJECT")
    flags = parser.parse_args(words)
    collect(flags.python, flags.architectures, flags.out, flags.without)
    text, total = table(flags.out)
    print(text)
    if total > flags.limit:
        print(f"gpu_set: at most {flags.limit:g} MiB are allowed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
