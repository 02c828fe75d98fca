"""Windows of signal processing: Hann, Hamming, Blackman, Bartlett, Kaiser."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, default_dtype, float64, part, require, to_dtype

TAU = 6.283185307179586


def _window(name, arguments, text, example, internal=False):
    operator = Composite(
        f"{name}(int window_length, bool periodic=True{arguments}, *, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text}

    Here ``N = window_length`` if `periodic`, as a Fourier transform needs it, else ``N = window_length - 1``: a symmetric
    window.

    Shape: (window_length,). Dtypes: floating; None is the default dtype. Raises: ValueError if `window_length` is negative.

    >>> import plait_core as pc
    >>> pc.{name}({example[0]}).tolist()
    {example[1]}
    """,
        dtypes="floating",
        internal=internal,
    )
    return operator


cosine_window = _window(
    "cosine_window",
    ", float a=0.5, float b=0.5, float c=0",
    "``a - b * cos(2 * pi * n / N) + c * cos(4 * pi * n / N)`` for n = 0, 1, ...",
    ("2", "[0.0, 1.0]"),
    internal=True,
)


@part
def window_dtype(window_length, dtype):
    """Check the arguments that all windows have; return the dtype of the result."""
    made = dtype if dtype is not None else default_dtype()
    require("dtype", made, "floating")
    check(
        window_length >= 0,
        f"`window_length` must not be negative; got {window_length}",
        "ValueError",
    )
    return made


@cosine_window.decompose
def _(window_length, periodic, a, b, c, dtype, device):
    made = window_dtype(window_length, dtype)
    if window_length < 2:
        return op.full([window_length], 1.0, dtype=made, device=device)
    last = window_length if periodic else window_length - 1
    angle = op.mul(op.arange(window_length, dtype=float64, device=device), TAU / last)
    made_wide = op.sub(op.cos(op.mul(angle, 2.0)) * c + a, op.cos(angle) * b)
    return to_dtype(made_wide, made)


hann_window = _window(
    "hann_window",
    "",
    "Hann's window: ``(1 - cos(2 * pi * n / N)) / 2`` for n = 0, 1, ...",
    ("4", "[0.0, 0.5, 1.0, 0.5]"),
)
hamming_window = _window(
    "hamming_window",
    ", float alpha=0.54, float beta=0.46",
    "Hamming's window: ``alpha - beta * cos(2 * pi * n / N)`` for n = 0, 1, ...",
    ("2, alpha=0.5, beta=0.5", "[0.0, 1.0]"),
)
blackman_window = _window(
    "blackman_window",
    "",
    "Blackman's window: ``0.42 - 0.5 * cos(2 * pi * n / N) + 0.08 * cos(4 * pi * n / N)`` for n = 0, 1, ...",
    ("1", "[1.0]"),
)
bartlett_window = _window(
    "bartlett_window",
    "",
    "Bartlett's window, a triangle: ``1 - abs(2 * n / N - 1)`` for n = 0, 1, ...",
    ("4", "[0.0, 0.5, 1.0, 0.5]"),
)
kaiser_window = _window(
    "kaiser_window",
    ", float beta=12",
    "Kaiser's window: ``i0(beta * sqrt(1 - (2 * n / N - 1) ** 2)) / i0(beta)`` for n = 0, 1, ...",
    ("1", "[1.0]"),
)


@hann_window.decompose
def _(window_length, periodic, dtype, device):
    return cosine_window(window_length, periodic, 0.5, 0.5, 0.0, dtype=dtype, device=device)


@hamming_window.decompose
def _(window_length, periodic, alpha, beta, dtype, device):
    return cosine_window(window_length, periodic, alpha, beta, 0.0, dtype=dtype, device=device)


@blackman_window.decompose
def _(window_length, periodic, dtype, device):
    return cosine_window(window_length, periodic, 0.42, 0.5, 0.08, dtype=dtype, device=device)


@bartlett_window.decompose
def _(window_length, periodic, dtype, device):
    made = window_dtype(window_length, dtype)
    if window_length < 2:
        return op.full([window_length], 1.0, dtype=made, device=device)
    last = window_length if periodic else window_length - 1
    place = op.mul(op.arange(window_length, dtype=float64, device=device), 2.0 / last)
    return to_dtype(op.rsub(op.abs(op.sub(place, 1.0)), 1.0), made)


@kaiser_window.decompose
def _(window_length, periodic, beta, dtype, device):
    made = window_dtype(window_length, dtype)
    if window_length < 2:
        return op.full([window_length], 1.0, dtype=made, device=device)
    last = window_length if periodic else window_length - 1
    place = op.sub(op.mul(op.arange(window_length, dtype=float64, device=device), 2.0 / last), 1.0)
    height = op.sqrt(op.clamp_min(op.rsub(op.square(place), 1.0), 0.0))
    top = op.i0(op.full([], beta, dtype=float64, device=device))
    return to_dtype(op.div(op.i0(op.mul(height, beta)), top), made)
