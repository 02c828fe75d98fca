"""`torch.utils.flop_counter`: operations of products, convolutions, attention, by module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def counted(torch: Any, function: Callable[[], Any], **options: Any) -> dict[str, dict[str, int]]:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False, **options) as counter:
        function()
    counts = counter.get_flop_counts()
    assert counter.get_total_flops() == sum(counts.get("Global", {}).values())
    return {name: {str(op): n for op, n in inner.items()} for name, inner in counts.items()}


def test_products(torch: Any) -> None:
    def ones(*shape: int) -> Any:
        return torch.ones(*shape, requires_grad=True)

    functional = torch.nn.functional
    for function, expected in (
        (lambda: ones(3, 4) @ ones(4, 5), {"aten.mm": 120}),
        (lambda: (ones(3, 4) @ ones(4, 5)).sum().backward(), {"aten.mm": 360}),
        (lambda: ones(2, 3, 4) @ ones(2, 4, 5), {"aten.bmm": 240}),
        (lambda: torch.addmm(ones(5), ones(3, 4), ones(4, 5)), {"aten.addmm": 120}),
        (lambda: torch.baddbmm(ones(5), ones(2, 3, 4), ones(2, 4, 5)), {"aten.baddbmm": 240}),
        (lambda: functional.linear(ones(2, 3, 4), ones(5, 4), ones(5)), {"aten.addmm": 240}),
        (lambda: functional.linear(ones(2, 3, 4), ones(5, 4)), {"aten.mm": 240}),
        (lambda: ones(3) + ones(3), {}),
    ):
        assert counted(torch, function).get("Global", {}) == expected


def test_convolutions(torch: Any) -> None:
    functional = torch.nn.functional
    from torch.utils.flop_counter import conv_flop_count

    x = torch.ones(2, 4, 9, requires_grad=True)
    weight = torch.ones(6, 2, 3, requires_grad=True)
    once = conv_flop_count((2, 4, 9), (6, 2, 3), (2, 6, 7))
    assert once == 2 * 2 * 7 * 36
    result = counted(torch, lambda: functional.conv1d(x, weight, groups=2).sum().backward())
    assert result["Global"] == {"aten.convolution": once, "aten.convolution_backward": 2 * once}
    x = torch.ones(2, 3, 4, 4, requires_grad=True)
    weight = torch.ones(3, 5, 3, 3, requires_grad=True)
    once = conv_flop_count((2, 3, 4, 4), (3, 5, 3, 3), (2, 5, 9, 9), transposed=True)
    assert once == 2 * 2 * 16 * 135
    result = counted(
        torch, lambda: functional.conv_transpose2d(x, weight, stride=2).sum().backward()
    )
    assert result["Global"] == {"aten.convolution": once, "aten.convolution_backward": 2 * once}


def test_attention_and_recurrent_layers(torch: Any) -> None:
    query = torch.ones(2, 4, 5, 8, requires_grad=True)
    key = torch.ones(2, 4, 6, 8, requires_grad=True)

    def attend() -> None:
        torch.nn.functional.scaled_dot_product_attention(query, key, key).sum().backward()

    one = 2 * 2 * 4 * 5 * 6 * 8
    assert counted(torch, attend)["Global"] == {
        "aten._scaled_dot_product_flash_attention": 2 * one,
        "aten._scaled_dot_product_flash_attention_backward": 5 * one,
    }
    x = torch.ones(5, 2, 3, requires_grad=True)
    for kind, gates in ((torch.nn.LSTM, 4), (torch.nn.GRU, 3)):
        result = counted(torch, lambda kind=kind: kind(3, 4)(x)[0].sum().backward())
        forward = 2 * 5 * 2 * (gates * 4) * (3 + 4)
        assert result["Global"] == {"aten.addmm": forward, "aten.mm": 2 * forward}


def test_modules(torch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    net, x = Net(), torch.ones(3, 4)
    with FlopCounterMode(depth=None) as counter:
        y = net(x)
        assert counter.get_total_flops() == 192  # also before the end
        y.sum().backward()
        x @ x.T
    counts = counter.get_flop_counts()
    assert set(counts) == {"Global", "Net", "Net.layers.0", "Net.layers.1"}
    aten = torch.ops.aten
    assert counts["Net.layers.1"] == {aten.addmm: 96, aten.mm: 192}
    assert counts["Net"] == {aten.addmm: 192, aten.mm: 288}
    assert counts["Global"] == {aten.addmm: 192, aten.mm: 288 + 72}
    printed = capsys.readouterr().out
    assert printed.strip() == counter.get_table().strip()
    assert "Net.layers.0" in printed and "% Total" in printed and " - aten.addmm" in printed
    assert "Net.layers.0" not in counter.get_table(depth=1)
    with pytest.warns(UserWarning, match="`mods` has no effect"):
        FlopCounterMode(net)


def test_formulas_of_a_program(torch: Any) -> None:
    from torch.utils.flop_counter import flop_registry, register_flop_formula

    aten = torch.ops.aten
    seen = []

    def relu(shape: Any, out_shape: Any = None) -> int:
        seen.append((shape, out_shape))
        return 7

    mapping = {aten.relu: relu}
    result = counted(torch, lambda: torch.ones(2, 3).relu(), custom_mapping=mapping)
    assert result["Global"] == {"aten.relu": 7} and seen[0] == ((2, 3), (2, 3))
    register_flop_formula([aten.tanh, aten.exp])(relu)
    try:
        result = counted(torch, lambda: torch.ones(2).tanh().exp())
        assert result["Global"] == {"aten.tanh": 7, "aten.exp": 7}
    finally:
        del flop_registry[aten.tanh], flop_registry[aten.exp]
    with pytest.raises(NotImplementedError, match="get_raw"):
        register_flop_formula(aten.tanh, get_raw=True)


def test_formulas_agree_with_the_costs_in_definitions(torch: Any) -> None:
    """The formulas are PyTorch's, by its names; what they count is what definitions say."""
    functional = torch.nn.functional

    def ones(*shape: int) -> Any:
        return torch.ones(*shape, requires_grad=True)

    x, weight = ones(2, 4, 9, 8), ones(6, 2, 3, 3)
    query, key = ones(2, 4, 5, 8), ones(2, 4, 6, 8)
    for function in (
        lambda: ones(3, 4) @ ones(4, 5),
        lambda: ones(2, 3, 4) @ ones(2, 4, 5),
        lambda: torch.addmm(ones(5), ones(3, 4), ones(4, 5)),
        lambda: functional.linear(ones(2, 3, 4), ones(5, 4), ones(5)),
        lambda: functional.conv2d(x, weight, stride=2, padding=1, groups=2),
        lambda: functional.conv1d(x[..., 0], weight[..., 0], groups=2),
        lambda: functional.conv_transpose2d(ones(2, 3, 4, 4), ones(3, 5, 3, 3), stride=2),
        lambda: functional.scaled_dot_product_attention(query, key, key),
    ):
        with torch.profiler.profile() as recorded:
            function()
        outer = [each for each in recorded.events() if each.cpu_parent is None]
        assert sum(each.flops for each in outer) == sum(counted(torch, function)["Global"].values())
