"""`torch.onnx.export` with PyTorch's arguments."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(name="net")
def a_net(torch: Any) -> Any:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.drop = torch.nn.Linear(3, 2), torch.nn.Dropout()
            self.exporting: list[bool] = []

        def forward(self, x: Any, scale: Any = None) -> Any:
            self.exporting.append(torch.onnx.is_in_onnx_export())
            y = self.drop(self.layer(x)).relu()
            return y if scale is None else y * scale

    return Net()


def test_without_the_package_the_error_names_it(
    torch: Any, net: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plait_onnx", None)
    with pytest.raises(ModuleNotFoundError, match="pip install plait-onnx"):
        torch.onnx.export(net, torch.ones(1, 3), "file")


def test_the_older_arguments(torch: Any, net: Any) -> None:
    pytest.importorskip("plait_onnx")
    onnx = pytest.importorskip("onnx.reference")
    file = io.BytesIO()
    options = {"input_names": ["rows"], "output_names": ["scores"], "opset_version": 17}
    result = torch.onnx.export(
        *(net, torch.randn(2, 3), file),
        dynamo=False,
        dynamic_axes={"rows": {0: "batch size"}, "scores": {0: "batch size"}},
        export_params=True,
        do_constant_folding=True,
        verbose=False,
        **options,
    )
    assert result is None and net.training and net.drop.training
    assert net.exporting and all(net.exporting) and not torch.onnx.is_in_onnx_export()
    run = onnx.ReferenceEvaluator(file.getvalue())
    assert (run.input_names, run.output_names, run.opsets) == (["rows"], ["scores"], {"": 17})
    x = torch.randn(5, 3)
    (scores,) = run.run(None, {"rows": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(scores), net.eval()(x).detach())


def test_a_program(torch: Any, net: Any, tmp_path: Path) -> None:
    pytest.importorskip("plait_onnx")
    onnx = pytest.importorskip("onnx")
    net.eval()
    scale, free = torch.tensor(2.0), {"x": {0: torch.export.Dim("n")}, "scale": None}
    program = torch.onnx.export(
        net, (torch.ones(2, 3),), kwargs={"scale": scale}, dynamic_shapes=free
    )
    assert isinstance(program, torch.onnx.ONNXProgram)
    path = tmp_path / "net.onnx"
    program.save(path)
    graph = onnx.load(path).graph
    assert [entry.name for entry in graph.input] == ["x", "scale"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    program.save(path, keep_initializers_as_inputs=True)
    names = {entry.name for entry in onnx.load(path).graph.input}
    assert names >= {"x", "scale", "layer.weight", "layer.bias"}


def test_what_is_not_available(torch: Any, net: Any) -> None:
    pytest.importorskip("plait_onnx")
    for options in ({"export_params": False}, {"custom_opsets": {"mine": 1}}):
        with pytest.raises(NotImplementedError, match=next(iter(options))):
            torch.onnx.export(net, torch.ones(1, 3), **options)
