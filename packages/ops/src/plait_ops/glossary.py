"""The glossary of arguments: what the arguments of operators mean.

An argument means the same wherever its name stands here. A definition that gives a name another
meaning says so in its own text, in a block that begins with ``Args:``; operators that are defined
together in a loop have such texts here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from plait_ops.schema import Argument, Schema

__all__ = [
    "ARGUMENTS",
    "OF_OPERATORS",
    "call_text",
    "meaning",
    "own_meanings",
    "shown_name",
    "with_arguments",
]

_DTYPE = "The dtype of the result; None chooses it by the rules of the operator."
_MATRIX = "A matrix, or a batch of matrices: shape (..., m, n)."

# texts by the type of an argument, for the names that most operators have
_BY_TYPE = {
    ("self", "Tensor"): "The input tensor.",
    ("self", "Tensor|Scalar"): "A tensor or a number.",
    ("other", "Tensor"): "The second tensor.",
    ("other", "Tensor|Scalar"): "The second operand, a tensor or a number.",
    ("dim", "int"): "The dimension; a negative one counts from the last.",
    ("dim", "int?"): "The dimension; a negative one counts from the last. None: all elements, "
    "as if the tensor had one dimension.",
    ("dim", "int[]"): "The dimensions, one int or several; negative ones count from the last.",
    ("dim", "int[]?"): "The dimensions, one int or several; negative ones count from the last. "
    "None: all of them.",
    ("dtype", "dtype"): "The dtype of the result.",
}

ARGUMENTS = {
    "A": _MATRIX,
    "B": "The right-hand sides: shape (..., m, k), or a vector.",
    "L": "The Cholesky factors: shape (..., n, n).",
    "LD": "The factors that `linalg.ldl_factor` returns: shape (..., n, n).",
    "LU": "The factors that `linalg.lu_factor` returns: shape (..., n, n).",
    "LU_data": "The factors that `linalg.lu_factor` returns, both in one tensor: (..., m, n).",
    "LU_pivots": "The rows that were exchanged, as `linalg.lu_factor` returns them.",
    "N": "The number of columns; None: as many as there are elements.",
    "UPLO": 'The triangle that is read: "L", the lower one, or "U", the upper one.',
    "abs": "The absolute values.",
    "accumulate": "Whether values are added to the elements instead of replacing them.",
    "activation": "The name of the activation that follows, or an empty string.",
    "activations": "Whether the input is quantized too, a scale for each row.",
    "adjoint": "Whether to solve with the conjugate transpose of the matrix.",
    "align_corners": "Whether the corner elements of input and result lie on each other.",
    "aligned": "Whether boxes are shifted by half an element, so that they lie on its centres.",
    "alpha": "The factor of the second operand.",
    "angle": "The angles in radians.",
    "antialias": "Whether a smaller result averages over all elements that it covers.",
    "append": "Elements to put after the input along `dim`, or None.",
    "approximate": '"none" for the exact function, "tanh" for its approximation by tanh.',
    "assume_unique": "Whether no value stands twice in either argument, which may be faster.",
    "atol": "The absolute tolerance.",
    "attn_mask": "What is added to the products before the softmax, or bools: True takes part.",
    "aweights": "A weight of each observation, or None.",
    "axis0": "The first dimension.",
    "axis1": "The second dimension.",
    "base": "The base of the powers.",
    "batch1": "The first matrices: shape (b, n, m).",
    "batch2": "The second matrices: shape (b, m, p).",
    "beta": "The factor of `input`; at 0 its nan and inf do not count.",
    "bias": "What is added to each channel of the result: shape (C), or None.",
    "bins": "The number of bins.",
    "boundaries": "The limits of the buckets: one dimension, ascending.",
    "boxes": "The boxes as (x1, y1, x2, y2): shape (n, 4).",
    "boxes1": "The first boxes as (x, y, width, height, degrees): shape (n, 5).",
    "boxes2": "The second boxes as (x, y, width, height, degrees): shape (m, 5).",
    "ceil_mode": "Whether a window that leaves the input at its end gives an element too.",
    "check_errors": "Whether a matrix without the factors is an error, not only a number in "
    "`info`.",
    "chunks": "The number of parts.",
    "col": "The number of columns.",
    "compute_mode": "Whether distances are found by a matrix product; accepted as PyTorch has it.",
    "compute_uv": "Whether to compute the singular vectors; else they are zeros.",
    "condition": "Where it is True, `input` is taken, elsewhere `other`.",
    "correction": "What is subtracted from the number of elements in the divisor; 1 is Bessel's "
    "correction.",
    "count": "The number of trials of each element.",
    "count_include_pad": "Whether the zeros of the padding count in the mean.",
    "cx": "The cell's state before the first step.",
    "d": "The distance of the samples, the inverse of the sample rate.",
    "decimals": "The number of decimal places; a negative one rounds to tens, hundreds and so on.",
    "delta": "The difference from which the loss is linear; positive.",
    "density": "Whether the result is divided by its sum and the widths of the bins.",
    "descending": "Whether the largest element comes first.",
    "destination": "Their new positions.",
    "device": "The device of the result; None: the default device, or that of the input.",
    "diagonal": "The diagonal: 0 is the main one, positive ones are above it.",
    "dilation": "The distance of the elements of a window, one int or one for each dimension.",
    "dim0": "The first dimension.",
    "dim1": "The first dimension.",
    "dim2": "The second dimension.",
    "dims": "The dimensions; negative ones count from the last.",
    "driver": "LAPACK's routine; None chooses one.",
    "dtype": _DTYPE,
    "dx": "The distance of the samples.",
    "elements": "The values to look for.",
    "enable_gqa": "Whether keys and values may have fewer heads, each for a group of queries.",
    "end": "The end of the interval.",
    "end_dim": "The last dimension to join.",
    "eps": "A small number that is added to the variance before its root is taken.",
    "equal_nan": "Whether two nan are close.",
    "exponent": "The exponent, a tensor or a number.",
    "factors": "The filter's coefficients.",
    "fill_value": "The value of every element.",
    "full_matrices": "Whether U and V are square; else they have min(m, n) columns.",
    "fweights": "How often each observation counts, integers, or None.",
    "gates": "The inputs' part of the gates for each step.",
    "generator": "The generator of the random numbers; None: the default one of the device.",
    "groups": "The number of independent groups of channels.",
    "hermitian": "Whether the matrices are Hermitian (symmetric if real); not checked.",
    "high": "The end of the interval, which is not drawn.",
    "hx": "The hidden state before the first step.",
    "ignore_index": "The class whose elements give no loss and no gradient.",
    "imag": "The imaginary parts, of the dtype and shape of `real`.",
    "include_self": "Whether the old elements take part in the reduction.",
    "increasing": "Whether the powers ascend from 0.",
    "ind": "The number of the first dimensions that the inverse maps to; positive.",
    "index": "The indices, int64.",
    "indexing": '"ij": the first tensor runs along the first dimension; "xy": along the second.',
    "indices": "The indices, int64.",
    "indices_or_sections": "A number of equal parts, or the indices at which the parts begin.",
    "input": "The input tensor.",
    "input1": "The first input: shape (..., in1).",
    "input2": "The second input: shape (..., in2).",
    "interpolation": 'The rule between two elements: "linear", "lower", "higher", '
    '"midpoint" or "nearest".',
    "invert": "Whether the result tells which values are not there.",
    "iou_threshold": "A box is dropped if it overlaps a better one by more than this: the area of "
    "the intersection over that of the union.",
    "is_causal": "Whether a query sees only the keys up to its own position.",
    "k": "How many elements.",
    "keepdim": "Whether the reduced dimensions stay, with size 1.",
    "kernel_size": "The size of the windows, one int or one for each dimension.",
    "key": "The keys: shape (..., S, E).",
    "label_smoothing": "The part of each target that all classes share, from 0 to 1.",
    "lambd": "The threshold.",
    "largest": "Whether to take the largest elements; else the smallest.",
    "left": "Whether the matrix is on the left side of the unknown; else on the right.",
    "length": "The number of elements.",
    "low": "The start of the interval.",
    "lower": "The smallest slope.",
    "m": "The number of columns; None: `n`.",
    "mask": "Bools that broadcast with `input`; True selects.",
    "mat": "A matrix: shape (n, m).",
    "mat1": "The first matrix: shape (n, m).",
    "mat2": "The second matrix: shape (m, p).",
    "max": "The upper limit, or None.",
    "max_val": "The largest result.",
    "maxnorm": "The largest norm that a part may have.",
    "mean": "The mean, a number or a tensor.",
    "median": "The median of the distribution.",
    "memory_format": "The order of the result's elements in memory, such as `plait.channels_last`.",
    "min": "The lower limit, or None.",
    "min_val": "The smallest result.",
    "minlength": "The least number of elements of the result.",
    "momentum": "The weight of this batch in the running statistics.",
    "n": "The number of elements.",
    "nan": "The value for nan; None: 0.",
    "neginf": "The value for -inf; None: the least number of the dtype.",
    "negative_slope": "The factor of negative elements.",
    "non_blocking": "Whether a copy between devices may end after the call returns.",
    "norm": 'The factor: "backward" (1 / n in the inverse transform; None is the same), '
    '"forward" (1 / n in the forward one) or "ortho" (1 / sqrt(n) in both).',
    "normalized_shape": "The sizes of the last dimensions, over which mean and variance are taken.",
    "num_classes": "The number of classes; -1: the largest value plus 1.",
    "num_samples": "The number of samples of each row.",
    "offset": "The diagonal: 0 is the main one, positive ones are above it.",
    "offset_groups": "The number of groups of channels with offsets of their own.",
    "ord": "The order of the norm: a number, inf or -inf.",
    "out_int32": "Whether the result is int32; else int64.",
    "output_size": "The size of the result, if it is known; saves its computation.",
    "p": "The order of the norm.",
    "padding": "The number of elements that are added on every side, one int or one for each "
    "dimension.",
    "padding_idx": "The row that gets no gradient, or -1.",
    "periodic": "Whether the window is one period of a periodic function, as spectral analysis "
    "needs it; else it is symmetric.",
    "pivot": "Whether rows are exchanged; without it the factors may not exist.",
    "pivots": "The rows that were exchanged, as the factorization returns them.",
    "pooled_height": "The number of rows of the result.",
    "pooled_width": "The number of columns of the result.",
    "pos_weight": "The weight of the positive targets of each class, or None.",
    "posinf": "The value for inf; None: the largest number of the dtype.",
    "prepend": "Elements to put before the input along `dim`, or None.",
    "prob": "The probability of success of each trial.",
    "q": "The quantiles, from 0 to 1: a number or a vector.",
    "query": "The queries: shape (..., L, E).",
    "r": "The number of elements in each combination.",
    "rcond": "Singular values below this part of the largest one count as 0.",
    "real": "The real parts.",
    "reduce": 'How values that meet are combined: "sum", "prod", "mean", "amax" or "amin".',
    "reduction": 'What is done with the losses: "mean", "sum", or "none" to return each.',
    "repeats": "How often each element stands in the result.",
    "replacement": "Whether an element may be drawn more than once.",
    "residual": "A tensor that is added before the activation, or None.",
    "reverse": "Whether the sequence is read from its end.",
    "right": "Whether an equal element is left of the position that is found.",
    "rois": "The regions as (index of the image, x1, y1, x2, y2): shape (K, 5).",
    "rounding_mode": 'None: the exact quotient; "trunc": rounded towards 0; "floor": rounded down.',
    "row": "The number of rows.",
    "rtol": "The relative tolerance.",
    "running_mean": "The running means of the channels: shape (C), or None.",
    "running_var": "The running variances of the channels: shape (C), or None.",
    "s": "The sizes of the transformed dimensions, to which the input is cut or filled with 0; "
    "None: its own.",
    "sampling_ratio": "The number of points in each direction of a bin; 0 or less: as many as it "
    "has elements.",
    "scale": "The factor of the products; None: 1 / sqrt(E).",
    "scores": "The score of each box.",
    "shape": "The new shape.",
    "shifts": "By how many places, one int for each of `dims`.",
    "side": '"left" or "right"; the same as `right`.',
    "sigma": "The width of the distribution.",
    "size": "The shape of the result.",
    "sizes": "The new sizes.",
    "some": "Whether the factors have only the columns that are needed.",
    "sorted": "Whether the result is sorted.",
    "sorted_sequence": "Sequences that ascend along the last dimension.",
    "sorter": "Indices that sort `sorted_sequence`, or None if it is sorted.",
    "source": "The values to write.",
    "spatial_scale": "The factor from the boxes' coordinates to those of the input.",
    "split_size": "The size of each part; the last one may be smaller.",
    "split_sizes": "The size of each part.",
    "src": "The values to write.",
    "stable": "Whether equal elements keep their order.",
    "start": "The start of the interval.",
    "start_dim": "The first dimension to join.",
    "std": "The standard deviation, a number or a tensor; not negative.",
    "step": "The distance of two elements.",
    "steps": "The number of elements.",
    "storage_offset": "The index of the first element in the storage; None: that of the input.",
    "stride": "The distance of the windows, one int or one for each dimension.",
    "target": "The expected values, of the shape of `input`.",
    "tau": "The factors of the Householder reflections: shape (..., k).",
    "tensor": "A vector of as many elements.",
    "tensor1": "The first factor, or the dividend.",
    "tensor2": "The second factor, or the divisor.",
    "tensors": "The tensors, a list or tuple.",
    "test_elements": "The values among which to look.",
    "threshold": "The value from which the input is returned unchanged.",
    "to": "The end of the interval, which is not drawn.",
    "tol": "Singular values up to this count as 0.",
    "training": "Whether the layer trains; else it computes as in evaluation.",
    "transpose": "Whether to use the transposed matrix.",
    "unbiased": "Whether the divisor is the number of elements less 1 (Bessel's correction).",
    "unitriangular": "Whether the diagonal counts as ones; it is not read then.",
    "upper": "Whether the upper triangle is used; else the lower one.",
    "value": "The value to write.",
    "values": "The values to write, broadcast to what the indices select.",
    "vec": "A vector: shape (m).",
    "vec1": "The first vector: shape (n).",
    "vec2": "The second vector: shape (m).",
    "weight": "The weights.",
    "weights": "What each value counts, instead of 1; of the shape of `input`, or None.",
    "window_length": "The number of elements of the window.",
    "with_replacement": "Whether an element may stand more than once in a combination.",
    "wrap": "Whether the diagonal begins again below the square part of a tall matrix.",
    "x": "The first tensor.",
    "x1": "The first vectors.",
    "x2": "The second vectors.",
    "y": "The values of the function at the samples.",
}


# texts of operators whose definitions are made in loops or are aliases: argument, operators, text
_OF_GROUPS = (
    (
        "A",
        "linalg_inv",
        "A square matrix, or a batch of them: shape (..., n, n).",
    ),
    (
        "A",
        "linalg_cholesky",
        "A Hermitian positive definite matrix (symmetric if real), or a batch: shape (..., n, n).",
    ),
    (
        "A",
        "linalg_ldl_factor linalg_ldl_factor_ex",
        "A Hermitian matrix (symmetric if real), or a batch of them: shape (..., n, n).",
    ),
    ("reduce", "scatter.combined scatter.combined_value", '"add" or "multiply".'),
    ("other", "subtract", "The second operand, a tensor or a number; `alpha` is its factor."),
    (
        "A",
        "linalg_eigh linalg_eigvalsh",
        "A Hermitian matrix (symmetric if real), or a batch of them: shape (..., n, n).",
    ),
    (
        "A",
        "linalg_eig linalg_eigvals linalg_lu_factor_ex linalg_solve linalg_solve_ex",
        "A square matrix, or a batch of them: shape (..., n, n).",
    ),
    ("alpha", "elu celu", "The factor of the exponential of negative elements."),
    ("alpha", "addmv addr addbmm", "The factor of the product."),
    ("alpha", "hamming_window", "The mean of the two cosines' weights; the first coefficient."),
    ("beta", "smooth_l1_loss", "The difference from which the loss is linear; not negative."),
    ("beta", "hamming_window", "The second coefficient."),
    ("beta", "kaiser_window", "The shape parameter: the larger, the narrower."),
    ("beta", "softplus", "The sharpness: the larger, the closer to relu."),
    ("dim1", "swapdims", "The second dimension."),
    ("driver", "linalg_svd linalg_svdvals", "LAPACK's routine; must be None, as there is one."),
    ("end", "slice_scatter", "The index after the last element; None: the size."),
    ("eps", "special_logit", "Elements are first clamped to [eps, 1 - eps]; None: they are not."),
    (
        "high",
        "random_.from",
        "The end of the interval, which is not drawn; None: the dtype's largest number.",
    ),
    ("high", "uniform_", "The upper end of the interval."),
    ("index", "put_ put", "Indices into the tensor as if it had one dimension, int64."),
    ("index", "select_scatter", "The index along `dim`; a negative one counts from the last."),
    ("input", "roi_align ps_roi_align roi_pool ps_roi_pool", "Feature maps: shape (N, C, H, W)."),
    ("input", "nll_loss", "Logarithms of the probabilities: shape (N, C, ...)."),
    ("input", "binary_cross_entropy", "Probabilities, from 0 to 1."),
    ("input", "smooth_l1_loss mse_loss l1_loss huber_loss", "The predicted values."),
    ("k", "kthvalue", "Which element, counted from 1 for the smallest."),
    ("lambd", "exponential_", "The rate: the inverse of the mean; positive."),
    ("low", "uniform_", "The lower end of the interval."),
    ("max", "clamp_max", "The upper limit."),
    ("mean", "log_normal_", "The mean of the logarithms."),
    ("min", "clamp_min", "The lower limit."),
    ("mode", "resample", '"nearest", "nearest-exact", "linear", "cubic" or "lanczos".'),
    (
        "mode",
        "linalg_qr",
        '"reduced": Q has min(m, n) columns; "complete": Q is square; "r": R only, and Q is empty.',
    ),
    (
        "n",
        "special_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_t "
        "special_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_w "
        "special_hermite_polynomial_h special_hermite_polynomial_he "
        "special_laguerre_polynomial_l special_legendre_polynomial_p",
        "The degree of the polynomial.",
    ),
    (
        "n",
        "polygamma.n special_polygamma special_polygamma.n",
        "The order of the derivative of digamma; not negative.",
    ),
    (
        "n",
        "fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft",
        "The size of the transform, to which the input is cut or filled with 0; None: its own.",
    ),
    ("n", "fft_fftfreq fft_rfftfreq", "The size of the transform."),
    ("ord", "linalg_matrix_norm.name", 'The name of the norm: "fro" or "nuc".'),
    ("other", "divide", "The divisor, a tensor or a number."),
    ("other", "expand_as view_as reshape_as", "The tensor whose shape the result gets."),
    ("p", "special_multigammaln", "The number of dimensions."),
    ("p", "bernoulli_ bernoulli_.Tensor", "The probability of 1."),
    ("p", "geometric_", "The probability of success, in (0, 1]."),
    ("size", "resample", "The size of the result in each spatial dimension."),
    ("sizes", "unflatten", "The sizes into which the dimension is divided; one may be -1."),
    ("source", "moveaxis", "The dimensions to move."),
    (
        "source",
        "masked_scatter_ masked_scatter",
        "The values to write, in order, at least as many as `mask` has True.",
    ),
    ("start", "linspace linspace.tensors", "The first element."),
    ("start", "logspace logspace.tensors", "The first exponent."),
    ("start", "slice_scatter", "The index of the first element; None: 0."),
    ("std", "log_normal_", "The standard deviation of the logarithms; positive."),
    ("step", "resample", "The distance of two elements of the result, in elements of the input."),
    (
        "target",
        "nll_loss",
        "The class of each sample, int64: the shape of `input` without dimension 1.",
    ),
    ("tensors", "concat concatenate", "The tensors; their shapes differ in `dim` only."),
    ("tensors", "meshgrid", "Vectors, or 0-d tensors."),
    ("value", "index_fill_ index_fill", "The value of the elements, a number or a 0-d tensor."),
    ("weight", "nll_loss", "The weight of each class: shape (C), or None."),
    (
        "weight",
        "binary_cross_entropy",
        "What the loss of each element is multiplied with, or None.",
    ),
    ("x", "linalg_vecdot", "The first vectors."),
    ("x", "trapezoid.x trapz.x cumulative_trapezoid.x", "The places of the samples."),
    ("y", "linalg_vecdot", "The second vectors."),
)

OF_OPERATORS = {
    (name, argument): text for argument, names, text in _OF_GROUPS for name in names.split()
}


def meaning(operator: str, argument: Argument) -> str | None:
    """Return what an argument of an operator means, or None if the glossary has no text for it."""
    if (operator, argument.name) in OF_OPERATORS:
        return OF_OPERATORS[operator, argument.name]
    if argument.writes and argument.name == "self":
        return "The tensor that is changed, and returned."
    kind = argument.type + ("?" if argument.optional else "")
    return _BY_TYPE.get((argument.name, kind)) or ARGUMENTS.get(argument.name)


_OWN = re.compile(r"Args:\n((?: +\S.*\n?)+)\n*")
_AFTER = ("Shape", "Dtype", "Raises:", "Returns:", "Example", ">>>", "float16 and ")


def own_meanings(doc: str) -> tuple[str, dict[str, str]]:
    """Take the block of a definition's own texts out of its documentation.

    >>> own_meanings("The sum.\\n\\nArgs:\\n    n: How often.\\n\\nDtypes: all.")
    ('The sum.\\n\\nDtypes: all.', {'n': 'How often.'})
    """
    match = _OWN.search(doc)
    if not match:
        return doc, {}
    entries = (line.strip().partition(": ") for line in match[1].splitlines())
    return (doc[: match.start()] + doc[match.end() :]).strip(), {
        name: text for name, _, text in entries
    }


def with_arguments(overloads: Sequence[tuple[Schema, str, Mapping[str, str]]], *, out: bool) -> str:
    """Return a documentation with a paragraph for each argument, before shapes, dtypes and errors.

    Args:
        overloads: the schema of an operator, its documentation, in which the first tensor may be
            called `self`, and its own texts of arguments; then those of its overloads. Of these
            the first paragraph is shown, below the call.
        out: whether the results may be written to tensors.
    """
    texts: dict[str, str | None] = {}
    for schema, _, own in overloads:
        for argument in schema.arguments:
            text = own.get(argument.name) or meaning(schema.name, argument)
            name = shown_name(argument)
            if name != "self" or "input" not in texts:
                texts.setdefault(name, text)
    schema, doc, _ = overloads[0]
    if out:
        several = len(schema.results) > 1
        texts["out"] = "Tensors for the results." if several else "A tensor for the result."
    lines = [f"    {name}: {text}" for name, text in texts.items() if text]
    blocks = [
        call_text(each) + ":\n" + text.partition("\n\n")[0] for each, text, _ in overloads[1:]
    ]
    blocks += ["\n".join(["Args:", *lines])] if lines else []
    names = [result.name for result in schema.results]
    if len(names) > 1 and all(names):
        blocks.append(f"Returns:\n    A named tuple ({', '.join(names)}).")
    parts = doc.split("\n\n")
    at = next((i for i, part in enumerate(parts) if i and part.startswith(_AFTER)), len(parts))
    return _with_input("\n\n".join([*parts[:at], *blocks, *parts[at:]]), schema)


def shown_name(argument: Argument) -> str:
    """Return the name by which functions have an argument: `input` for the first tensor."""
    is_input = argument.name == "self" and argument.second == "input"
    return "input" if is_input else argument.name


def call_text(schema: Schema) -> str:
    """Return a call with the names of the arguments: ``max(input, dim, keepdim=False)``."""
    parts = []
    for argument in schema.arguments:
        if argument.keyword_only and "*" not in parts:
            parts.append("*")
        default = f"={argument.default!r}" if argument.has_default else ""
        parts.append(shown_name(argument) + default)
    return f"``{schema.base}({', '.join(parts)})``"


def _with_input(doc: str, schema: Schema) -> str:
    """Call `self` `input` in code, as functions have it."""
    if not any(shown_name(each) == "input" for each in schema.arguments):
        return doc
    return re.sub(
        r"``.+?``|`.+?`", lambda code: re.sub(r"(?<!\.)\bself\b", "input", code[0]), doc, flags=re.S
    )
