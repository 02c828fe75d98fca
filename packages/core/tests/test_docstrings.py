"""Every public name has a docstring with an example, and the examples print what they show."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import plait_core as pc
import plait_core.array_api as xp

# what some examples show core with
BESIDE = ("plait_autograd", "plait_multiprocessing", "plait_nn")
ABSENT = [name for name in BESIDE if importlib.util.find_spec(name) is None]
SPACES: dict[str, Any] = {
    "plait_core": pc,
    "plait_core.Tensor": pc.Tensor,
    "plait_core.array_api": xp,
    "plait_core.array_api.fft": xp.fft,
    "plait_core.array_api.linalg": xp.linalg,
    "plait_core.fft": pc.fft,
    "plait_core.linalg": pc.linalg,
    "plait_core.sparse": pc.sparse,
    "plait_core.special": pc.special,
}


def is_value(member: Any) -> bool:
    """Numbers (pi, newaxis), dtypes and memory formats are values: their types are documented."""
    return member is None or isinstance(member, (int, float, str, pc.dtype, ModuleType))


def names_of(space: Any) -> list[str]:
    if space is pc.Tensor:
        return [name for name in dir(space) if not name.startswith("_")]
    operators = [name for name in vars(space) if isinstance(vars(space)[name], type(pc.add))]
    return sorted({*space.__all__, *operators})


def members() -> Iterator[tuple[str, str, str]]:
    """Yield all public names with their docstrings: (namespace, name, text)."""
    for namespace, space in SPACES.items():
        for name in names_of(space):
            member = getattr(space, name)  # a property of the class is the property itself
            if not is_value(member):
                yield namespace, name, inspect.getdoc(member) or ""


def can_run(text: str) -> bool:
    imports = [line for line in text.splitlines() if ">>> import " in line]
    return not any(name in line for line in imports for name in ABSENT)


MEMBERS = list(members())
# a method that is an operator has the docstring of the function: each text runs once
TEXTS = {text: f"{namespace}.{name}" for namespace, name, text in MEMBERS if ">>>" in text}
EXAMPLES = {name: text for text, name in TEXTS.items() if can_run(text)}


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Restore the settings that an example changes, also where it fails."""
    state, threads = pc.get_rng_state(), pc.get_num_threads()
    yield
    pc.set_default_dtype(pc.float32)
    pc.set_printoptions(profile="default")
    pc.set_batch_invariant(False)
    pc.set_winograd("auto")
    pc.set_num_threads(threads)
    pc.set_rng_state(state)


def test_the_walk_finds_the_names() -> None:
    results = {f"{namespace}.{name}" for namespace, name, _ in MEMBERS}
    assert {"plait_core.add", "plait_core.tensor", "plait_core.Tensor.add_"} <= results
    assert {"plait_core.Tensor.shape", "plait_core.linalg.inv", "plait_core.fft.fft"} <= results
    assert {"plait_core.array_api.sum", "plait_core.array_api.fft.rfft"} <= results
    assert "plait_core.pi" not in results and "plait_core.float32" not in results


@pytest.mark.parametrize("namespace", SPACES)
def test_all_have_an_example(namespace: str) -> None:
    ours = [(name, text) for where, name, text in MEMBERS if where == namespace]
    assert ours
    assert not [name for name, text in ours if ">>>" not in text]


@pytest.mark.parametrize("namespace", SPACES)
def test_all_have_docstrings(namespace: str) -> None:
    """Docstrings have a sentence besides signature and example."""
    silent = []
    for where, name, text in MEMBERS:
        lines = text.partition(">>>")[0].replace("Example:", "").splitlines()
        if where == namespace and not any(
            len(line.split()) > 1 and "->" not in line for line in lines
        ):
            silent.append(name)
    assert not silent


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, 0)
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_a_form_in_place_shows_itself() -> None:
    """Also where it is no method, and where the example of the function would not fit."""
    add, gt = pc.Tensor.add_.__doc__, pc.Tensor.gt_.__doc__
    assert "pc.tensor([1, 2]).add_(10)" in add and "add_(input: Tensor | Number" in add
    assert "pc.threshold_(pc.tensor(" in pc.threshold_.__doc__
    assert ".gt_(2)" in gt and "[0, 0, 1]" in gt
    assert "out" not in add and "    out: A tensor" in pc.add.__doc__
    assert "add_(" not in pc.add.__doc__
