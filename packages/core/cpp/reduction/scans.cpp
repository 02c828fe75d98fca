// Running sums and products along a dimension: cumsum and cumprod.
//
// A long line is cut into chains of a fixed length. The totals of the chains come first, then the
// chains from their first values, several at a time. So threads share one line, additions do not
// wait for each other, and the result depends on the length of the line alone. Sums and products of
// float32 are carried in float64: an error of one of them would be in all that follow.
#include "reduction/scans.h"
#include "kernel/copy.h"

namespace plait::core {
namespace {

constexpr int64_t kChain = 4096, kAtOnce = 4, kWidth = 1024;

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

  static W total(const T *from, int64_t n) {
    constexpr int kLanes = 16;
    W lane[kLanes];
    for (W &each : lane) each = first();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int j = 0; j < kLanes; j++) lane[j] = step(lane[j], W(from[i + j]));
    for (; i < n; i++) lane[0] = step(lane[0], W(from[i]));
    for (int half = kLanes / 2; half; half /= 2)
      for (int j = 0; j < half; j++) lane[j] = step(lane[j], lane[j + half]);
    return lane[0];
  }
  static void chain(const T *from, T *to, int64_t n, W acc) {
    for (int64_t i = 0; i < n; i++) to[i] = T(acc = step(acc, W(from[i])));
  }
  static void chains(const T *from, T *to, const W *begin) {
    W acc[kAtOnce];
    for (int k = 0; k < kAtOnce; k++) acc[k] = begin[k];
    for (int64_t i = 0; i < kChain; i++)
      for (int k = 0; k < kAtOnce; k++)
        to[k * kChain + i] = T(acc[k] = step(acc[k], W(from[k * kChain + i])));
  }

  static plait_status long_line(const plait_call *c, const T *from, T *to, int64_t n) {
    const int64_t count = ceil_div(n, kChain), whole = n / kChain / kAtOnce;
    Workspace space;
    PLAIT_TRY(space.take(c, uint64_t(count) * sizeof(W)));
    W *begin = space.as<W>();
    parallel_ranges(c, count, 2 * kSerial / kChain, [&](int64_t a, int64_t b) {
      for (int64_t k = a; k < b; k++) {
        const int64_t rest = n - k * kChain;
        begin[k] = total(from + k * kChain, rest < kChain ? rest : kChain);
      }
    });
    W acc = first();
    for (int64_t k = 0; k < count; k++) {
      const W own = begin[k];
      begin[k] = acc;
      acc = step(acc, own);
    }
    parallel_ranges(c, whole, kSerial / kChain / kAtOnce, [&](int64_t a, int64_t b) {
      for (int64_t g = a; g < b; g++) {
        const int64_t at = g * kAtOnce;
        chains(from + at * kChain, to + at * kChain, begin + at);
      }
    });
    for (int64_t k = whole * kAtOnce; k < count; k++) {
      const int64_t rest = n - k * kChain;
      chain(from + k * kChain, to + k * kChain, rest < kChain ? rest : kChain, begin[k]);
    }
    return PLAIT_OK;
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

  // [begin, end) of the inner positions of one block of n rows of `inner` elements
  static void columns(const T *from, T *to, int64_t n, int64_t inner, int64_t begin, int64_t end) {
    if (inner == 2) return narrow<2>(from, to, n);
    if (inner == 3) return narrow<3>(from, to, n);
    if (inner == 4) return narrow<4>(from, to, n);
    W acc[kWidth];
    const int64_t width = end - begin;
    for (int64_t j = 0; j < width; j++) acc[j] = first();
    for (int64_t i = 0; i < n; i++) {
      const T *own = from + i * inner + begin;
      T *now = to + i * inner + begin;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; j++) now[j] = T(acc[j] = step(acc[j], W(own[j])));
    }
  }

  static plait_status run(const plait_call *c, const T *from, T *to, int64_t outer, int64_t n,
                          int64_t inner) {
    if (inner == 1 && n >= 2 * kAtOnce * kChain) {
      for (int64_t o = 0; o < outer; o++) PLAIT_TRY(long_line(c, from + o * n, to + o * n, n));
      return PLAIT_OK;
    }
    if (inner == 1) {
      parallel_ranges(c, outer, kSerial / n + 1, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; o++) chain(from + o * n, to + o * n, n, first());
      });
      return PLAIT_OK;
    }
    const int64_t width = inner < kWidth ? inner : kWidth, parts = ceil_div(inner, width);
    parallel_ranges(c, outer * parts, kSerial / (n * width) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k++) {
        const int64_t o = k / parts, j = k % parts * width,
                      last = j + width < inner ? j + width : inner;
        columns(from + o * n * inner, to + o * n * inner, n, inner, j, last);
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
  if (is_complex_kind(k)) {
    PLAIT_COMPLEX(k, return (Scan<T, product>::run(c, data<T>(direct ? in : out), data<T>(out),
                                                   outer, n, inner)))
    return PLAIT_OK;
  }
  PLAIT_NUMERIC(k, return (Scan<T, product>::run(c, data<T>(direct ? in : out), data<T>(out), outer,
                                                 n, inner)))
  return PLAIT_OK;
}

plait_status cumsum(plait_call *c) { return cumulate<false>(c); }
plait_status cumprod(plait_call *c) { return cumulate<true>(c); }

PLAIT_KERNEL("cumsum", cumsum);
PLAIT_KERNEL("cumprod", cumprod);

}  // namespace
}  // namespace plait::core
