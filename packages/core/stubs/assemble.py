"""Write the stubs of plait_core: the templates of this folder with the operators' signatures."""

from __future__ import annotations

import ast
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
            stub = before.rstrip(" ") + text + after
            if name == "_core":
                stub = stub.replace(
                    "#results\n", pathlib.Path(folder, "return_types.pyi").read_text()
                )
            if name == "_operators":
                stub += f"\n__all__ = {_exports(stub)}\n"
            (out / f"{name}.pyi").write_text(HEADER + stub)


def _exports(stub: str) -> list[str]:
    """Return the names of functions that a stub defines, gives a second name or re-exports.

    Pyright takes what ``__all__`` of plait_core names for its public names; it follows
    ``__all__ += _operators.__all__``.
    """
    names: set[str] = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(each.id for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            names.update(each.asname for each in node.names if each.asname)
    return sorted(names)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
