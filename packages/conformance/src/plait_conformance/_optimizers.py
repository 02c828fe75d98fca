"""The optimizers that role ``optimizer`` tests, and how they take a step."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import plait_abi

Array = npt.NDArray[Any]


class Problem:
    """Parameters and a loss: half the squared distance to ``aim``, or none, with zero gradients."""

    def __init__(self, params: list[Any], aims: list[Array] | None = None) -> None:
        self.params = params
        self.aims = aims
        self.sign = 1.0
        self.left_out: set[int] = set()

    def values(self) -> list[Array]:
        """Return copies of the parameters as arrays of NumPy."""
        return [np.array(np.from_dlpack(p)) for p in self.params]

    def loss(self) -> float:
        """Return the loss."""
        return sum(0.5 * float((g.astype("float64") ** 2).sum()) for g in self._differences())

    def gradients(self) -> list[Array | None]:
        """Return the gradients as arrays of NumPy."""
        gradients = [np.asarray(self.sign * g) for g in self._differences()]
        return [None if i in self.left_out else g for i, g in enumerate(gradients)]

    def _differences(self) -> list[Array]:
        values = self.values()
        if self.aims is None:
            return [np.zeros_like(v) for v in values]
        return [v - aim.astype(v.dtype) for v, aim in zip(values, self.aims, strict=True)]


class Case:
    """One optimizer, on the arrays of one library."""

    def __init__(self, make: Any, library: str) -> None:
        self.make = make
        self.library = library

    def __str__(self) -> str:
        return f"{self.make.__name__}-{self.library}"

    def has(self, option: str) -> bool:
        """Return whether the optimizer has an option of this name."""
        return option in inspect.signature(self.make.__init__).parameters

    @property
    def needs_closure(self) -> bool:
        """Return whether a step needs a closure."""
        closure = inspect.signature(self.make.step).parameters["closure"]
        return closure.default is inspect.Parameter.empty

    @staticmethod
    def usable(make: Any, library: str) -> bool:
        """Return whether an optimizer can be given gradients of a library's arrays."""
        if not getattr(make, "takes_dense_gradients", True):
            return False
        parameters = inspect.signature(make.step).parameters
        if library == "plait":
            return True
        return "grads" in parameters or make.__module__.startswith("plait_optim")

    def array(self, value: Array) -> Any:
        """Return a copy of an array in this case's library."""
        if self.library == "numpy":
            return value.copy()
        return plait_abi.require("core").from_numpy(value.copy())

    def problem(
        self, *shapes: tuple[int, ...], dtype: str = "float64", aim: bool = True
    ) -> Problem:
        """Return parameters of some shapes, always the same."""
        rng = np.random.default_rng(0)
        values = [np.asarray(rng.standard_normal(s) + 1, "float64") for s in shapes]
        aims = [np.asarray(rng.standard_normal(s), "float64") for s in shapes]
        return Problem([self.array(v.astype(dtype)) for v in values], aims if aim else None)

    def step(self, optimizer: Any, problem: Problem) -> Any:
        """Take one step; return the result of `step`."""
        if self.needs_closure:
            return optimizer.step(self.closure(problem))
        grads = [None if g is None else self.array(g) for g in problem.gradients()]
        if self.library == "numpy":
            return optimizer.step(grads=grads)
        for param, grad in zip(problem.params, grads, strict=True):
            param.grad = grad
        return optimizer.step()

    def closure(self, problem: Problem) -> Any:
        """Return a closure for the loss, with the gradients if they cannot be in ``.grad``."""

        def closure() -> Any:
            grads = [None if g is None else self.array(g) for g in problem.gradients()]
            if self.library == "numpy":
                return problem.loss(), grads
            for param, grad in zip(problem.params, grads, strict=True):
                param.grad = grad
            return problem.loss()

        return closure


def optimizer_cases(provider: str | None) -> Iterator[Case]:
    """Yield ``module:Name`` and others after commas, or all optimizers of the package in use."""
    if provider is None:
        package = plait_abi.require("optim")
        base = package.Optimizer
        public = [getattr(package, name) for name in package.__all__]
        makes = [c for c in public if inspect.isclass(c) and issubclass(c, base) and c is not base]
    else:
        makes = []
        for name in provider.split(","):
            module, _, attribute = name.partition(":")
            makes.append(getattr(importlib.import_module(module), attribute))
    for make in makes:
        for library in ("numpy", "plait"):
            if Case.usable(make, library):
                yield Case(make, library)
