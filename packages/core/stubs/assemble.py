"""Write the stubs of plait_core: the templates of this folder with the operators' signatures."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

__all__ = ["main"]

HERE = pathlib.Path(__file__).parent
# alternatives that differ in the name of an argument alone are more than a checker can tell apart
HEADER = '# mypy: disable-error-code="overload-cannot-match,overload-overlap,misc"\n'


def main(out: pathlib.Path) -> None:
    """Fill ``out`` with the stubs of the Tensor, the operators and their namespaces."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "plait_ops.emit", "--stubs", folder]
        subprocess.run(command, check=True)
        for name, operators in (
            ("_core", "methods"),
            ("_operators", "functions"),
            ("linalg", "linalg"),
            ("fft", "fft"),
            ("special", "special"),
        ):
            text = pathlib.Path(folder, f"{operators}.pyi").read_text()
            template = (HERE / f"{name}.pyi.in").read_text()
            before, mark, after = template.partition("#operators\n")
            if not mark:
                raise ValueError(f"{name}.pyi.in: a line `#operators` is required")
            (out / f"{name}.pyi").write_text(HEADER + before.rstrip(" ") + text + after)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
