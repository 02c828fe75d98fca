"""`functorch`: the package of PyTorch with older names of `torch.func`."""

import importlib.util
import sys

import pytest

from plait_torch import installed


def test_the_package_is_there_while_torch_is():
    with installed():
        import functorch
        import torch

        assert functorch.__version__ == torch.__version__
        assert importlib.util.find_spec("functorch") is not None
    assert "functorch" not in sys.modules


@pytest.mark.parametrize("name", ["dim", "compile"])
def test_modules_without_a_counterpart_say_what_to_use(name):
    with installed(), pytest.raises(ImportError, match=f"functorch.{name} is not available; "):
        importlib.import_module(f"functorch.{name}")


def test_functions_warn_and_compute():
    with installed():
        import functorch
        import torch

        x = torch.tensor([1.0, 2.0])
        with pytest.warns(FutureWarning, match="use `torch.func.grad` instead"):
            assert functorch.grad(lambda x: (x * x).sum())(x).tolist() == [2.0, 4.0]
        with pytest.warns(FutureWarning, match="use `torch.vmap` instead"):
            assert functorch.vmap(torch.sum)(torch.ones(3, 2)).tolist() == [2.0] * 3
        import functorch.experimental

        hessian = functorch.experimental.hessian(lambda x: (x**3).sum())(x)
        assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_as_functions_of_their_tensors():
    with installed():
        import functorch
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
            functorch.make_functional(model)
        function, parameters, buffers = functorch.make_functional_with_buffers(model)
        assert function.param_names == tuple(name for name, _ in model.named_parameters())
        assert function.buffer_names == tuple(name for name, _ in model.named_buffers())
        assert all(value.is_meta for value in function.parameters())
        x = torch.randn(4, 2)
        result = function(parameters, buffers, x)
        assert torch.equal(result, model(x))
        # the tensors are copies, and what the call has changed is in them
        assert torch.equal(buffers[0], model[1].running_mean)
        gradients = torch.autograd.grad(result.square().sum(), parameters)
        assert [value.shape for value in gradients] == [value.shape for value in parameters]
        assert all(value.grad is None for value in model.parameters())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_shared_parameters_are_one():
    with installed():
        import functorch
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = model[0].weight
        function, parameters = functorch.make_functional(model, disable_autograd_tracking=True)
        assert function.names_map["0.weight"] == ["0.weight", "1.weight"]
        assert len(parameters) == 3 and not any(value.requires_grad for value in parameters)
        x = torch.randn(3, 2)
        assert torch.equal(function(parameters, x), model(x))
        with pytest.raises(ValueError, match="the model has 3 parameters, got 2 tensors"):
            function(parameters[:2], x)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_ensembles():
    with installed():
        import functorch
        import torch
        from torch import nn

        models = [nn.Linear(2, 1) for _ in range(3)]
        function, parameters, buffers = functorch.combine_state_for_ensemble(models)
        assert buffers == () and not any(value.requires_grad for value in parameters)
        x = torch.randn(2)
        values = torch.vmap(function, (0, 0, None))(parameters, buffers, x)
        expected = torch.stack([model(x) for model in models])
        torch.testing.assert_close(values, expected)
        for wrong, text in (
            ([], "at least one model, got 0"),
            ([models[0], nn.ReLU()], "of the same class"),
            ([models[0], nn.Linear(2, 1).eval()], "same training/eval mode"),
        ):
            with pytest.raises(RuntimeError, match=text):
                functorch.combine_state_for_ensemble(wrong)


IMAGES = tuple(range(24))  # of shape (2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "sizes", "shape", "first"),
    [
        ("a b c -> c b a", {}, (4, 3, 2), [0, 12, 4, 16]),
        ("a b c->(a b) c", {}, (6, 4), [0, 1, 2, 3]),
        ("a (b d) c -> a d b c", {"d": 3}, (2, 3, 1, 4), [0, 1, 2, 3]),
        ("a b (c d) -> (a c) (b d)", {"c": 2}, (4, 6), [0, 1, 4, 5]),
        ("... c -> c ...", {}, (4, 2, 3), [0, 4, 8, 12]),
        ("a ... -> (a ...)", {}, (24,), [0, 1, 2, 3]),
        ("... b -> (...) b", {}, (6, 4), [0, 1, 2, 3]),
        ("a b ... c -> c ... b a", {}, (4, 3, 2), [0, 12, 4, 16]),
        ("a b c -> a b 1 c", {}, (2, 3, 1, 4), [0, 1, 2, 3]),
        ("a b c -> a b c ()", {}, (2, 3, 4, 1), [0, 1, 2, 3]),
    ],
)
def test_dimensions_by_names(pattern, sizes, shape, first):
    with installed():
        import torch
        from functorch.einops import rearrange

        assert rearrange is torch.func.rearrange
        x = torch.tensor(IMAGES).reshape(2, 3, 4)
        result = torch.func.rearrange(x, pattern, **sizes)
        assert tuple(result.shape) == shape and result.flatten().tolist()[:4] == first
        stacked = torch.func.rearrange([x, x + 24], "n a b c -> a b c n")
        assert stacked.flatten().tolist()[:4] == [0, 24, 1, 25]


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        ("a b c -> a b", {}),
        ("a b -> b a", {}),
        ("a b c -> a b c d", {}),
        ("a a b -> b a", {}),
        ("a (b d) c -> a d b c", {}),
        ("a (b d) c -> a d b c", {"b": 2, "d": 2}),
        ("a (b d) c -> a d b c", {"b": 0}),
        ("a b c -> a b c", {"a": 3}),
        ("a b c -> a b c", {"z": 3}),
        ("a b c", {}),
        ("a b (c -> a b c", {}),
        ("a b c) -> a b c", {}),
        ("a 2 c -> a c", {}),
        ("a 1 c -> a c", {}),
        ("a (...) -> ...", {}),
        ("a b c -> (...) a b c", {}),
        ("a b c d ... -> a b c d ...", {}),
        ("_a b c -> b _a c", {}),
    ],
)
def test_patterns_that_do_not_fit(pattern, sizes):
    with installed():
        import torch

        with pytest.raises(ValueError, match="rearrange: "):
            torch.func.rearrange(torch.tensor(IMAGES).reshape(2, 3, 4), pattern, **sizes)


def test_functions_without_mutations():
    with installed():
        import torch

        x = torch.ones(2)
        call = torch.func.functionalize(lambda x: x.add_(1), remove="mutations_and_views")
        assert call(x) is x and x.tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="`remove` must be"):
            torch.func.functionalize(torch.sin, remove="views")


def test_batch_norms_without_statistics():
    with installed():
        import torch

        model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        assert torch.func.replace_all_batch_norm_modules_(model) is model
        norm = model[0]
        assert norm.running_mean is None and norm.running_var is None
        assert not norm.track_running_stats and norm.num_batches_tracked is None
        x = torch.arange(6.0).reshape(2, 3)
        assert torch.equal(norm.eval()(x), norm.train()(x))
