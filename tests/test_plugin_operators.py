"""Operators from a C file: derivatives through the ABI in both modes, and operators without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins import EXAMPLES, compiled

import plait_abi
import plait_autograd as pa
import plait_core as pc
import plait_torch
from plait_autograd import forward_ad

# operators whose rules for vmap are wrong, or of a later version
WRONG_RULES = """
#include <plait/abi.h>
static const plait_runtime *runtime;
static plait_status negative(plait_call *c) {
  plait_call inner = {.size = sizeof inner, .n_in = 1, .n_out = 1, .op = runtime->op("neg"),
                      .in = c->in, .out = c->out, .thread = c->thread};
  return runtime->call(&inner);
}
static plait_status number(plait_call *c) {
  return runtime->result(c, 0, c->in[0].u.t->dl.dtype, 0, NULL);
}
#define WRONG(name, ...) {.h = PLAIT_HEADER(plait_op_def), .decompose = negative, \\
                          .schema = name "(Tensor self) -> Tensor", __VA_ARGS__}
static const plait_op_def definitions[] = {
    WRONG("wrong_kind", .batching = "Ms"),   WRONG("wrong_loss", .batching = "La"),
    WRONG("wrong_letter", .batching = "sd"), WRONG("wrong_rows", .batching = "rq"),
    WRONG("later_kind", .batching = "?a"),   WRONG("code_elsewhere", .batching = "C."),
    WRONG("lost_samples", .batch = number)};
static plait_status init(const plait_runtime *given, const plait_plugin *self) {
  (void)self;
  runtime = given;
  plait_status s = PLAIT_OK;
  for (unsigned i = 0; s >= 0 && i < sizeof definitions / sizeof *definitions; i++)
    s = given->define(given->thread(), definitions + i, NULL);
  return s;
}
const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "wrong-rules", "1", 0, init, NULL};
"""


@pytest.fixture(scope="module")
def operators() -> Iterator[tuple[Any, Any]]:
    plait_abi.load(str(compiled(EXAMPLES / "operator.c")))
    yield plait_abi.operator("example_cube"), plait_abi.operator("example_tent")
    plait_abi.detach("example-operator")


def points(**options: Any) -> Any:
    return pc.tensor([[0.5, -1.0], [2.0, 0.0]], dtype=pc.float64, **options)


def test_the_derivative_and_its_derivatives(operators: tuple[Any, Any]) -> None:
    cube, _ = operators
    x = points(requires_grad=True)
    assert cube(x).tolist() == (x * x * x).tolist()
    assert cube(x).grad_fn.name() == "ExampleCubeBackward"
    assert pa.gradcheck(cube, x) and pa.gradgradcheck(cube, x)
    assert pa.gradcheck(lambda x: cube(x.t()), x)
    assert cube(x.float()).dtype is pc.float32


def test_flags_mark_functions(operators: tuple[Any, Any]) -> None:
    cube, _ = operators
    assert pc.example_cube(points()).tolist() == cube(points()).tolist()
    assert not hasattr(pc, "example_tent") and not hasattr(pc.Tensor, "example_cube")


def test_forward_mode_transposes_it(operators: tuple[Any, Any]) -> None:
    cube, _ = operators
    x = points()
    with forward_ad.dual_level():
        y = cube(forward_ad.make_dual(x, pc.ones(2, 2, dtype=pc.float64)))
        assert forward_ad.unpack_dual(y).tangent.tolist() == (3 * x * x).tolist()
        z = forward_ad.make_dual(points(requires_grad=True), pc.ones(2, 2, dtype=pc.float64))
        (g,) = pa.grad(cube(z).sum(), z)
        assert forward_ad.unpack_dual(g).tangent.tolist() == (6 * x).tolist()


def test_a_write_to_a_saved_tensor_is_detected(operators: tuple[Any, Any]) -> None:
    cube, _ = operators
    x = points(requires_grad=True) * 1
    y = cube(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"example_cube: `self` .* was overwritten by `add_`"):
        y.sum().backward()


def test_without_a_derivative_the_error_names_the_operator(operators: tuple[Any, Any]) -> None:
    _, tent = operators
    x = points(requires_grad=True)
    assert tent(x.detach()).tolist() == [[0.5, 0.0], [0.0, 1.0]]
    y = tent(x)
    with pytest.raises(NotImplementedError, match="example_tent"):
        y.sum().backward()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(points(), points())
        with pytest.raises(NotImplementedError, match="example_tent: no forward derivative"):
            tent(dual)


def test_what_it_does_not_take(operators: tuple[Any, Any]) -> None:
    cube, _ = operators
    with pytest.raises(TypeError, match="example_cube: `self` must be float32 or float64"):
        cube(pc.tensor([1]))


def test_vmap_calls_an_operator_once_by_the_rule_that_it_brings(operators: tuple[Any, Any]) -> None:
    """`example_cube` has a rule that is data, `example_tent` one in C."""
    from plait.profiler import profile

    with plait_torch.installed():
        from torch import vmap
    cube, tent = operators
    assert (cube.batching, cube.sharding) == (("ps",), ("ee",))
    assert (tent.batching, tent.sharding) == ((None,), (None,))
    x = pc.arange(12, dtype=pc.float64).reshape(4, 3) / 6
    for operator in (cube, tent):
        with profile() as recorded:
            result = vmap(operator)(x)
        assert result.tolist() == operator(x).tolist()
        assert [e.name for e in recorded.events()].count(operator.__name__) <= 2
        assert vmap(vmap(operator))(x).tolist() == operator(x).tolist()
        assert vmap(operator)(pc.zeros(0, 3)).shape == (0, 3)
    # derivatives are calls of other operators, which have rules of their own
    samples = x.clone().requires_grad_()
    vmap(cube)(samples).sum().backward()
    assert pc.allclose(samples.grad, 3 * x * x)


def test_what_a_rule_for_vmap_cannot_do_is_done_for_each_sample(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text(WRONG_RULES)
    plait_abi.load(str(compiled(source)))
    with plait_torch.installed():
        from torch import vmap
    x = pc.arange(12, dtype=pc.float64).reshape(4, 3)
    for name in (
        "wrong_kind", "wrong_loss", "wrong_letter", "wrong_rows", "later_kind", "code_elsewhere",
        "lost_samples",
    ):  # fmt: skip
        assert vmap(plait_abi.operator(name))(x).tolist() == (-x).tolist(), name
