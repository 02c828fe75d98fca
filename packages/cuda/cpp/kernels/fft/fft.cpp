// Fourier transforms of complex numbers (fft_c2c), from which the others are composed. Lines whose
// length has the factors 2, 3, 5 and 7 alone go through passes that sort themselves (Stockham;
// Govindaraju et al. 2008): in shared memory, or, where they do not fit, in global memory. Other
// lengths become a convolution of a power of two (Bluestein 1970).
#include "block/block.h"
#if PLAIT_HOST
#include <cmath>
#include <utility>

#include "host/dense.h"
#endif

namespace plait::cuda {

constexpr int kMostPasses = 64;

// Lines [outer][n][inner]: line i is number i % inner of outer i / inner.
struct FftArgs {
  const void *from;
  void *to;
  int64_t lines, n, inner;
  int32_t lines_of_block, count;
  int32_t sign;  // -1: forward
  uint8_t radix[kMostPasses];
  double scale;
};

// One pass over lines [lines][n] in global memory; `before`: the product of the radices before.
struct FftPassArgs {
  const void *from;
  void *to;
  int64_t lines, n, before;
  int32_t radix, sign;
};

// A line as a convolution of length m: what surrounds the transforms of that length.
struct ChirpArgs {
  const void *from;
  void *to;
  const void *chirp;  // the transformed chirp of m elements
  int64_t lines, n, inner, m;
  int32_t sign;
  double scale;
};

#if PLAIT_KERNELS

template <class T>
using PartOf = typename scalar::math::RealOf<T>::type;

// exp(sign 2 pi i k / n) for 0 <= k < n
template <class T>
PLAIT_DEVICE T root_of_unity(int64_t k, int64_t n, int sign) {
  using R = PartOf<T>;
  R s, c;
  // the angle in half turns, from -1 to 1
  const int64_t twice = 2 * k > n ? 2 * (k - n) : 2 * k;
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(R) == 4) {
    sincospif(float(double(twice) / double(n)), &s, &c);
  } else {
    sincospi(double(twice) / double(n), &s, &c);
  }
#else
  const double angle = double(twice) / double(n) * 3.14159265358979323846;
  s = R(__builtin_sin(angle)), c = R(__builtin_cos(angle));
#endif
  return {c, sign < 0 ? -s : s};
}

// The transform of r numbers, in place.
template <int r, class T>
PLAIT_DEVICE void small_transform(T *v, int sign) {
  using R = PartOf<T>;
  if constexpr (r == 2) {
    const T a = v[0], b = v[1];
    v[0] = a + b, v[1] = a - b;
  } else if constexpr (r == 4) {
    const T a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
    const T turned = sign < 0 ? T{d.im, -d.re} : T{-d.im, d.re};
    v[0] = a + c, v[1] = b + turned, v[2] = a - c, v[3] = b - turned;
  } else {
    constexpr double cosine[3][4] = {
        {1, -0.5},
        {1, 0.30901699437494742410, -0.80901699437494742410},
        {1, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624}};
    constexpr double sine[3][4] = {
        {0, 0.86602540378443864676},
        {0, 0.95105651629515357212, 0.58778525229247312917},
        {0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048}};
    constexpr int which = (r - 3) / 2, half = r / 2;
    T sum[half + 1], difference[half + 1], all = v[0];
#pragma unroll
    for (int s = 1; s <= half; s++) {
      sum[s] = v[s] + v[r - s], difference[s] = v[s] - v[r - s];
      all = all + sum[s];
    }
    const T first = v[0];
    v[0] = all;
#pragma unroll
    for (int q = 1; q <= half; q++) {
      T even = first, odd = T(R(0));
#pragma unroll
      for (int s = 1; s <= half; s++) {
        const int at = q * s % r, place = at > half ? r - at : at;
        const R c = R(cosine[which][place]),
                d = R(at > half ? -sine[which][place] : sine[which][place]);
        even = even + T{c * sum[s].re, c * sum[s].im};
        odd = odd + T{d * difference[s].re, d * difference[s].im};
      }
      const T turned = sign < 0 ? T{odd.im, -odd.re} : T{-odd.im, odd.re};
      v[q] = even + turned, v[r - q] = even - turned;
    }
  }
}

// Butterfly j of n / r of a pass.
template <int r, class T, class Load, class Store>
PLAIT_DEVICE void butterfly(int64_t j, int64_t n, int64_t before, int sign, Load load,
                            Store store) {
  const int64_t k = j % before, gap = n / r;
  T v[r];
#pragma unroll
  for (int s = 0; s < r; s++) v[s] = load(j + s * gap);
  if (k > 0) {
#pragma unroll
    for (int s = 1; s < r; s++) v[s] = v[s] * root_of_unity<T>(s * k, before * r, sign);
  }
  small_transform<r>(v, sign);
  const int64_t at = j / before * before * r + k;
#pragma unroll
  for (int s = 0; s < r; s++) store(at + s * before, v[s]);
}
template <class T, class Load, class Store>
PLAIT_DEVICE void any_butterfly(int radix, int64_t j, int64_t n, int64_t before, int sign,
                                Load load, Store store) {
  switch (radix) {
    case 2: return butterfly<2, T>(j, n, before, sign, load, store);
    case 3: return butterfly<3, T>(j, n, before, sign, load, store);
    case 4: return butterfly<4, T>(j, n, before, sign, load, store);
    case 5: return butterfly<5, T>(j, n, before, sign, load, store);
    default: return butterfly<7, T>(j, n, before, sign, load, store);
  }
}

// Some lines for each block, in shared memory.
template <class T>
PLAIT_DEVICE void fft_lines(Block &t, const FftArgs &a) {
  const auto shared = t.template shared<T>(2 * a.lines_of_block * a.n);
  const auto from = t.template global<const T>(a.from);
  const auto to = t.template global<T>(a.to);
  const int64_t first = t.block() * a.lines_of_block;
  const int64_t lines = a.lines - first < a.lines_of_block ? a.lines - first : a.lines_of_block;
  const int64_t total = lines * a.n;
  // neighbouring threads read neighbouring elements
  auto place = [&](int64_t e, int64_t *at) {
    const int64_t line = a.inner == 1 ? e / a.n : e % lines, i = a.inner == 1 ? e % a.n : e / lines;
    const int64_t whole = first + line;
    *at = (whole / a.inner * a.n + i) * a.inner + whole % a.inner;
    return line * a.n + i;
  };
  int64_t at;
  for (int64_t e = t.thread(); e < total; e += t.threads()) {
    const int64_t in_shared = place(e, &at);
    shared.store(in_shared, from.load(at));
  }
  t.barrier();
  int64_t before = 1, read = 0, write = a.lines_of_block * a.n;
  for (int pass = 0; pass < a.count; pass++) {
    const int radix = a.radix[pass];
    const int64_t each = a.n / radix;
    for (int64_t e = t.thread(); e < lines * each; e += t.threads()) {
      const int64_t line = e / each * a.n;
      any_butterfly<T>(
          radix, e % each, a.n, before, a.sign,
          [&](int64_t i) { return shared.load(read + line + i); },
          [&](int64_t i, T v) { shared.store(write + line + i, v); });
    }
    t.barrier();
    before *= radix;
    const int64_t other = read;
    read = write, write = other;
  }
  using R = PartOf<T>;
  const R scale = R(a.scale);
  for (int64_t e = t.thread(); e < total; e += t.threads()) {
    const int64_t in_shared = place(e, &at);
    const T v = shared.load(read + in_shared);
    to.store(at, T{v.re * scale, v.im * scale});
  }
}

template <class T>
PLAIT_DEVICE void fft_pass(Thread &t, const FftPassArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  const int64_t each = a.n / a.radix;
  for (int64_t e = t.index(); e < a.lines * each; e += t.stride()) {
    const int64_t line = e / each * a.n;
    any_butterfly<T>(
        a.radix, e % each, a.n, a.before, a.sign, [&](int64_t i) { return from.load(line + i); },
        [&](int64_t i, T v) { to.store(line + i, v); });
  }
}

// The chirp exp(sign pi i k^2 / n).
template <class T>
PLAIT_DEVICE T chirp_of(const ChirpArgs &a, int64_t k, int sign) {
  const uint64_t twice = 2 * uint64_t(a.n);
  return root_of_unity<T>(int64_t(uint64_t(k) % twice * (uint64_t(k) % twice) % twice),
                          int64_t(twice), sign);
}
PLAIT_DEVICE int64_t in_lines(const ChirpArgs &a, int64_t line, int64_t k) {
  return (line / a.inner * a.n + k) * a.inner + line % a.inner;
}

// to = the chirp that lines are convolved with, m elements.
template <class T>
PLAIT_DEVICE void fft_chirp(Thread &t, const ChirpArgs &a) {
  const auto to = t.global<T>(a.to);
  for (int64_t k = t.index(); k < a.m; k += t.stride()) {
    const int64_t at = k < a.n ? k : a.m - k;
    to.store(k, at < a.n ? chirp_of<T>(a, at, -a.sign) : T(PartOf<T>(0)));
  }
}
// to = lines times the chirp, followed by zeros: [lines][m].
template <class T>
PLAIT_DEVICE void fft_spread(Thread &t, const ChirpArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  for (int64_t e = t.index(); e < a.lines * a.m; e += t.stride()) {
    const int64_t line = e / a.m, k = e % a.m;
    to.store(
        e, k < a.n ? from.load(in_lines(a, line, k)) * chirp_of<T>(a, k, a.sign) : T(PartOf<T>(0)));
  }
}
// to, [lines][m], times the transformed chirp.
template <class T>
PLAIT_DEVICE void fft_convolve(Thread &t, const ChirpArgs &a) {
  const auto chirp = t.global<const T>(a.chirp);
  const auto to = t.global<T>(a.to);
  for (int64_t e = t.index(); e < a.lines * a.m; e += t.stride())
    to.store(e, to.load(e) * chirp.load(e % a.m));
}
// Lines of n elements from [lines][m], times the chirp and a scale.
template <class T>
PLAIT_DEVICE void fft_gather(Thread &t, const ChirpArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  using R = PartOf<T>;
  const R scale = R(a.scale);
  for (int64_t e = t.index(); e < a.lines * a.n; e += t.stride()) {
    const int64_t line = e / a.n, k = e % a.n;
    const T v = from.load(line * a.m + k) * chirp_of<T>(a, k, a.sign);
    to.store(in_lines(a, line, k), T{v.re * scale, v.im * scale});
  }
}
// Between lines [outer][n][inner] and [lines][n]; m: 1 to the latter, 0 back. With a scale.
template <class T>
PLAIT_DEVICE void fft_move(Thread &t, const ChirpArgs &a) {
  const auto from = t.global<const T>(a.from);
  const auto to = t.global<T>(a.to);
  using R = PartOf<T>;
  const R scale = R(a.scale);
  for (int64_t e = t.index(); e < a.lines * a.n; e += t.stride()) {
    const int64_t apart = in_lines(a, e / a.n, e % a.n);
    const T v = from.load(a.m ? apart : e);
    to.store(a.m ? e : apart, T{v.re * scale, v.im * scale});
  }
}
#endif

PLAIT_DEVICE_KERNEL(fft_lines, FftArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_pass, FftPassArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_chirp, ChirpArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_spread, ChirpArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_convolve, ChirpArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_gather, ChirpArgs, 256, COMPLEX);
PLAIT_DEVICE_KERNEL(fft_move, ChirpArgs, 256, COMPLEX);

#if PLAIT_HOST
namespace {

// Lines [outer][n][inner] of one dimension.
struct Lines {
  Kind k;
  int64_t count, n, inner;
  int64_t bytes() const { return count * n * size_of(k); }
};

// The radices of the passes of a length; 0: it has other factors.
int passes_of(int64_t n, uint8_t *radix) {
  int count = 0;
  for (const int r : {4, 2, 3, 5, 7})
    for (; n % r == 0; n /= r) radix[count++] = uint8_t(r);
  return n == 1 ? count : 0;
}

plait_status transform(const plait_call *c, const Lines &s, int sign, double scale,
                       const void *from, void *to);

plait_status in_shared(const plait_call *c, const Lines &s, FftArgs a) {
  const int64_t line = 2 * a.n * size_of(s.k), most = 48 << 10;
  int64_t lines = ceil_div(256, a.n > 4 ? a.n / 4 : 1);  // so that all threads have a butterfly
  if (s.inner > 1 && lines < 8) lines = 8;                // neighbours in memory
  if (lines * line > most) lines = most / line;
  if (lines < 1) lines = 1;
  if (lines > s.count) lines = s.count;
  a.lines_of_block = int32_t(lines);
  return launch(c, fft_lines_kernel, s.k, a, ceil_div(s.count, lines), 256, lines * line);
}

plait_status move_lines(const plait_call *c, const Lines &s, bool apart, double scale,
                        const void *from, void *to) {
  const ChirpArgs a{from, to, nullptr, s.count, s.n, s.inner, apart ? 0 : 1, 0, scale};
  return launch(c, fft_move_kernel, s.k, a, blocks_for(c, s.count * s.n, 256), 256);
}

plait_status in_global(const plait_call *c, const Lines &s, const FftArgs &a) {
  DeviceWorkspace first, second;
  PLAIT_TRY(first.take(c, s.bytes()));
  PLAIT_TRY(second.take(c, s.bytes()));
  void *from = first.data(), *to = second.data();
  PLAIT_TRY(move_lines(c, s, false, 1, a.from, from));
  FftPassArgs pass{nullptr, nullptr, s.count, s.n, 1, 0, a.sign};
  for (int i = 0; i < a.count; i++) {
    pass.from = from, pass.to = to, pass.radix = a.radix[i];
    PLAIT_TRY(
        launch(c, fft_pass_kernel, s.k, pass, blocks_for(c, s.count * s.n / pass.radix, 256), 256));
    pass.before *= pass.radix;
    std::swap(from, to);
  }
  return move_lines(c, s, true, a.scale, from, a.to);
}

plait_status by_convolution(const plait_call *c, const Lines &s, int sign, double scale,
                            const void *from, void *to) {
  int64_t m = 1;
  while (m < 2 * s.n - 1) m *= 2;
  const Lines whole{s.k, s.count, m, 1}, one{s.k, 1, m, 1};
  DeviceWorkspace chirp, lines;
  PLAIT_TRY(chirp.take(c, one.bytes()));
  PLAIT_TRY(lines.take(c, whole.bytes()));
  ChirpArgs a{from, chirp.data(), chirp.data(), s.count, s.n, s.inner, m, sign, scale / double(m)};
  PLAIT_TRY(launch(c, fft_chirp_kernel, s.k, a, blocks_for(c, m, 256), 256));
  PLAIT_TRY(transform(c, one, -1, 1, chirp.data(), chirp.data()));
  a.to = lines.data();
  PLAIT_TRY(launch(c, fft_spread_kernel, s.k, a, blocks_for(c, s.count * m, 256), 256));
  PLAIT_TRY(transform(c, whole, -1, 1, lines.data(), lines.data()));
  PLAIT_TRY(launch(c, fft_convolve_kernel, s.k, a, blocks_for(c, s.count * m, 256), 256));
  PLAIT_TRY(transform(c, whole, 1, 1, lines.data(), lines.data()));
  a.from = lines.data(), a.to = to;
  return launch(c, fft_gather_kernel, s.k, a, blocks_for(c, s.count * s.n, 256), 256);
}

// Transforms all lines, also in place.
plait_status transform(const plait_call *c, const Lines &s, int sign, double scale,
                       const void *from, void *to) {
  FftArgs a{};
  a.from = from, a.to = to, a.lines = s.count, a.n = s.n, a.inner = s.inner;
  a.sign = sign, a.scale = scale;
  a.count = passes_of(s.n, a.radix);
  if (a.count == 0 && s.n > 1) return by_convolution(c, s, sign, scale, from, to);
  const int64_t line = 2 * s.n * size_of(s.k);
  return line <= facts(c->device.device_id).shared_memory ? in_shared(c, s, a) : in_global(c, s, a);
}

// fft_c2c(self, dim, norm, forward)
plait_status fft_c2c(plait_call *c) {
  const DLTensor *in = tensor(c, 0), *out = result(c);
  const Kind k = kind(out->dtype);
  if (!is_complex_kind(k)) return PLAIT_DECLINE;
  if (numel(out) == 0) return PLAIT_OK;
  const plait_value &dims = c->in[1];
  const bool forward = integer(c, 3) != 0;
  const void *from = in->data;
  if (!is_contiguous(in) || dims.n == 0) {
    PLAIT_TRY(copy_dense(c, in, out->data));
    from = out->data;
  }
  for (size_t i = 0; i < size_t(dims.n); i++) {
    const int64_t d = dims.u.is[i];
    Lines s{k, 1, out->shape[d], 1};
    for (int64_t e = d + 1; e < out->ndim; e++) s.inner *= out->shape[e];
    s.count = numel(out) / s.n;
    const bool whole = text_is(c, 2, forward ? "forward" : "backward");
    const double scale = text_is(c, 2, "ortho") ? 1 / std::sqrt(double(s.n))
                         : whole                ? 1 / double(s.n)
                                                : 1;
    PLAIT_TRY(transform(c, s, forward ? -1 : 1, scale, from, out->data));
    from = out->data;
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("fft_c2c", fft_c2c);

}  // namespace
#endif

}  // namespace plait::cuda
