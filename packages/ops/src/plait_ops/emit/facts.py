"""The table of facts: what the definition of each operator brings, and which kernels there are."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence

from plait_ops.emit.derivatives import reverse
from plait_ops.spec import Composite, Operator, Pointwise

__all__ = ["emit"]

_KERNEL = re.compile(r'PLAIT_KERNEL(?:_SPECIAL)?\(\s*"([\w.]+)"')


def _kernels(root: pathlib.Path) -> dict[str, str]:
    """Return the file of each registered kernel of plait's core, by the operator."""
    cpp = root / "packages" / "core" / "cpp"
    return {
        name: path.relative_to(cpp).as_posix()
        for path in sorted(cpp.rglob("*.cpp"))
        for name in _KERNEL.findall(path.read_text(encoding="utf-8"))
    }


def _batching(operator: Operator) -> str:
    if not operator.batching:
        return "parts" if isinstance(operator, Composite) else "each sample"
    return "code" if operator.batching[0].isupper() else "data"


def _sharding(operator: Operator) -> str:
    if not operator.sharding:
        return ""
    return "code" if operator.sharding[0].isupper() else "data"


def _cost(operator: Operator) -> str:
    if operator.cost_function is not None:
        return "formula"
    if isinstance(operator, Composite):
        return "parts"
    return "elements" if isinstance(operator, Pointwise) else ""


def _kernel(operator: Operator, kernels: dict[str, str]) -> str:
    if operator.name in kernels:
        return kernels[operator.name]
    scalar = isinstance(operator, Pointwise) and operator.scalar
    return f"{operator.family}.h" if scalar else ""


def _row(operator: Operator, kernels: dict[str, str]) -> str:
    cells = (
        f"`{operator.name}`",
        reverse(operator),
        _batching(operator),
        _sharding(operator),
        _cost(operator),
        "yes" if operator.zero_preserving else "",
        "yes" if operator.decompose_function is not None else "",
        _kernel(operator, kernels),
    )
    return f"| {' | '.join(cells)} |"


def emit(operators: Sequence[Operator], root: pathlib.Path | None = None) -> dict[str, str]:
    """Return the page, by name.

    Args:
        root: the repository whose kernels are named; default: the working directory.
    """
    kernels = _kernels(root or pathlib.Path.cwd())
    rows = [_row(each, kernels) for each in sorted(operators, key=lambda each: each.name)]
    code = [each for each in operators if _batching(each) == "code"]
    shared = [each for each in operators if _sharding(each) == "code"]
    counts = f"Rules in code: {len(code)} for `vmap`, {len(shared)} for DTensors."
    return {"facts.md": f"{HEAD}\n{counts}\n\n{TABLE}" + "\n".join(rows) + "\n"}


HEAD = """# Facts of the operators

What the definition of each operator brings (docs/design/0048), and which kernels plait has.

- **Gradient**: see [derivatives](derivatives.md).
- **vmap**: how one call computes all samples. *data*: a rule in the definition, as a letter for
  each argument; *code*: a function; *parts*: the operators that it calls; *each sample*: it is
  called for each.
- **DTensor**: the rule for parts of tensors that several ranks hold; empty: an error, unless every
  rank has the whole.
- **Cost**: a *formula*, that of its *parts*, one operation for each of the *elements*, or none.
- **Keeps zeros**: its value at 0 is 0, so sparse tensors have it.
- **Fallback**: other operators compute it where a backend has no kernel.
- **Kernel**: its file in `packages/core/cpp`.
"""
TABLE = (
    "| Operator | Gradient | vmap | DTensor | Cost | Keeps zeros | Fallback | Kernel |\n"
    f"|{' --- |' * 8}\n"
)
