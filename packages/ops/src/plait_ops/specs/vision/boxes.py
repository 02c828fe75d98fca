"""Boxes: the suppression of those that overlap, and how much rotated ones do."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import check, float32, int64, item, numel, part, require, require_same, result

nms = Operator(
    "nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor",
    doc="""
    The boxes that non-maximum suppression keeps, as indices in order of descending scores. Each box, beginning with the
    highest score, removes all later boxes whose intersection with it is more than `iou_threshold` of their union. Boxes
    with equal scores keep their order.

    Shapes: `boxes` is (n, 4), each (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2, `scores` is (n,), the result (kept,),
    int64. Its size depends on the values, so tensors on the device meta are an error. Dtypes: floating, the same for both.
    No gradient flows back.
    Raises: ShapeError for other shapes, DTypeError for other dtypes. torchvision has an operator of this name.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> boxes = pc.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [3.0, 3.0, 4.0, 4.0]])
    >>> operator("nms")(boxes, pc.tensor([0.5, 0.9, 0.7]), 0.5).tolist()
    [1, 2]
    """,
    dtypes="floating",
    kernel="this operator takes no kernel, since the size of its result depends on the values; replace `nms_kept` instead.",
    variants="",
)
nms_kept = Operator(
    "nms_kept(Tensor boxes, Tensor order, float iou_threshold) -> (Tensor, Tensor)",
    doc="The indices that `nms` keeps of boxes taken in the order `order`, followed by zeros; and how many it keeps.",
    dtypes="floating",
    internal=True,
    kernel="in[0] is (n, 4), floating, in[1] (n,), int64, any strides; out[0] is (n,), out[1] 0-d, both int64; an index outside of the boxes is an IndexError.",
)
box_iou_rotated = Operator(
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    doc="""
    The intersection of each rotated box of `boxes1` with each one of `boxes2`, divided by their union. A box (x, y, w, h,
    a) has its centre at (x, y) and sides w and h, and is turned by a degrees. A box without area overlaps with nothing.

    Shapes: (n, 5) and (m, 5), the result is (n, m). Dtypes: floating, the same for both; the result is float32, computed in
    float64. No gradient flows back. Raises: ShapeError for other shapes, DTypeError for other dtypes. torchvision has an
    operator of this name. The intersection is computed as in Sutherland and Hodgman (1974).

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> box = pc.tensor([[0.0, 0.0, 2.0, 1.0, 0.0]])
    >>> operator("box_iou_rotated")(box, pc.tensor([[0.0, 0.0, 2.0, 1.0, 90.0]]))
    tensor([[0.3333]])
    """,
    dtypes="floating",
    kernel="in[0] is (n, 5), in[1] (m, 5), of one floating dtype, any strides; the result is (n, m), float32.",
    variants="",
)


@part
def check_boxes(name, boxes, columns):
    check(
        boxes.ndim == 2 and boxes.shape[1] == columns,
        f"`{name}` must have shape (n, {columns}); got {boxes.shape}",
    )
    require(name, boxes.dtype, "floating")


@nms.decompose
def _(boxes, scores, iou_threshold):
    check_boxes("boxes", boxes, 4)
    require_same("boxes", boxes, "scores", scores)
    check(
        scores.ndim == 1 and scores.shape[0] == boxes.shape[0],
        f"`scores` must have shape {tuple(boxes.shape[:1])} for `boxes` of shape {boxes.shape}; got {scores.shape}",
    )
    kept, count = nms_kept(boxes, op.argsort(scores, 0, True, True), iou_threshold)
    return op.narrow(kept, 0, 0, item(count))


@nms_kept.shape
def _(boxes, order):
    check_boxes("boxes", boxes, 4)
    check(order.dtype == int64, f"`order` must be int64; got {order.dtype}", "DTypeError")
    check(
        order.ndim == 1 and order.shape[0] == boxes.shape[0],
        f"`order` of shape {order.shape} does not fit `boxes` of shape {boxes.shape}",
    )
    return result(order.shape, int64), result([], int64)


@box_iou_rotated.shape
def _(boxes1, boxes2):
    check_boxes("boxes1", boxes1, 5)
    check_boxes("boxes2", boxes2, 5)
    require_same("boxes1", boxes1, "boxes2", boxes2)
    return result([boxes1.shape[0], boxes2.shape[0]], float32)


@nms_kept.cost
def _(order):
    # for each pair that is compared 4 extremes, 2 sides, 3 for the intersection, 3 for the quotient
    n = order.shape[0]
    return 6 * n * max(n - 1, 0)


@box_iou_rotated.cost
def _(result):
    return 250 * numel(result)  # about, for four edges that cut a polygon


nms.constant("boxes", "scores")
nms_kept.constant("boxes")
