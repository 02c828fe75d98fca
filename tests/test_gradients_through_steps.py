"""Steps of optimizers are made of operators, which an engine differentiates."""

from __future__ import annotations

from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
from plait_optim._component import operator

# the number of lists of state, and numbers of each parameter
STEPS: dict[str, tuple[int, dict[str, Any]]] = {
    "sgd_step": (1, {"momentum": 0.9, "nesterov": True}),
    "adam_step": (3, {}),
    "nadam_step": (2, {"mu_products": [0.8]}),
    "radam_step": (2, {}),
    "adamax_step": (2, {}),
    "adagrad_step": (1, {}),
    "adadelta_step": (2, {}),
    "rmsprop_step": (3, {"momentum": 0.9}),
    "rprop_step": (2, {}),
    "asgd_step": (1, {"etas": [0.1], "mus": [0.5]}),
}


def doubles(*values: float) -> Any:
    return pc.tensor(values, dtype=pc.float64, requires_grad=True)


@pytest.mark.parametrize("name", STEPS)
def test_gradients_flow_through_a_step(name: str) -> None:
    lists, options = STEPS[name]

    def stepped(param: Any, grad: Any, state: Any, scale: Any) -> Any:
        scale = scale[0]
        p = param * 1
        references = [[state * 0.5**i] for i in range(lists)]
        operator(name)([p], [grad], *references, steps=[2], **options, grad_scale=scale)
        return (p, *(each for [each] in references))

    arguments = (
        doubles(0.5, 1.0, -1.0),
        doubles(1.0, -2.0, 3.0),
        doubles(2.0, 3.0, 2.5),
        doubles(0.5),
    )
    assert pa.gradcheck(stepped, arguments)


def test_a_leaf_is_not_stepped_with_its_history() -> None:
    with pytest.raises(RuntimeError, match="leaf"):
        operator("sgd_step")([doubles(1.0)], [doubles(1.0)], [], [1])


def test_gradients_flow_through_norms_and_averages() -> None:
    arguments = doubles(0.5, 1.0), doubles(1.0, -2.0)
    assert pa.gradcheck(lambda a, b: operator("grad_norm")([a, b]), arguments)

    def averaged(a: Any, b: Any) -> Any:
        average = a * 1
        operator("average_step")([average], [b], weight=0.3)
        return average

    assert pa.gradcheck(averaged, arguments)
