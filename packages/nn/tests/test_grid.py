import numpy as np
import pytest

import plait_core as pc
from plait_nn import functional as F


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_the_identity_samples_the_image_itself(draw, mode, align):
    image = pc.tensor(draw(1, 2, 3, 4))
    same = pc.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype=pc.float64)
    grid = F.affine_grid(same, (1, 2, 3, 4), align)
    result = F.grid_sample(image, grid, mode, align_corners=align)
    np.testing.assert_allclose(result.numpy(), image.numpy(), atol=1e-12)


def test_outside():
    image = pc.tensor([[[[1.0, 2.0, 4.0]]]])
    grid = pc.tensor([[[[-3.0, 0.0], [1.5, 0.0], [0.5, 0.0]]]])
    expected = {"zeros": [0.0, 2.0, 3.0], "border": [1.0, 4.0, 3.0], "reflection": [4.0, 3.0, 3.0]}
    for padding, values in expected.items():
        result = F.grid_sample(image, grid, padding_mode=padding, align_corners=True)
        assert result.flatten().tolist() == values


def test_errors_name_the_shapes():
    with pytest.raises(pc.ShapeError, match=r"grid_sample: .*\(1, 1, 2, 2\) and \(1, 2, 2, 3\)"):
        F.grid_sample(pc.ones(1, 1, 2, 2), pc.ones(1, 2, 2, 3))
    with pytest.raises(pc.ShapeError, match=r"affine_grid: .*\(1, 2, 2\) and \(1, 1, 2, 2\)"):
        F.affine_grid(pc.ones(1, 2, 2), (1, 1, 2, 2))
    with pytest.raises(
        ValueError, match="`mode` must be bilinear, nearest or bicubic; got 'cubic'"
    ):
        F.grid_sample(pc.ones(1, 1, 2, 2), pc.ones(1, 2, 2, 2), "cubic")
    with pytest.raises(ValueError, match=r"bicubic is for images .*\(1, 1, 2, 2, 2\)"):
        F.grid_sample(pc.ones(1, 1, 2, 2, 2), pc.ones(1, 2, 2, 2, 3), "bicubic")


@pytest.mark.parametrize("align", [False, True])
def test_bicubic_places_of_a_grid_resize(draw, align):
    image = pc.tensor(draw(1, 2, 4, 5))
    same = pc.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], dtype=pc.float64)
    grid = F.affine_grid(same, (1, 2, 7, 9), align)
    result = F.grid_sample(image, grid, "bicubic", "border", align)
    expected = F.interpolate(image, (7, 9), mode="bicubic", align_corners=align)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), atol=1e-12)


def test_bicubic_outside():
    image = pc.tensor([[[[1.0, 2.0, 4.0]]]])
    grid = pc.tensor([[[[0.5, 0.0], [1.5, 0.0], [-3.0, 0.0]]]])
    expected = {  # by PyTorch
        "zeros": [3.46875, 2.1875, 0.0],
        "border": [3.09375, 4.1875, 1.0],
        "reflection": [3.28125, 3.28125, 4.0],
    }
    for padding, values in expected.items():
        result = F.grid_sample(image, grid, "bicubic", padding, align_corners=True)
        np.testing.assert_allclose(result.flatten().numpy(), values, atol=1e-6)


def test_bicubic_gradients(draw):
    image = pc.tensor(draw(1, 2, 3, 4))
    for padding in ("zeros", "border", "reflection"):
        grid = pc.tensor(draw(1, 2, 2, 2)).requires_grad_()
        F.grid_sample(image, grid, "bicubic", padding, align_corners=False).sum().backward()
        slope, step = grid.grad, 1e-6
        for index in np.ndindex(1, 2, 2, 2):
            moved = []
            for sign in (1, -1):
                other = grid.detach().clone()
                other[index] += sign * step
                moved.append(F.grid_sample(image, other, "bicubic", padding, False).sum())
            numeric = (moved[0] - moved[1]).item() / (2 * step)
            assert abs(slope[index].item() - numeric) < 1e-5


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("dims", [2, 3])
def test_gradients_at_joints_are_those_of_one_side_or_between_them(draw, dims, padding, align):
    """At pixels, at borders and where the image is reflected, in every coordinate."""
    size, step = 3, 1e-7
    image = pc.tensor(draw(1, 2, *[size] * dims))
    pixels = [-4.5, -2, -1, -0.5, 0, 0.5, 1, 2, 2.5, 3, 4, 4.5, 6]
    joints = [2 * p / (size - 1) - 1 if align else (2 * p + 1) / size - 1 for p in pixels]

    def values(grid):
        return F.grid_sample(image, grid, "bilinear", padding, align).sum(1).flatten()

    for axis in range(dims):
        points = np.full((1, *[1] * (dims - 1), len(joints), dims), 0.1)
        points[..., axis] = joints
        grid = pc.tensor(points).requires_grad_()
        here = values(grid)
        here.sum().backward()
        slope = grid.grad[..., axis].flatten().numpy()
        sides = []
        for sign in (1, -1):
            moved = points.copy()
            moved[..., axis] += sign * step
            there = values(pc.tensor(moved)).numpy()
            sides.append(sign * (there - here.detach().numpy()) / step)
        low, high = np.minimum(*sides), np.maximum(*sides)
        assert (slope >= low - 1e-5).all() and (slope <= high + 1e-5).all()
        if padding != "zeros":  # as in PyTorch, borders count as outside, where nothing changes
            at_border = np.isin(pixels, [0, 2])
            assert (slope[at_border] == 0).all()
