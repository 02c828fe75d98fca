"""NumPy's functions on tensors: which results are arrays, which are tensors, and their values."""

import operator

import numpy as np
import torch

np.seterr(all="ignore")
vector, matrix = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[1.0, 2.0], [3.0, 5.0]])
CALLS = {
    "vector": (
        (vector,),
        (
            "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh "
            "argmax argmin argsort argwhere around array asanyarray asarray asarray_chkfinite "
            "ascontiguousarray asfortranarray asin asinh atan atanh atleast_1d atleast_2d "
            "atleast_3d average broadcast_arrays cbrt ceil column_stack conj conjugate copy "
            "corrcoef cos cosh count_nonzero cov cumprod cumsum cumulative_prod "
            "cumulative_sum deg2rad degrees diag diagflat diff dstack ediff1d exp exp2 expm1 "
            "fabs fix flatnonzero flipud floor gradient histogram histogram_bin_edges hstack "
            "i0 iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf isrealobj log "
            "log10 log1p log2 logical_not median meshgrid modf nan_to_num nanargmax nanargmin "
            "nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum "
            "nanvar ndim negative nonzero ones_like permute_dims poly polyder polyint "
            "positive ptp rad2deg radians ravel real real_if_close reciprocal rint roots "
            "round row_stack shape sign signbit sin sinc sinh sort sort_complex spacing sqrt "
            "square squeeze stack tan tanh transpose trapezoid tril trim_zeros triu trunc "
            "unique unique_all unique_counts unique_inverse unique_values unwrap vander "
            "vstack where zeros_like linalg.norm linalg.matrix_rank linalg.vector_norm "
            "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.rfftn fft.irfftn "
            "fft.fftn fft.ifftn fft.fftshift fft.ifftshift "
        ),
    ),
    "matrix": (
        (matrix,),
        (
            "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh "
            "argmax argmin argsort argwhere around array asanyarray asarray asarray_chkfinite "
            "ascontiguousarray asfortranarray asin asinh atan atanh atleast_1d atleast_2d "
            "atleast_3d average broadcast_arrays cbrt ceil column_stack conj conjugate copy "
            "corrcoef cos cosh count_nonzero cov cumprod cumsum deg2rad degrees diag "
            "diag_indices_from diagflat diagonal diff dstack ediff1d exp exp2 expm1 fabs fix "
            "flatnonzero fliplr flipud floor gradient histogram histogram_bin_edges hstack i0 "
            "iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf isrealobj log "
            "log10 log1p log2 logical_not matrix_transpose median meshgrid modf nan_to_num "
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod "
            "nanstd nansum nanvar ndim negative nonzero ones_like permute_dims poly positive "
            "ptp rad2deg radians ravel real real_if_close reciprocal rint rot90 round "
            "row_stack shape sign signbit sin sinc sinh sort sort_complex spacing sqrt square "
            "squeeze stack tan tanh trace transpose trapezoid tril tril_indices_from "
            "trim_zeros triu triu_indices_from trunc unique unique_all unique_counts "
            "unique_inverse unique_values unwrap vstack where zeros_like linalg.inv "
            "linalg.eigvals linalg.eigvalsh linalg.pinv linalg.slogdet linalg.det linalg.svd "
            "linalg.svdvals linalg.eig linalg.eigh linalg.norm linalg.qr linalg.cond "
            "linalg.matrix_rank linalg.multi_dot linalg.trace linalg.diagonal "
            "linalg.matrix_transpose linalg.matrix_norm linalg.vector_norm fft.fft fft.ifft "
            "fft.rfft fft.irfft fft.hfft fft.ihfft fft.rfftn fft.irfftn fft.rfft2 fft.irfft2 "
            "fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.fftshift fft.ifftshift "
        ),
    ),
    "[vector, vector]": (
        ([vector, vector],),
        (
            "abs absolute acos acosh all amax amin angle any arccos arccosh arcsin arcsinh "
            "arctan arctanh argmax argmin argsort argwhere around array asanyarray asarray "
            "asarray_chkfinite ascontiguousarray asfortranarray asin asinh atan atanh "
            "atleast_1d atleast_2d atleast_3d average broadcast_arrays cbrt ceil column_stack "
            "concat concatenate conj conjugate copy corrcoef cos cosh count_nonzero cov "
            "cumprod cumsum deg2rad degrees diag diagflat diagonal diff dstack ediff1d exp "
            "exp2 expm1 fabs fix flatnonzero flip fliplr flipud floor gradient histogram "
            "histogram_bin_edges hstack i0 imag is_busday iscomplex iscomplexobj isfinite "
            "isinf isnan isneginf isposinf isreal isrealobj lexsort log log10 log1p log2 "
            "logical_not matrix_transpose max mean median meshgrid min modf nan_to_num "
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod "
            "nanstd nansum nanvar ndim negative nonzero ones_like permute_dims positive prod "
            "ptp rad2deg radians ravel real real_if_close reciprocal rint rot90 round "
            "row_stack shape sign signbit sin sinc sinh sort sort_complex spacing sqrt square "
            "squeeze stack std sum tan tanh trace transpose trapezoid tril triu trunc unique "
            "unique_all unique_counts unique_inverse unique_values unwrap var vstack where "
            "zeros_like linalg.pinv linalg.svdvals linalg.norm linalg.qr "
            "linalg.matrix_rank linalg.multi_dot linalg.trace linalg.diagonal "
            "linalg.matrix_transpose linalg.matrix_norm linalg.vector_norm fft.fft fft.ifft "
            "fft.rfft fft.irfft fft.hfft fft.ihfft fft.rfftn fft.irfftn fft.rfft2 fft.irfft2 "
            "fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.fftshift fft.ifftshift "
        ),
    ),
    "vector, vector": (
        (vector, vector),
        (
            "add allclose append arctan2 array_equal array_equiv atan2 atleast_1d atleast_2d "
            "atleast_3d broadcast_arrays convolve copysign corrcoef correlate cov cross "
            "digitize divide divmod dot ediff1d equal extract float_power floor_divide fmax "
            "fmin fmod full_like geomspace gradient greater greater_equal heaviside histogram "
            "histogram2d histogram_bin_edges hypot inner intersect1d isclose isin less "
            "less_equal linspace logaddexp logaddexp2 logical_and logical_or logical_xor "
            "logspace matmul maximum meshgrid minimum mod multiply not_equal outer polyadd "
            "polydiv polymul polysub polyval pow power real_if_close remainder roll "
            "searchsorted setdiff1d setxor1d subtract trapezoid true_divide union1d vdot "
            "vecdot linalg.matrix_rank linalg.cross linalg.outer linalg.matmul linalg.vecdot "
        ),
    ),
    "matrix, 1": (
        (matrix, 1),
        (
            "add allclose angle append arctan2 argmax argmin argpartition argsort around "
            "array_equal array_equiv array_split atan2 atleast_1d atleast_2d atleast_3d "
            "average broadcast_arrays copysign count_nonzero cumprod cumsum delete diag "
            "diagflat diagonal diff divide divmod dot ediff1d equal expand_dims float_power "
            "floor_divide fmax fmin fmod full_like geomspace gradient greater greater_equal "
            "heaviside histogram histogram_bin_edges hsplit hypot inner intersect1d isclose "
            "isin ldexp less less_equal linspace logaddexp logaddexp2 logical_and logical_or "
            "logical_xor logspace maximum median meshgrid minimum mod multiply nan_to_num "
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin "
            "nanpercentile nanprod nanquantile nanstd nansum nanvar not_equal outer pad "
            "partition percentile polyadd polysub polyval pow power ptp quantile "
            "real_if_close remainder resize roll rot90 round setdiff1d setxor1d sort split "
            "squeeze stack subtract take trace tril tril_indices_from triu triu_indices_from "
            "true_divide union1d unique unwrap vsplit linalg.matrix_power linalg.tensorinv "
            "linalg.pinv linalg.svd linalg.norm linalg.cond linalg.matrix_rank fft.fft "
            "fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftshift fft.ifftshift "
        ),
    ),
}


def copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return [each.clone() for each in value] if isinstance(value, list) else value


def text_of(value):
    if isinstance(value, (tuple, list)):
        return [text_of(each) for each in value]
    if not hasattr(value, "tolist"):
        return repr(value)
    # a bool tensor of PyTorch comes out of a ufunc as uint8
    numbers = np.round(np.asarray(value).astype(complex), 3)
    kind = "tensor" if isinstance(value, torch.Tensor) else "array"
    return kind, numbers.real.tolist(), numbers.imag.tolist()


for form, (arguments, names) in CALLS.items():
    for name in names.split():
        result = operator.attrgetter(name)(np)(*map(copied, arguments))
        print(f"np.{name}({form})", text_of(result))

pieces = [torch.tensor([1.0, 2.0]), torch.tensor([2.0, 3.0])]
print(np.stack(pieces).std(), np.stack(pieces).astype(int).tolist())
print(type(np.add.outer(vector, vector)).__name__, type(np.add.reduce(vector)).__name__)
print(type(np.mean(np.asarray(vector))).__name__, type(np.array(pieces)).__name__)
for call in (lambda: np.stack([vector.requires_grad_()]), lambda: np.stack([vector, vector])):
    try:
        call()
    except (RuntimeError, TypeError, ValueError):
        print("refused")
