"""Make the two environments of the programs: one with PyTorch, one with plait instead of it.

    python tests/programs/environments.py FOLDER [FILE ...]

FOLDER gets a virtual environment with PyTorch and the libraries of requirements.txt (and of more
such files beside it), and what they need in the versions of versions.txt. The libraries of
without_dependencies.txt, and what these need, are installed as that file says and no more: some of
them ask for other versions of PyTorch or NumPy than they run with. The same libraries are then
installed beside this Python's plait, each by its name and version and without dependencies, so that
PyTorch is not among them. What pip cannot install is left out, and FOLDER/skipped.json says why.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

__all__ = ["main"]

HERE = pathlib.Path(__file__).resolve().parent
# what comes with PyTorch
ITS_OWN = re.compile(r"^(torch|triton|pytorch-triton|nvidia-.*|cuda-.*)$", re.IGNORECASE)
TOOLS = {"pip", "setuptools", "wheel"}


def requirements(files: list[str], first: str = "requirements.txt") -> list[str]:
    """Return the lines that name a distribution, of a first file and of others."""
    texts = [(HERE / name).read_text() for name in (first, *files)]
    lines = "\n".join(texts).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def pip(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pip, and return what it printed."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return pip's last line with an error."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
    return lines[-1][7:] if lines else f"pip ended with exit code {done.returncode}"


def install(
    python: str, words: list[str], options: list[str], built: bool = False
) -> dict[str, str]:
    """Install all, or if that fails one after the other; return why some could not be.

    Only wheels are installed unless ``built`` is set; some libraries have none.
    """
    wheels = [] if built else ["--only-binary", ":all:"]
    command = ["install", "--quiet", *wheels, *options]
    done = pip(python, *command, *words)
    if not done.returncode or len(words) < 2:
        return {words[0]: reason(done)} if done.returncode else {}
    print(f"environments: {reason(done)}; installing one by one", flush=True)
    outcomes = {word: pip(python, *command, word) for word in words}
    return {word: reason(done) for word, done in outcomes.items() if done.returncode}


def main(arguments: list[str]) -> int:
    """Make the environments and return 0, or 1 if PyTorch itself could not be installed."""
    folder = pathlib.Path(arguments[0]).resolve()
    python = str(folder / "bin" / "python")
    if not pathlib.Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    words = requirements(arguments[1:])
    pinned = ["-c", str(HERE / "versions.txt")]
    first = [word for word in words if ITS_OWN.match(word.split("=")[0])]
    if failed := install(python, first, pinned):
        print(f"environments: {failed}")
        return 1
    # PyTorch is named again, so that no library brings another version of it
    skipped = install(python, [word for word in words if word not in first], pinned)
    more = ["--no-deps", "--no-build-isolation"]
    skipped.update(install(python, requirements([], "without_dependencies.txt"), more, True))
    listed = pip(python, "list", "--format=freeze").stdout.split()
    names = {line: line.split("==")[0] for line in listed if "==" in line}
    expected = [
        line for line, name in names.items() if not ITS_OWN.match(name) and name not in TOOLS
    ]
    failed = install(sys.executable, expected, more, True)
    skipped.update({f"{word} (beside plait)": text for word, text in failed.items()})
    for word, text in skipped.items():
        print(f"environments: {word} left out: {text}")
    (folder / "skipped.json").write_text(json.dumps(skipped, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
