"""Batching rules are those of operators' definitions: no list of names, and each rule in code."""

from __future__ import annotations

import plait_core as pc
from plait_abi import binding
from plait_func import _batched_draws, _batching_rules
from plait_ops import specs


def test_rules_in_code_are_those_that_definitions_name() -> None:
    code: dict[bool, set[str]] = {False: set(), True: set()}
    for spec in specs.all():
        if spec.batching[:1].isupper():
            code[spec.random].add(spec.name)
    assert set(_batching_rules._CODE) == code[False]
    assert set(_batched_draws._CODE) == code[True]
    # rules in code are counted: a new one is a decision
    assert (len(code[False]), len(code[True])) == (40, 4)


def test_every_rule_of_a_definition_is_found() -> None:
    for spec in specs.all():
        assert binding.operator(spec.name).batching[0] == (spec.batching or None), spec
        if not spec.random:
            rule = _batching_rules.rule_of(spec.name)
            loops = rule is _batching_rules.by_loop or rule is None
            assert loops == (not spec.batching), spec
    assert pc.add.batching == ("psss",)
