"""Names that libraries need at their start, and what they do."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import pickle
from typing import Any

import pytest

from plait_torch import _dir_names
from plait_torch._finder import Facade


def test_modules_have_the_classes_of_pytorch(torch: Any) -> None:
    """Registries count classes of modules; the names of a module are looked up in larger ones."""
    for name, text in _dir_names.table().items():
        module = importlib.import_module(name)
        assert isinstance(module, Facade), name
        classes = {each for each, _ in inspect.getmembers(module, inspect.isclass)}
        assert classes <= set(text.split()), name
    layers = inspect.getmembers(torch.nn.modules.activation, inspect.isclass)
    assert len([1 for _, each in layers if issubclass(each, torch.nn.Module)]) == 31
    assert hasattr(torch.nn.modules.activation, "Conv2d")  # reached, and still not counted
    assert "Conv2d" not in dir(torch.nn.modules.activation)
    torch.nn.modules.activation.Own = torch.nn.ReLU
    assert "Own" in dir(torch.nn.modules.activation)
    del torch.nn.modules.activation.Own


def test_hooks_of_norms(torch: Any) -> None:
    from torch.nn.utils.spectral_norm import SpectralNorm
    from torch.nn.utils.weight_norm import WeightNorm

    layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2), dim=None)
    (hook,) = layer._forward_pre_hooks.values()
    assert type(hook) is WeightNorm and (hook.name, hook.dim) == ("weight", -1)
    layer.weight_g.data.mul_(2)
    assert torch.allclose(hook.compute_weight(layer).norm(), layer.weight_g)
    hook.remove(layer)
    assert isinstance(layer.weight, torch.nn.Parameter) and "weight_g" not in layer._parameters
    layer = torch.nn.Linear(3, 2)
    hook = SpectralNorm.apply(layer, "weight", 1, 0, 1e-12)
    assert hook.compute_weight(layer, do_power_iteration=False).shape == (2, 3)
    assert hook.reshape_weight_to_matrix(torch.ones(2, 3, 4)).shape == (2, 12)
    with pytest.raises(ValueError, match="`n_power_iterations` must be positive; got 0"):
        SpectralNorm(n_power_iterations=0)


def test_ranges_of_nvtx_decorate(torch: Any) -> None:
    @torch.cuda.nvtx.range("a part")
    def twice(x: int) -> int:
        return 2 * x

    assert twice(3) == twice(4) - 2 == 6


def test_memory_is_filled_for_deterministic_algorithms(torch: Any) -> None:
    settings = torch.utils.deterministic
    plain = torch.empty
    torch.use_deterministic_algorithms(True)
    try:
        for dtype, value in (
            (torch.int8, 127), (torch.int64, 2**63 - 1), (torch.bool, True), (torch.uint8, 255),
        ):  # fmt: skip
            x = torch.zeros(2, dtype=dtype)
            for new in (torch.empty_like(x), x.new_empty(2), torch.empty(2, dtype=dtype)):
                assert new.tolist() == [value, value]
        assert torch.empty_strided((2,), (1,)).isnan().all()
        assert torch.empty(1, dtype=torch.complex64).real.isnan()
        grown = torch.zeros(2).resize_(4)
        assert grown[:2].tolist() == [0, 0] and grown[2:].isnan().all()
        settings.fill_uninitialized_memory = False
        assert torch.zeros(2).resize_(1).tolist() == [0] and torch.empty(2).shape == (2,)
        settings.fill_uninitialized_memory = "no"
        with pytest.raises(RuntimeError, match="must be a bool; got str"):
            torch.empty(2)
    finally:
        settings.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)
    assert torch.empty is plain


def test_pipes_are_sent_to_other_processes(torch: Any) -> None:
    from torch.utils.data.datapipes import datapipe
    from torch.utils.data.datapipes.iter import IterableWrapper

    pipe = datapipe._IterDataPipeSerializationWrapper(IterableWrapper([1, 2, 3]))
    again = pickle.loads(pickle.dumps(pipe))
    assert isinstance(again, torch.utils.data.IterDataPipe)
    assert list(again) == [1, 2, 3] and len(again) == 3
    with pytest.raises(RuntimeError, match="`iter` must be called before `next`"):
        next(pickle.loads(pickle.dumps(pipe)))

    fetch = torch.utils.data._utils.fetch
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        assert issubclass(kind, fetch._BaseDatasetFetcher)
    with pytest.raises(NotImplementedError, match="must define `fetch`"):
        fetch._BaseDatasetFetcher([1], False, list).fetch([0])


def test_parts_of_normal_distributions(torch: Any) -> None:
    from torch.distributions import multivariate_normal as module

    root = torch.randn(4, 3, 3, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)
    scale = module._precision_to_scale_tril(precision)
    assert torch.allclose(scale @ scale.mT, torch.linalg.inv(precision))
    assert torch.equal(scale, scale.tril())
    x = torch.randn(4, 3, dtype=torch.float64)
    expected = (x.unsqueeze(-2) @ precision @ x.unsqueeze(-1)).reshape(4)
    assert torch.allclose(module._batch_mahalanobis(scale, x), expected)
    assert torch.allclose(module._batch_mv(precision, x), (precision @ x[..., None])[..., 0])


def test_embeddings_for_the_projector(torch: Any, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    points = torch.tensor([[1.0, 2.5], [3.0, 4.0]])
    with SummaryWriter(tmp_path) as writer:
        pictures = torch.ones(2, 3, 4, 5)
        writer.add_embedding(points, ["a", "b"], pictures, global_step=3, tag="x/y")
        writer.add_embedding(points, [["a", 1], ["b", 2]], metadata_header=["name", "class"])
        for wrong in (points[0], points[:, :, None]):
            with pytest.raises(ValueError, match=r"`mat` must have the shape \(points, numbers\)"):
                writer.add_embedding(wrong)
        with pytest.raises(ValueError, match="`metadata` must have an entry for each of the 2"):
            writer.add_embedding(points, ["a"])
        with pytest.warns(UserWarning, match="of this tag and step are replaced"):
            writer.add_embedding(points)
    first, second = tmp_path / "00003" / "x%2fy", tmp_path / "00000" / "default"
    assert (first / "tensors.tsv").read_text() == "1.0\t2.5\n3.0\t4.0\n"
    assert (first / "metadata.tsv").read_text() == "a\nb\n"
    assert (second / "metadata.tsv").read_text() == "name\tclass\na\t1\nb\t2\n"
    # as PyTorch 2.13: two pictures of 4 x 5 in a row, in a square of 10 x 10
    assert (first / "sprite.png").read_bytes()[16:24] == bytes([0, 0, 0, 10, 0, 0, 0, 10])
    listing = (tmp_path / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "x/y:00003"' in listing and 'tensor_path: "00000/default/' in listing


def test_scales_of_half_precision(torch: Any) -> None:
    found, steps = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    bad = torch.tensor([1.0, float("inf")])
    torch._amp_foreach_non_finite_check_and_unscale_([bad], found, torch.tensor([0.5]))
    assert found.item() == 1 and bad[0] == 0.5
    scale = torch.tensor([8.0])
    for expected in (8.0, 16.0, 16.0):
        torch._amp_update_scale_(scale, steps, torch.zeros(1), 2.0, 0.5, 2)
        assert scale.item() == expected
    with pytest.raises(RuntimeError, match=r"`inv_scale` must have one element; got \(2,\)"):
        torch._amp_foreach_non_finite_check_and_unscale_([bad], found, torch.ones(2))


def test_what_is_refused_says_so(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"torch\.solve: .* now removed; .*torch\.linalg\.solve"):
        torch.solve(torch.ones(2, 2), torch.ones(2, 2))
    for name in ("_inductor.compile_fx.compile_fx", "ao.quantization.prepare_qat"):
        module, _, attribute = name.rpartition(".")
        function = getattr(importlib.import_module(f"torch.{module}"), attribute)
        with pytest.raises(NotImplementedError, match="plait does not have it"):
            function()

    class Observer(torch.ao.quantization.observer.UniformQuantizationObserverBase):
        pass

    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        Observer()
    with pytest.raises(NotImplementedError, match="only False is supported"):
        torch.__future__.set_overwrite_module_params_on_conversion(True)


def test_settings_are_one_object(torch: Any) -> None:
    config = torch._dynamo.config
    before = config.cache_size_limit
    with config.patch(cache_size_limit=1):
        assert torch._dynamo.config.cache_size_limit == 1
    assert config.cache_size_limit == before == 8
    assert torch.jit.set_fusion_strategy([("STATIC", 1)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        ("padding", ["ConstantPad", "ReflectionPad", "ReplicationPad", "CircularPad"]),
        ("pooling", ["MaxPool", "AvgPool", "LPPool", "MaxUnpool", "AdaptiveMaxPool"]),
        ("pooling", ["AdaptiveAvgPool"]),
    ],
)
def test_bases_of_layers_for_any_number_of_dimensions(
    torch: Any, module: str, kinds: list[str]
) -> None:
    for kind in kinds:
        base = getattr(getattr(torch.nn.modules, module), f"_{kind}Nd")
        for dims in (1, 2, 3):
            layer = getattr(torch.nn, f"{kind}{dims}d")
            assert issubclass(layer, base) and layer is not base
        assert not issubclass(torch.nn.Linear, base) and not isinstance(torch.nn.ReLU(), base)
