"""The modules in which the names of each torch module are looked up: `modules.txt`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from plait import _aliases
from plait_torch import _backends, _named_only, _shown_names
from plait_torch._tables import sections

__all__ = ["FUNCTIONS", "LOOKED_THROUGH", "PLACES", "ROOTS", "sources"]

# the packages that PyTorch's distribution has and plait stands for
ROOTS = ("torch", "functorch")


def _places(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return where the names of torch modules are looked up, by their whole names."""
    result = {}
    for name, values in table.items():
        words = (f"plait.{name}" if word == "plait.*" else word for word in values.split())
        whole = name if name.split(".")[0] in ROOTS else f"torch.{name}"
        result[whole] = tuple(f"plait_torch.{w}" if w[0] == "_" else w for w in words)
    return result


PLACES = _places(sections()["always"])
PLACES |= _places({f"backends.{name}": f"_backends:{name}" for name in _backends.__all__})
for _name in _named_only.places():
    _whole = f"torch.{_name}".rstrip(".")
    _before = PLACES.get(_whole, ("plait_torch._packages",))
    PLACES[_whole] = (*_before, f"plait_torch._named_only:{_name or 'torch'}")
_WITH = {name: _places(sections()[name]) for name in ("plait.distributed", "plait.ray")}

# names that are functions of the parent package, also after an import of the module
FUNCTIONS = frozenset({"torch._higher_order_ops.associative_scan",
                       "torch._higher_order_ops.while_loop",
                       "torch.distributed._composable.replicate",
                       "torch.autograd.gradcheck", "torch.nn.utils.weight_norm",
                       "torch.nn.utils.spectral_norm", "torch.nn.parallel.parallel_apply",
                       "torch.nn.parallel.replicate"}) | _shown_names.functions()  # fmt: skip

# modules in whose `__dict__` libraries search for classes
LOOKED_THROUGH = frozenset(
    {"torch.nn.modules.activation", "torch.optim", "torch.optim.lr_scheduler"}
)

# optional packages of plait
_OPTIONAL = {"torch.distributions": "plait.distributions",
             "torch.multiprocessing": "plait.multiprocessing"}  # fmt: skip
_BESIDE = {"torch.multiprocessing": ("plait_torch._multiprocessing",)}


def sources(fullname: str) -> tuple[str, ...] | None:
    """Return where the names of a torch module are looked up; None: there is no such module."""
    return _shown_names.with_names(fullname, _listed(fullname))


def _listed(fullname: str) -> tuple[str, ...] | None:
    results: list[str] = []
    for package, places in _WITH.items():
        if fullname in places and _is_there(package):
            results += places[fullname]
    if results:  # before what exists by name only
        return tuple(dict.fromkeys([*results, *PLACES.get(fullname, ())]))
    if fullname in PLACES:
        return PLACES[fullname]
    for name, real in _OPTIONAL.items():
        if fullname == name and _is_there(real):
            return (*_BESIDE.get(name, ()), real)
        inner = fullname.removeprefix(name + ".")
        # torch.distributions.normal: its own module, or a view of the package
        if inner != fullname and _is_there(real):
            if "." not in inner and _holds(real, inner):
                # with what PyTorch's module imports: libraries take classes from there
                return (f"{real}.{inner}", real) if inner in _IMPORTING else (f"{real}.{inner}",)
            if name == "torch.distributions" and inner in _DISTRIBUTIONS:
                return (real, real)
    return None


def _holds(real: str, inner: str) -> bool:
    """Return whether a package of plait has a module."""
    package = importlib.import_module(real).__name__
    return importlib.util.find_spec(f"{package}.{inner}") is not None


def _is_there(real: str) -> bool:
    """Return whether a package of plait is installed."""
    name = real.removeprefix("plait.")
    if _aliases.is_alias(name):
        return _aliases.is_installed(name)
    return importlib.util.find_spec(real) is not None


_IMPORTING = ("multivariate_normal", "normal")
_DISTRIBUTIONS = (
    "bernoulli", "beta", "binomial", "categorical", "cauchy", "constraints", "dirichlet",
    "distribution", "exp_family", "exponential", "gamma", "geometric", "gumbel", "half_normal",
    "independent", "kl", "laplace", "lkj_cholesky",
    "log_normal", "mixture_same_family", "multinomial",
    "multivariate_normal", "normal", "one_hot_categorical", "poisson", "relaxed_bernoulli",
    "relaxed_categorical", "studentT", "transformed_distribution", "transforms", "uniform",
    "wishart",
)  # fmt: skip
