"""Options that an optimizer derives from its parameters, and the order of its groups."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import plait_optim as optim
from plait_optim._options import COMMON, default_options, document_options

# in PyTorch's order, which is not everywhere that of its signatures
GROUPS = {
    optim.SGD: "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    optim.Adam: "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable "
    "fused decoupled_weight_decay",
    optim.AdamW: "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable "
    "fused decoupled_weight_decay",
    optim.Adamax: "lr betas eps weight_decay foreach maximize differentiable capturable",
    optim.NAdam: "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize "
    "foreach capturable differentiable",
    optim.RAdam: "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
    "differentiable",
    optim.Adadelta: "lr rho eps weight_decay maximize capturable foreach differentiable",
    optim.Adagrad: "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
    "differentiable fused",
    optim.RMSprop: "lr momentum alpha eps centered weight_decay capturable foreach maximize "
    "differentiable",
    optim.Rprop: "lr etas step_sizes foreach maximize differentiable capturable",
    optim.ASGD: "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
    optim.Adafactor: "lr beta2_decay eps d weight_decay foreach maximize",
    optim.Muon: "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
    optim.LBFGS: "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
}


@pytest.mark.parametrize("cls", GROUPS)
def test_groups_list_options_in_pytorch_s_order(cls: Any) -> None:
    optimizer = cls([np.ones((2, 2))])
    assert list(optimizer.defaults) == GROUPS[cls].split()
    assert list(optimizer.param_groups[0]) == ["params", *GROUPS[cls].split()]


@pytest.mark.parametrize("cls", GROUPS)
def test_defaults_are_those_of_the_signature(cls: Any) -> None:
    options = dict(inspect.signature(cls).parameters)
    options.pop("params")
    defaults = {name: option.default for name, option in options.items()}
    computed = {
        optim.AdamW: {"decoupled_weight_decay": True},
        optim.LBFGS: {"max_eval": 25},  # 1.25 times max_iter
    }
    assert cls([np.ones((2, 2))]).defaults == {**defaults, **computed.get(cls, {})}


@pytest.mark.parametrize("cls", sorted(set(GROUPS) - {optim.AdamW}, key=lambda cls: cls.__name__))
def test_each_parameter_has_one_line_in_the_docstring(cls: Any) -> None:
    section = inspect.getdoc(cls).split("\nArgs:\n")[1].split("\n\n")[0]
    entries = dict(re.findall(r"^    ([\w, ]+): (\S.*)$", section, re.MULTILINE))
    described = [name for several in entries for name in several.split(", ")]
    parameters = inspect.signature(cls).parameters
    assert sorted(described) == sorted(parameters)
    # one line for several that mean the same stands where the first of them does
    firsts = [several.split(", ")[0] for several in entries]
    assert firsts == [name for name in parameters if name in firsts]


def test_common_options_have_their_common_line_and_own_lines_win() -> None:
    assert f"weight_decay: {COMMON['weight_decay'].text}\n" in inspect.getdoc(optim.Adamax)
    assert "lr: the first s, at least 0.\n" in inspect.getdoc(optim.Rprop)
    assert COMMON["lr"].text not in inspect.getdoc(optim.Rprop)


def test_a_continued_line_stays_complete() -> None:
    class Wide(optim.Optimizer):
        """Wide.

        Args:
            params: arrays.
            width: a line
                that goes on.

        Example:
            none
        """

        def __init__(self, params: Any, lr: float = 1.0, width: int = 1) -> None:
            super().__init__(params, default_options(self, locals()))

    document_options(Wide)
    assert inspect.getdoc(Wide) == (
        "Wide.\n\nArgs:\n    params: arrays.\n    lr: learning rate, at least 0.\n"
        "    width: a line\n        that goes on.\n\n"
        "Raises:\n    ValueError: if an option is out of its range.\n\nExample:\n    none"
    )
    assert Wide([np.ones(1)], width=2).defaults == {"lr": 1.0, "width": 2}


def test_an_option_without_a_line_and_a_line_without_an_option() -> None:
    class Odd(optim.Optimizer):
        """Odd.

        Args:
            params: arrays.
            height: nobody's.

        Example:
            none
        """

        def __init__(self, params: Any, width: int = 1) -> None:
            super().__init__(params, default_options(self, locals()))

    words = r"Odd: options without a line in its docstring: \['width'\]; .*: \['height'\]"
    with pytest.raises(TypeError, match=words):
        document_options(Odd)


def test_the_code_of_a_constructor_names_its_arguments() -> None:
    for name in optim.__all__:
        kind = getattr(optim, name)
        if isinstance(kind, type) and issubclass(kind, optim.Optimizer):
            arguments = set(inspect.signature(kind.__init__).parameters)
            assert arguments <= set(kind.__init__.__code__.co_varnames), name
