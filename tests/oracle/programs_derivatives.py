"""Derivatives by `functional` of results that do not depend on all inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_programs import case

FUNCTIONS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "constant": lambda lib: lambda x, y: lib.t([1.0, 2.0]),
    "first": lambda lib: lambda x, y: x * x,
    "both": lambda lib: lambda x, y: (x * 2, lib.t([3.0])),
    "detached": lambda lib: lambda x, y: (x * y).detach(),
    "linear": lambda lib: lambda x, y: x + y,
    "itself": lambda lib: lambda x, y: x,
    "float32": lambda lib: lambda x, y: lib.m.ones(3),
    "pair": lambda lib: lambda x, y: (x.exp().sum(), y.sum()),
}


def facts(lib: Any, values: Any) -> Any:
    if isinstance(values, (tuple, list)):
        return tuple(facts(lib, each) for each in values)
    dtype = str(values.dtype).rsplit(".", 1)[-1]
    rounded = [round(float(each), 9) for each in values.detach().reshape(-1)]
    return (tuple(values.shape), dtype, rounded, values.requires_grad)


def attempt(lib: Any, name: str, kind: str, options: dict[str, Any]) -> Any:
    functional = lib.ag.functional
    function = FUNCTIONS[name](lib)
    x, y = lib.t([0.5, 1.5]), lib.t([2.0, -1.0])
    if kind in ("hessian", "hvp", "vhp"):
        inner = function

        def function(x: Any, y: Any) -> Any:
            result = inner(x, y)
            return (result[0] if isinstance(result, tuple) else result).sum()

    try:
        if kind in ("jacobian", "hessian"):
            return facts(lib, getattr(functional, kind)(function, (x, y), **options))
        if kind == "vjp":
            result = function(x, y)
            v = (
                tuple(lib.m.ones_like(each) for each in result)
                if isinstance(result, tuple)
                else (lib.m.ones_like(result))
            )
        else:
            v = (lib.t([1.0, 2.0]), lib.t([3.0, 4.0]))
        return facts(lib, getattr(functional, kind)(function, (x, y), v, **options))
    except (RuntimeError, TypeError, ValueError):
        return "an error"


def define(name: str, kind: str, label: str, options: dict[str, Any]) -> None:
    def program(lib: Any) -> Any:
        return attempt(lib, name, kind, options)

    program.__name__ = f"{kind}_of_{name}{label}"
    case(program)


for _kind in ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"):
    for _name in FUNCTIONS:
        define(_name, _kind, "", {})
        define(_name, _kind, "_graph", {"create_graph": True})
        define(_name, _kind, "_strict", {"strict": True})


@case
def derivative_materialized(lib: Any) -> Any:
    x, y = lib.t([1.0, 2.0], True), lib.t([3.0], True)
    result = lib.ag.grad((x * x).sum(), (x, y), materialize_grads=True)
    return facts(lib, result)


@case
def derivative_unused(lib: Any) -> Any:
    x, y = lib.t([1.0, 2.0], True), lib.t([3.0], True)
    result = lib.ag.grad((x * x).sum(), (x, y), allow_unused=True)
    return result[1] is None


@case
def derivative_unused_refused(lib: Any) -> Any:
    x, y = lib.t([1.0, 2.0], True), lib.t([3.0], True)
    lib.ag.grad((x * x).sum(), (x, y))
