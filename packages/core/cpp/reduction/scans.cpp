// Running sums and products along a dimension: cumsum and cumprod.
//
// A long line is cut into chains of a fixed length. The totals of the chains come first, then the
// chains from their first values, several at a time. So threads share one line, additions do not
// wait for each other, and the result depends on the length of the line alone. Sums and products of
// float32 are carried in float64: an error of one of them would be in all that follow.
#include "reduction/scans.h"
#include "kernel/copy.h"
#include "reduction/numbers.h"

namespace plait::core {
namespace {

constexpr int64_t kChain = 4096, kAtOnce = 4, kWidth = 1024, kBlock = 1024;

template <class T, bool product>
struct Scan {
  using W = typename Carried<T>::type;
  static W first() { return W(product ? 1 : 0); }
  static W step(W a, W b) {
    if constexpr (product &&
                  scalar::math::is_complex<W>)  // 1 times infinity has a part 0 * infinity
      if (a.re == 1 && a.im == 0) return b;
    return product ? W(a * b) : W(a + b);
  }

  static W total(const Numbers<T> &from, int64_t at, int64_t n) {
    constexpr int kLanes = 16;
    W lane[kLanes];
    for (W &each : lane) each = first();
    T some[kBlock];
    const int64_t most = from.widens() ? kBlock : n;
    for (int64_t begin = 0; begin < n; begin += most) {
      const int64_t m = least(most, n - begin);
      const T *p = from.read(at + begin, m, some);
      int64_t i = 0;
      for (; i + kLanes <= m; i += kLanes)
        for (int j = 0; j < kLanes; j++) lane[j] = step(lane[j], W(p[i + j]));
      for (; i < m; i++) lane[0] = step(lane[0], W(p[i]));
    }
    for (int half = kLanes / 2; half; half /= 2)
      for (int j = 0; j < half; j++) lane[j] = step(lane[j], lane[j + half]);
    return lane[0];
  }
  static void chain(const Numbers<T> &from, const Numbers<T> &to, int64_t at, int64_t n, W acc) {
    each_block<T>(from, to, at, n, [&](const T *p, T *q, int64_t m) {
      for (int64_t i = 0; i < m; i++) q[i] = T(acc = step(acc, W(p[i])));
    });
  }
  // kAtOnce whole chains from `at` on; halves a block of each chain at a time.
  static void chains(const Numbers<T> &from, const Numbers<T> &to, int64_t at, const W *begin) {
    W acc[kAtOnce];
    for (int k = 0; k < kAtOnce; k++) acc[k] = begin[k];
    const auto run = [&](const T *p, T *q, int64_t apart, int64_t m) {
      for (int64_t i = 0; i < m; i++)
        for (int k = 0; k < kAtOnce; k++)
          q[k * apart + i] = T(acc[k] = step(acc[k], W(p[k * apart + i])));
    };
    if (!from.widens())
      return run(from.read(at, kAtOnce * kChain, nullptr), to.place(at, nullptr), kChain, kChain);
    T some[kAtOnce * kBlock];
    for (int64_t i = 0; i < kChain; i += kBlock) {
      for (int64_t k = 0; k < kAtOnce; k++)
        from.read(at + k * kChain + i, kBlock, some + k * kBlock);
      run(some, some, kBlock, kBlock);
      for (int64_t k = 0; k < kAtOnce; k++)
        to.round(at + k * kChain + i, kBlock, some + k * kBlock);
    }
  }

  static plait_status long_line(const plait_call *c, const Numbers<T> &from, const Numbers<T> &to,
                                int64_t start, int64_t n) {
    const int64_t count = ceil_div(n, kChain);
    const int64_t whole = n / kChain / kAtOnce;
    Workspace space;
    PLAIT_TRY(space.take(c, uint64_t(count) * sizeof(W)));
    W *begin = space.as<W>();
    const auto length = [&](int64_t k) { return least(kChain, n - k * kChain); };
    parallel_ranges(c, count, 2 * kSerial / kChain, [&](int64_t a, int64_t b) {
      for (int64_t k = a; k < b; k++) begin[k] = total(from, start + k * kChain, length(k));
    });
    W acc = first();
    for (int64_t k = 0; k < count; k++) {
      const W own = begin[k];
      begin[k] = acc;
      acc = step(acc, own);
    }
    parallel_ranges(c, whole, kSerial / kChain / kAtOnce, [&](int64_t a, int64_t b) {
      for (int64_t g = a; g < b; g++) {
        chains(from, to, start + g * kAtOnce * kChain, begin + g * kAtOnce);
      }
    });
    const int64_t done = whole * kAtOnce;
    parallel_ranges(c, count - done, 2 * kSerial / kChain, [&](int64_t a, int64_t b) {
      for (int64_t k = done + a; k < done + b; k++)
        chain(from, to, start + k * kChain, length(k), begin[k]);
    });
    return PLAIT_OK;
  }

  // An addition of integers takes one cycle: lines of them need not be computed at once, and may be
  // cut anywhere.
  static constexpr bool kQuick = !product && std::is_integral_v<W>;

  // Short lines, some at once, so that their additions do not wait for each other.
  static constexpr int kLinesAtOnce = 8;
  static void lines(const T *from, T *to, int64_t n) {
    W acc[kLinesAtOnce];
    for (W &each : acc) each = first();
    for (int64_t i = 0; i < n; i++)
      for (int k = 0; k < kLinesAtOnce; k++)
        to[k * n + i] = T(acc[k] = step(acc[k], W(from[k * n + i])));
  }

  // Rows of so few elements that their sums stay in registers.
  template <int kFew>
  static void narrow(const T *from, T *to, int64_t n) {
    W acc[kFew];
    for (W &each : acc) each = first();
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kFew; j++)
        to[i * kFew + j] = T(acc[j] = step(acc[j], W(from[i * kFew + j])));
  }

  // The inner positions [begin, end) of n rows of `inner` elements from `at` on
  static void columns(const Numbers<T> &from, const Numbers<T> &to, int64_t at, int64_t n,
                      int64_t inner, int64_t begin, int64_t end) {
    if (!from.widens() && inner <= 4) {
      const T *p = from.read(at, n * inner, nullptr);
      T *q = to.place(at, nullptr);
      return inner == 2 ? narrow<2>(p, q, n) : inner == 3 ? narrow<3>(p, q, n) : narrow<4>(p, q, n);
    }
    W acc[kWidth];
    T some[kWidth];
    const int64_t width = end - begin;
    for (int64_t j = 0; j < width; j++) acc[j] = first();
    const int64_t rows = width == inner ? kWidth / width : 1;  // that are read at once
    for (int64_t i = 0; i < n; i += rows) {
      const int64_t first = at + i * inner + begin, m = least(rows, n - i);
      const T *own = from.read(first, m * width, some);
      T *now = to.place(first, some);
      for (int64_t k = 0; k < m * width; k += width)
#pragma GCC ivdep
        for (int64_t j = 0; j < width; j++) now[k + j] = T(acc[j] = step(acc[j], W(own[k + j])));
      to.round(first, m * width, now);
    }
  }

  static plait_status run(const plait_call *c, const DLTensor *in, const DLTensor *out,
                          int64_t outer, int64_t n, int64_t inner) {
    const Numbers<T> from(in), to(out);
    const bool enough = kQuick && outer >= kLinesAtOnce;  // lines for threads
    if (inner == 1 && n >= 2 * kAtOnce * kChain && !enough) {
      for (int64_t o = 0; o < outer; o++) PLAIT_TRY(long_line(c, from, to, o * n, n));
      return PLAIT_OK;
    }
    if (inner == 1) {
      parallel_ranges(c, outer, kSerial / n + 1, [&](int64_t begin, int64_t end) {
        int64_t o = begin;
        for (; !kQuick && !from.widens() && o + kLinesAtOnce <= end; o += kLinesAtOnce)
          lines(from.read(o * n, kLinesAtOnce * n, nullptr), to.place(o * n, nullptr), n);
        T some[kBlock];
        for (; from.widens() && kLinesAtOnce * n <= kBlock && o + kLinesAtOnce <= end;
             o += kLinesAtOnce) {
          lines(from.read(o * n, kLinesAtOnce * n, some), some, n);
          to.round(o * n, kLinesAtOnce * n, some);
        }
        for (; o < end; o++) chain(from, to, o * n, n, first());
      });
      return PLAIT_OK;
    }
    const int64_t width = least(inner, kWidth), parts = ceil_div(inner, width);
    parallel_ranges(c, outer * parts, kSerial / (n * width) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k++) {
        const int64_t o = k / parts, j = k % parts * width;
        columns(from, to, o * n * inner, n, inner, j, least(j + width, inner));
      }
    });
    return PLAIT_OK;
  }
};

template <bool product>
plait_status cumulate(const plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  if (k == Bool) return PLAIT_DECLINE;
  const bool direct = is_contiguous(in) && kind(in->dtype) == k;
  if (!direct || out->ndim == 0) PLAIT_TRY(copy(c, out, in));
  if (out->ndim == 0 || numel(out) == 0) return PLAIT_OK;
  const int64_t dim = wrapped(integer(c, 1), out->ndim), n = out->shape[dim];
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < out->ndim; d++) inner *= out->shape[d];
  const int64_t outer = numel(out) / (n * inner);
  const DLTensor *from = direct ? in : out;
  if (is_half(k)) return Scan<float, product>::run(c, from, out, outer, n, inner);
  if (is_complex_kind(k)) {
    PLAIT_COMPLEX(k, return (Scan<T, product>::run(c, from, out, outer, n, inner)))
    return PLAIT_OK;
  }
  PLAIT_NUMERIC(k, return (Scan<T, product>::run(c, from, out, outer, n, inner)))
  return PLAIT_OK;
}

plait_status cumsum(plait_call *c) { return cumulate<false>(c); }
plait_status cumprod(plait_call *c) { return cumulate<true>(c); }

PLAIT_KERNEL("cumsum", cumsum);
PLAIT_KERNEL("cumprod", cumprod);

}  // namespace
}  // namespace plait::core
