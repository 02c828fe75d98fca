"""Pooling of regions of interest: a grid of numbers of fixed size for each box in an image."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import (
    check,
    int32,
    int64,
    numel,
    part,
    require,
    require_same,
    result,
    sizes,
    to_dtype,
)

_ROIS = """
    `rois` is (k, 5), each (n, x1, y1, x2, y2): the index of the image, and the box, which is multiplied by `spatial_scale`.
    No gradient flows to `rois`.
"""
_ERRORS = """
    Dtypes: floating, the same for both. Raises: ShapeError for other shapes, ValueError for sizes below 1, DTypeError for
    other dtypes, IndexError for the index of an image that does not exist. torchvision has an operator of this name.
"""
_KERNEL = "in[0] is (n, c, h, w), in[1] (k, 5), of one floating dtype, any strides; the first column of in[1], rounded towards 0, is the index of an image, and an IndexError if there is no such image; the result is in C order and every element of it is written."
_BACK = "in[0] has the shape of the forward operator's result and one dtype with `rois`, any strides; in[2] is the shape (n, c, h, w) of the result, in C order, of which every element is written; sums are in the order of `rois`, whatever the number of threads."


@part
def check_regions(input, rois):
    check(
        input.ndim == 4 and rois.ndim == 2 and rois.shape[1] == 5,
        f"`input` must have shape (n, c, h, w) and `rois` (k, 5); got {input.shape} and {rois.shape}",
    )
    require("input", input.dtype, "floating")
    require_same("input", input, "rois", rois)


@part
def check_bins(pooled_height, pooled_width):
    check(
        pooled_height >= 1 and pooled_width >= 1 and pooled_height < 65536 and pooled_width < 65536,
        f"`pooled_height` and `pooled_width` must be in [1, 65536); got {pooled_height} and {pooled_width}",
        "ValueError",
    )


@part
def check_ratio(sampling_ratio):
    check(
        sampling_ratio < 65536,
        f"`sampling_ratio` must be below 65536; got {sampling_ratio}",
        "ValueError",
    )


@part
def check_sensitive(channels, pooled_height, pooled_width):
    check(
        channels % (pooled_height * pooled_width) == 0,
        f"the channels of `input` must be a multiple of {pooled_height} x {pooled_width}, the bins; got {channels}",
    )


@part
def check_gradient(grad, rois, size, channels, pooled_height, pooled_width):
    """`grad` has what a pooling of images of shape `size` gives for `rois`."""
    check(rois.ndim == 2 and rois.shape[1] == 5, f"`rois` must have shape (k, 5); got {rois.shape}")
    made = [rois.shape[0], channels, pooled_height, pooled_width]
    check(
        grad.shape == tuple(made),
        f"`grad` must have shape {tuple(made)} for images of shape {size}; got {grad.shape}",
    )
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "rois", rois)


@part
def check_size(size):
    sizes("size", size)
    check(len(size) == 4, f"`size` must be (n, c, h, w); got {size}")


# ---- samples between pixels ----------------------------------------------------------------------
roi_align = Operator(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio=-1, "
    "bool aligned=False) -> Tensor",
    doc=f"""
    Each box is cut into a grid of `pooled_height` x `pooled_width` bins; the result is the mean of samples of the image in
    each bin (He et al. 2017, Mask R-CNN). A bin has `sampling_ratio` x `sampling_ratio` samples at equal distances, or, if
    `sampling_ratio` is not positive, one sample for each pixel of its height and width, rounded up. A sample is
    interpolated between the four pixels around it; up to one pixel outside of the image it has the value at the border,
    farther outside it is 0. With `aligned` a box is shifted by half a pixel, so that the centres of pixels are at halves;
    without it, the sides of a box are taken as at least 1 long.
    {_ROIS}
    Shapes: `input` is (n, c, h, w), the result (k, c, pooled_height, pooled_width).
    {_ERRORS}
    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> image = pc.arange(16.0).reshape(1, 1, 4, 4)
    >>> operator("roi_align")(image, pc.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]]), 1.0, 2, 2).tolist()
    [[[[2.5, 3.5], [6.5, 7.5]]]]
    """,
    dtypes="floating",
    kernel=_KERNEL,
    variants="",
)
roi_align_backward = Operator(
    "roi_align_backward(Tensor grad, Tensor rois, int[] size, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    doc="The derivative of `roi_align` with respect to the images, of shape `size`.",
    dtypes="floating",
    kernel=_BACK,
    internal=True,
)
ps_roi_align = Operator(
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int sampling_ratio=-1)"
    " -> Tensor",
    doc=f"""
    `roi_align` in which each bin reads its own channels (Li et al. 2018, Light-Head R-CNN): bin (i, j) of channel o is the
    mean of samples of channel ``(o * pooled_height + i) * pooled_width + j``. Boxes are shifted by half a pixel. A box
    without area has no samples and gives nan.
    {_ROIS}
    Shapes: `input` is (n, o * pooled_height * pooled_width, h, w), the result (k, o, pooled_height, pooled_width).
    {_ERRORS}
    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> image = pc.arange(36.0).reshape(1, 4, 3, 3)
    >>> operator("ps_roi_align")(image, pc.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]]), 1.0, 2, 2).tolist()
    [[[[0.0, 10.0], [21.0, 31.0]]]]
    """,
    dtypes="floating",
    kernel=_KERNEL,
    variants="",
)
ps_roi_align_backward = Operator(
    "ps_roi_align_backward(Tensor grad, Tensor rois, int[] size, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio) -> Tensor",
    doc="The derivative of `ps_roi_align` with respect to the images, of shape `size`.",
    dtypes="floating",
    kernel=_BACK,
    internal=True,
)


@roi_align.shape
def _(input, rois, pooled_height, pooled_width, sampling_ratio):
    check_regions(input, rois)
    check_bins(pooled_height, pooled_width)
    check_ratio(sampling_ratio)
    return result([rois.shape[0], input.shape[1], pooled_height, pooled_width], input.dtype)


@roi_align.vjp("input")
def _(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    return roi_align_backward(
        g, rois, input.shape, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    )


@roi_align_backward.shape
def _(grad, rois, size, pooled_height, pooled_width, sampling_ratio):
    check_size(size)
    check_bins(pooled_height, pooled_width)
    check_ratio(sampling_ratio)
    check_gradient(grad, rois, size, size[1], pooled_height, pooled_width)
    return result(size, grad.dtype)


@roi_align_backward.vjp("grad")
def _(g, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    return roi_align(g, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)


@ps_roi_align.shape
def _(input, rois, pooled_height, pooled_width, sampling_ratio):
    check_regions(input, rois)
    check_bins(pooled_height, pooled_width)
    check_ratio(sampling_ratio)
    check_sensitive(input.shape[1], pooled_height, pooled_width)
    o = input.shape[1] // (pooled_height * pooled_width)
    return result([rois.shape[0], o, pooled_height, pooled_width], input.dtype)


@ps_roi_align.vjp("input")
def _(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    return ps_roi_align_backward(
        g, rois, input.shape, spatial_scale, pooled_height, pooled_width, sampling_ratio
    )


@ps_roi_align_backward.shape
def _(grad, rois, size, pooled_height, pooled_width, sampling_ratio):
    check_size(size)
    check_bins(pooled_height, pooled_width)
    check_ratio(sampling_ratio)
    check_sensitive(size[1], pooled_height, pooled_width)
    o = size[1] // (pooled_height * pooled_width)
    check_gradient(grad, rois, size, o, pooled_height, pooled_width)
    return result(size, grad.dtype)


@ps_roi_align_backward.vjp("grad")
def _(g, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    return ps_roi_align(g, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)


# ---- whole pixels --------------------------------------------------------------------------------
roi_pool = Operator(
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> (Tensor, Tensor)",
    doc=f"""
    Each box is cut into a grid of `pooled_height` x `pooled_width` bins; the results are the largest pixel in each bin
    (Girshick 2015, Fast R-CNN), and its place ``y * w + x``, as int32. The corners of a box are rounded to pixels, which
    belong to the box, and bins are rounded outwards. Of equal pixels the first counts; a nan counts before all numbers. A
    bin outside of the image gives 0 and the place -1.
    {_ROIS}
    Shapes: `input` is (n, c, h, w), the results are (k, c, pooled_height, pooled_width).
    {_ERRORS}
    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> image = pc.arange(16.0).reshape(1, 1, 4, 4)
    >>> operator("roi_pool")(image, pc.tensor([[0.0, 0.0, 0.0, 3.0, 3.0]]), 1.0, 2, 2)[0].tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """,
    dtypes="floating",
    kernel=_KERNEL[:-1] + "; out[1] is int32.",
    variants="",
)
roi_pool_backward = Operator(
    "roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, int[] size) -> Tensor",
    doc="`grad` added up at `argmax` in images of shape `size`: the derivative of `roi_pool`.",
    dtypes="floating",
    kernel="optional: without a kernel other operators compute it; in[0] is (k, c, ph, pw) and has one dtype with in[1], in[2] is int32 of its shape, any strides; in[3] is the shape (n, c, h, w) of the result, in C order; a place of -1 is left out, others outside of the image are an IndexError; sums are in the order of `rois`.",
    internal=True,
)
ps_roi_pool = Operator(
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width) -> Tensor",
    doc=f"""
    Each box is cut into a grid of bins, and each bin reads its own channels (Dai et al. 2016, R-FCN): bin (i, j) of channel
    o is the mean of the pixels of channel ``(o * pooled_height + i) * pooled_width + j`` in it. The corners of a box are
    rounded to pixels; the pixel of the upper left corner belongs to the box, that of the lower right does not. Bins are
    rounded outwards. The last row and the last column of an image belong to no bin, as in torchvision; an empty bin gives
    0.
    {_ROIS}
    Shapes: `input` is (n, o * pooled_height * pooled_width, h, w), the result (k, o, pooled_height, pooled_width).
    {_ERRORS}
    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> image = pc.arange(36.0).reshape(1, 4, 3, 3)
    >>> operator("ps_roi_pool")(image, pc.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]]), 1.0, 2, 2).tolist()
    [[[[0.0, 10.0], [21.0, 31.0]]]]
    """,
    dtypes="floating",
    kernel=_KERNEL,
    variants="",
)
ps_roi_pool_backward = Operator(
    "ps_roi_pool_backward(Tensor grad, Tensor rois, int[] size, float spatial_scale, int pooled_height, int pooled_width)"
    " -> Tensor",
    doc="The derivative of `ps_roi_pool` with respect to the images, of shape `size`.",
    dtypes="floating",
    kernel=_BACK,
    internal=True,
)


@roi_pool.shape
def _(input, rois, pooled_height, pooled_width):
    check_regions(input, rois)
    check_bins(pooled_height, pooled_width)
    check(
        input.shape[2] * input.shape[3] < 2147483648,
        f"`input` must have images of less than 2**31 pixels; got shape {input.shape}",
    )
    made = [rois.shape[0], input.shape[1], pooled_height, pooled_width]
    return result(made, input.dtype), result(made, int32)


@roi_pool.vjp("input")
def _(g0, input, rois, result1):
    return roi_pool_backward(g0, rois, result1, input.shape)


@roi_pool_backward.shape
def _(grad, rois, argmax, size):
    check_size(size)
    check(grad.ndim == 4, f"`grad` must have 4 dimensions; got shape {grad.shape}")
    check_gradient(grad, rois, size, size[1], grad.shape[2], grad.shape[3])
    check(argmax.dtype == int32, f"`argmax` must be int32; got {argmax.dtype}", "DTypeError")
    check(
        argmax.shape == grad.shape,
        f"`argmax` of shape {argmax.shape} must have the shape of `grad`, {grad.shape}",
    )
    return result(size, grad.dtype)


@part
def _elements_of(rois, argmax, size):
    """The elements of images of shape `size` at the places `argmax` in the planes of `rois`, in one dimension; for a place
    of -1 that of 0, for a wrong one an index out of range."""
    c = size[1]
    area = size[2] * size[3]
    images = to_dtype(op.select(rois, 1, 0), int64)
    planes = op.reshape(images * c, [rois.shape[0], 1]) + op.reshape(
        op.arange(c, device=rois.device), [1, c]
    )
    right = op.logical_and(op.ge(argmax, -1), op.lt(argmax, area))
    inside = op.where(right, to_dtype(op.clamp_min(argmax, 0), int64), numel(size))
    at = inside + op.reshape(planes, [rois.shape[0], c, 1, 1]) * area
    return op.reshape(at, [numel(at)])


@roi_pool_backward.decompose
def _(grad, rois, argmax, size):
    images = op.zeros([numel(size)], dtype=grad.dtype, device=grad.device)
    parts = op.where(op.ge(argmax, 0), grad, 0.0)
    at = _elements_of(rois, argmax, size)
    return op.reshape(op.index_add(images, 0, at, op.reshape(parts, [numel(parts)])), size)


@roi_pool_backward.vjp("grad")
def _(g, grad, rois, argmax):
    at = _elements_of(rois, argmax, g.shape)
    found = op.index_select(op.reshape(g, [numel(g)]), 0, at)
    return op.mul(op.reshape(found, grad.shape), op.ge(argmax, 0))


@ps_roi_pool.shape
def _(input, rois, pooled_height, pooled_width):
    check_regions(input, rois)
    check_bins(pooled_height, pooled_width)
    check_sensitive(input.shape[1], pooled_height, pooled_width)
    o = input.shape[1] // (pooled_height * pooled_width)
    return result([rois.shape[0], o, pooled_height, pooled_width], input.dtype)


@ps_roi_pool.vjp("input")
def _(g, input, rois, spatial_scale, pooled_height, pooled_width):
    return ps_roi_pool_backward(g, rois, input.shape, spatial_scale, pooled_height, pooled_width)


@ps_roi_pool_backward.shape
def _(grad, rois, size, pooled_height, pooled_width):
    check_size(size)
    check_bins(pooled_height, pooled_width)
    check_sensitive(size[1], pooled_height, pooled_width)
    o = size[1] // (pooled_height * pooled_width)
    check_gradient(grad, rois, size, o, pooled_height, pooled_width)
    return result(size, grad.dtype)


@ps_roi_pool_backward.vjp("grad")
def _(g, rois, spatial_scale, pooled_height, pooled_width):
    return ps_roi_pool(g, rois, spatial_scale, pooled_height, pooled_width)


# ---- costs ---------------------------------------------------------------------------------------
@part
def samples_of(made, sampling_ratio):
    """8 operations for each sample; where boxes say how many there are, one for each bin."""
    return 8 * numel(made) * max(sampling_ratio, 1) * max(sampling_ratio, 1)


@roi_align.cost
@ps_roi_align.cost
def _(result, sampling_ratio):
    return samples_of(result.shape, sampling_ratio)


@roi_align_backward.cost
@ps_roi_align_backward.cost
def _(grad, sampling_ratio):
    return samples_of(grad.shape, sampling_ratio)


@roi_pool.cost
def _(result0):
    return numel(result0)  # at least: boxes say how many pixels are compared


@roi_pool_backward.cost
@ps_roi_pool_backward.cost
def _(grad):
    return numel(grad)


@ps_roi_pool.cost
def _(result):
    return numel(result)


for _each in (
    roi_align,
    roi_align_backward,
    ps_roi_align,
    ps_roi_align_backward,
    roi_pool,
    roi_pool_backward,
    ps_roi_pool,
    ps_roi_pool_backward,
):
    _each.constant("rois")
