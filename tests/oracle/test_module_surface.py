"""What a library sees of modules, against torch's: random programs, the same outcomes.

``PLAIT_SURFACE_PROGRAMS`` says how many programs, ``PLAIT_SURFACE_SEED`` the number of the first.
Texts of errors contain torch's. What differs on purpose, and is not in the programs:

- A `load_state_dict` that raises leaves a module as it was, if no code of the program ran.
- A state's ``_metadata`` is not written into: torch leaves ``assign_to_params_buffers`` there.
- Hooks of `register_backward_hook` get the gradients of our operator, whose inputs may have
  another order.
- Numbers of hooks; types of errors of operators; the text of `get_extra_state`.
- `share_memory` of tensors of which there are views.
- Without a text in torch: a hook that can't be called is refused when it is registered.
- `nn.RNN` and `nn.PReLU` have no attribute before ``training``.
"""

from __future__ import annotations

import os
import pathlib
import random
import sys
import warnings

import pytest
import torch

import plait

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from module_cases import CASES, Case
from module_surface_programs import generate
from module_surface_runs import Raised, run

PROGRAMS = int(os.environ.get("PLAIT_SURFACE_PROGRAMS", "400"))
FIRST = int(os.environ.get("PLAIT_SURFACE_SEED", "0"))


def same(ours: str, theirs: str) -> bool:
    """Whether two lines show the same; of errors ours may say more."""
    if not (isinstance(ours, Raised) and isinstance(theirs, Raised)):
        return ours == theirs
    kind, _, text = theirs.partition(": ")
    # an error of an operator, about which other tests are, has no text here
    return text == "" or (ours.startswith(f"{kind}: ") and text in ours)


def difference(seed: int) -> str:
    """What a program shows otherwise than with torch, or nothing."""
    program = generate(random.Random(seed))
    ours, theirs = run(program, plait), run(program, torch)
    pairs = list(zip(ours, theirs, strict=False))
    n = next((i for i, pair in enumerate(pairs) if not same(*pair)), None)
    if n is None:
        return "" if len(ours) == len(theirs) else f"seed {seed}: not as many lines"
    before = next((line for line in reversed(ours[:n]) if line.startswith(">")), "")
    return (
        f"PLAIT_SURFACE_SEED={seed} PLAIT_SURFACE_PROGRAMS=1: {before}\nshown    {ours[n]!r}\n"
        f"by torch {theirs[n]!r}\n{program}"
    )


def test_the_same_outcomes() -> None:
    result = filter(None, map(difference, range(FIRST, FIRST + PROGRAMS)))
    assert next(result, "") == ""


# attributes that torch has and we do not, with the reason
ABSENT = {
    "_flat_weight_refs": "memory that torch lays out for its device kernels",
    "_flat_weights": "a property, so that it is never out of date",
    "_load_hook": "lazy layers override _load_from_state_dict instead",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_attributes_of_layers_are_the_same_in_order(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's about old names and its fast paths
        theirs = getattr(torch.nn, case.name)(*case.args, **case.kwargs)
    ours = getattr(plait.nn, case.name)(*case.ours_args, **case.ours_kwargs)
    for own, other in zip(ours.modules(), theirs.modules(), strict=True):
        names = [name for name in other.__dict__ if name not in ABSENT]
        early = names[: names.index("training")]  # torch sets these before it calls __init__
        assert set(early) <= set(own.__dict__)
        assert [name for name in own.__dict__ if name not in early] == names[len(early) :]
        for kind in ("_parameters", "_buffers", "_modules"):
            assert list(getattr(own, kind)) == list(getattr(other, kind))
