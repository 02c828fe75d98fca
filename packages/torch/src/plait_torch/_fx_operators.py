"""`torch.fx.graph`: how generated code writes the operators of Python."""

from __future__ import annotations

__all__ = ["inplace_methods", "magic_methods", "reflectable_magic_methods"]

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "div": "/", "mod": "%",
    "pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_OF_ONE = {"pos": "+{}", "neg": "-{}", "invert": "~{}"}


def _between(signs: dict[str, str]) -> dict[str, str]:
    return {name: f"{{}} {sign} {{}}" for name, sign in signs.items()}


reflectable_magic_methods = {**_between(_SIGNS), "getitem": "{}[{}]"}
magic_methods = {**_between(_COMPARISONS), **_OF_ONE, **reflectable_magic_methods}
inplace_methods = {
    f"i{name.rstrip('_')}": f"{{}} {_SIGNS[name]}= {{}}" for name in _SIGNS if name != "div"
}
