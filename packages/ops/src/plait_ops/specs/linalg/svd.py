"""Singular values and vectors."""

from plait_ops import calls as op
from plait_ops.costs import matrices, singular_values
from plait_ops.linear_words import require_matrix
from plait_ops.spec import Composite, Operator
from plait_ops.specs.linalg.eigenvalues import quotient
from plait_ops.words import check, conjugate, is_complex, is_recorded, is_unused, real_dtype, result

_DRIVERS = "Raises: ShapeError for fewer than 2 dimensions, DTypeError for integers, RuntimeError for infinities or NaN."

linalg_svd_ = Operator(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    doc=f"""
    The singular value decomposition ``A = U diag(S) Vh``: U and Vh have orthonormal columns and rows, S is real, not
    negative, and in descending order. The signs (phases) of the vectors are arbitrary.

    Shapes: `A` is (..., m, n) and k = min(m, n); U is (..., m, m), S (..., k), Vh (..., n, n); without `full_matrices` U is
    (..., m, k) and Vh (..., k, n). Dtypes: floating and complex. `driver` must be None: there is one. The gradient exists
    for distinct singular values that are not 0, or if it does not depend on U and Vh. It is correct only for functions of the result that do not depend on the
    phases of the vectors (for complex `A`), and that use the vectors added by `full_matrices` only through the space that
    they span.
    {_DRIVERS}

    >>> import plait_core as pc
    >>> pc.linalg.svd(pc.tensor([[3.0, 0.0], [0.0, -4.0]])).S.tolist()
    [4.0, 3.0]
    """,
    kernel="in[0] is (..., m, n) in any strides, m or n may be 0; results are in C order; out[1] is real, in descending order; in[1]: out[0] and out[2] are square; in[2] is None; errors as for `linalg_eigh`.",
    dtypes="inexact",
    lapack=True,
)
linalg_svd_.batch("matrices")
linalg_svdvals_ = Composite(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    doc=f"""
    The singular values of every matrix of a batch, descending.

    Shapes: `A` is (..., m, n), the result (..., min(m, n)), real. Dtypes: floating and complex.
    {_DRIVERS}

    >>> import plait_core as pc
    >>> pc.linalg.svdvals(pc.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """,
    dtypes="inexact",
)
singular_values_ = Operator(
    "singular_values(Tensor A, bool vectors) -> (Tensor S, Tensor U, Tensor Vh)",
    doc="The singular values; the vectors, which the derivative reads, or without `vectors` empty tensors.",
    kernel="optional: without a kernel other operators compute it; as for `linalg_svd` without full matrices; out[1] and out[2] are empty unless in[1].",
    internal=True,
    dtypes="inexact",
    auxiliary=(1, 2),
    lapack=True,
)
singular_values_.batch("code")


@linalg_svd_.shape
def _(A, full_matrices, driver):
    require_matrix("A", A)
    check(
        driver is None,
        f'`driver` must be None on this device, which has one algorithm; got "{driver}"',
        "ValueError",
    )
    m = A.shape[-2]
    n = A.shape[-1]
    k = min(m, n)
    batch = A.shape[:-2]
    return (
        result(batch + [m, m if full_matrices else k], A.dtype),
        result(batch + [k], real_dtype(A.dtype)),
        result(batch + [n if full_matrices else k, n], A.dtype),
    )


@linalg_svd_.cost
def _(A, full_matrices):
    # approximately, as for `linalg_svdvals` (Golub and Van Loan, with a QR factorisation first)
    small = min(A.shape[-2], A.shape[-1])
    large = max(A.shape[-2], A.shape[-1])
    if full_matrices:
        return matrices(A) * (4 * large * large * small + 22 * small * small * small)
    return matrices(A) * (6 * large + 20 * small) * small * small


@linalg_svdvals_.decompose
def _(A, driver):
    check(
        driver is None,
        f'`driver` must be None on this device, which has one algorithm; got "{driver}"',
        "ValueError",
    )
    values, _U, _Vh = op.singular_values(A, is_recorded(A))
    return values


@singular_values_.shape
def _(A, vectors):
    require_matrix("A", A)
    m = A.shape[-2]
    n = A.shape[-1]
    k = min(m, n)
    batch = A.shape[:-2]
    return (
        result(batch + [k], real_dtype(A.dtype)),
        result(batch + [m, k] if vectors else [0], A.dtype),
        result(batch + [k, n] if vectors else [0], A.dtype),
    )


@singular_values_.cost
def _(A):
    return matrices(A) * singular_values(A.shape[-2], A.shape[-1])


@linalg_svd_.vjp("A")
def _(g0, g1, g2, A, result0, result1, result2, full_matrices):
    m = A.shape[-2]
    n = A.shape[-1]
    k = min(m, n)
    u = op.narrow(result0, -1, 0, k)
    vh = op.narrow(result2, -2, 0, k)
    row = op.unsqueeze(result1, -2)
    if is_unused(g0) and is_unused(g2):
        return (u * op.unsqueeze(g1, -2)) @ vh
    gu = op.narrow(g0, -1, 0, k)
    one = op.eye(k, dtype=result1.dtype, device=result1.device)
    column = op.unsqueeze(result1, -1)
    gaps = (row - column) * (row + column) + one
    ut = conjugate(op.transpose(u, -2, -1))
    v = conjugate(op.transpose(vh, -2, -1))
    gv = conjugate(op.transpose(op.narrow(g2, -2, 0, k), -2, -1))
    inner = op.unsqueeze(g1, -1) * one
    # one phase of each pair of vectors is arbitrary; a change of the other one changes A
    if not is_unused(g0):
        left = ut @ gu
        skew = quotient(left - conjugate(op.transpose(left, -2, -1)), gaps)
        inner = inner + skew * row
        if is_complex(A.dtype):
            inner = inner + quotient(skew * one, row * 2.0) - skew * one * row
    if not is_unused(g2):
        right = vh @ gv
        skew = quotient(right - conjugate(op.transpose(right, -2, -1)), gaps)
        inner = inner + column * skew
        if is_complex(A.dtype):
            inner = inner - skew * one * row
    whole = u @ inner @ vh
    if m > n and not is_unused(g0):
        rest = gu - u @ left
        if full_matrices:  # the vectors that complete the basis change with the remaining space
            more = op.narrow(result0, -1, k, m - k)
            turned = conjugate(op.transpose(op.narrow(g0, -1, k, m - k), -2, -1))
            rest = rest - more @ (turned @ u)
        whole = whole + quotient(rest, row) @ vh
    if n > m and not is_unused(g2):
        rest = gv - v @ right
        if full_matrices:
            more = conjugate(op.transpose(op.narrow(result2, -2, k, n - k), -2, -1))
            rest = rest - more @ (op.narrow(g2, -2, k, n - k) @ v)
        whole = whole + u @ conjugate(op.transpose(quotient(rest, row), -2, -1))
    return whole


@singular_values_.vjp("A")
def _(g0, A, result1, result2, vectors):
    u = result1
    vh = result2
    if not vectors or is_recorded(A):  # derivatives of the derivative go through the vectors
        u, _s, vh = op.linalg_svd(A, False)
    return (u * op.unsqueeze(g0, -2)) @ vh


svd = Composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    doc="""
    As `linalg.svd`, but with V in place of its conjugate transpose: ``self = U diag(S) V^H``; `some` means
    ``full_matrices=False``; without `compute_uv` U and V are filled with zeros.

    >>> import plait_core as pc
    >>> pc.svd(pc.tensor([[3.0, 0.0], [0.0, -4.0]])).S.tolist()
    [4.0, 3.0]
    """,
    dtypes="inexact",
    variants="function method",
)


@svd.decompose
def _(self, some, compute_uv):
    if not compute_uv:
        m = self.shape[-2]
        n = self.shape[-1]
        batch = self.shape[:-2]
        return (
            op.zeros(batch + [m, m], dtype=self.dtype, device=self.device),
            op.linalg_svdvals(self),
            op.zeros(batch + [n, n], dtype=self.dtype, device=self.device),
        )
    u, s, vh = op.linalg_svd(self, not some)
    return u, s, op.transpose(op.conj(vh) if is_complex(self.dtype) else vh, -2, -1)


@singular_values_.decompose
def _(A, vectors):
    u, s, vh = linalg_svd_(A, False)
    if vectors:
        return s, u, vh
    none = op.zeros([0], dtype=A.dtype, device=A.device)
    return s, none, op.clone(none)
