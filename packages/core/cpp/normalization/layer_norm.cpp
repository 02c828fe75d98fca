// Layer normalisation and its derivative: each row is read while it is in the first-level cache.
#include "kernel/dense.h"
#include "kernel/half.h"
#include "kernel/integers.h"
#include "reduction/moments.h"

namespace plait::core {
namespace {

constexpr int64_t kLongRows = 1024, kColumns = 512;
constexpr int64_t kRun = 1024;  // elements that are normalised at a time
constexpr int64_t kParts = 64;  // partial sums of the derivatives by weight and bias

// A vector of n factors: the tensor's elements; null without a tensor.
template <class T>
class Factors {
 public:
  plait_status take(const plait_call *c, const DLTensor *t, int64_t n) {
    if (!t) return PLAIT_OK;
    const Elements<T> elements(t);
    if (!elements.widens()) {
      PLAIT_TRY(dense_.take(c, t));
      p_ = dense_;
      return PLAIT_OK;
    }
    PLAIT_TRY(space_.take(c, uint64_t(n) * sizeof(T)));
    elements.get(0, 1, n, space_.as<T>());
    p_ = space_.as<T>();
    return PLAIT_OK;
  }
  operator const T *() const { return p_; }

 private:
  const T *p_ = nullptr;
  Dense<T> dense_;
  Workspace space_;
};

// A tensor's elements in C order.
template <class T>
class DenseElements {
 public:
  plait_status take(const plait_call *c, const DLTensor *t) {
    DLTensor dense = *t;
    if (Elements<T>(t).widens()) {
      PLAIT_TRY(halves_.take(c, t));
      dense.data = const_cast<uint16_t *>(static_cast<const uint16_t *>(halves_));
    } else {
      PLAIT_TRY(numbers_.take(c, t));
      dense.data = const_cast<T *>(static_cast<const T *>(numbers_));
    }
    elements_ = Elements<T>(&dense);
    return PLAIT_OK;
  }
  operator Elements<T>() const { return elements_; }

 private:
  Elements<T> elements_;
  Dense<uint16_t> halves_;
  Dense<T> numbers_;
};

struct Sizes {
  int64_t rows, n;
  Sizes(const DLTensor *t, const plait_value &shape) : rows(1), n(1) {
    for (int d = 0; d < t->ndim; d++) (d < t->ndim - int(shape.n) ? rows : n) *= t->shape[d];
  }
};
int64_t grain(int64_t n) { return kSerial / 2 / (n + 1) + 1; }

// y = (x - mean) * scale * w + b, with 1 for a null w and 0 for a null b.
template <class T>
void normalise_run(const T *x, int64_t n, T mean, T scale, const T *w, const T *b, T *y) {
  const auto apply = [&](auto at) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) y[i] = at(i, (x[i] - mean) * scale);
  };
  if (w && b) return apply([&](int64_t i, T h) { return h * w[i] + b[i]; });
  if (w) return apply([&](int64_t i, T h) { return h * w[i] + T(0); });
  if (b) return apply([&](int64_t i, T h) { return h + b[i]; });
  apply([&](int64_t, T h) { return h + T(0); });
}

// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (result, mean, 1 / sqrt(var +
// eps))
template <class T>
plait_status forward(const plait_call *c, const DLTensor *in) {
  const Sizes s(in, c->in[1]);
  const double eps = real(c, 4);
  DenseElements<T> input;
  Factors<T> weight, bias;
  PLAIT_TRY(input.take(c, in));
  PLAIT_TRY(weight.take(c, tensor(c, 2), s.n));
  PLAIT_TRY(bias.take(c, tensor(c, 3), s.n));
  const T *w = weight, *b = bias;
  const Elements<T> x = input, y(result(c)), means(result(c, 1)), scales(result(c, 2));
  const auto scale_of = [&](const Moments &m) {
    return T(1 / __builtin_sqrt(m.squares / double(s.n) + eps));
  };
  // Rows of a run or less, several at once.
  const auto short_rows = [&](int64_t begin, int64_t end, T *memory) {
    constexpr int64_t kMost = 64;
    const int64_t some = least(kMost, kRun / most(s.n, 1));
    for (int64_t r = begin; r < end; r += some) {
      const int64_t count = least(some, end - r), at = r * s.n;
      const T *from = x.read(at, count * s.n, memory);
      T *to = y.place(at, memory), mean[kMost], scale[kMost];
      for (int64_t k = 0; k < count; k++) {
        const Moments m = moments_of_run<T>(from + k * s.n, s.n);
        mean[k] = T(s.n ? m.mean : __builtin_nan(""));
        scale[k] = scale_of(m);
        normalise_run(from + k * s.n, s.n, mean[k], scale[k], w, b, to + k * s.n);
      }
      means.put(r, 1, count, mean);
      scales.put(r, 1, count, scale);
      y.round(at, count * s.n, to);
    }
  };
  const auto long_rows = [&](int64_t begin, int64_t end, T *memory) {
    for (int64_t r = begin; r < end; r++) {
      const Moments m =
          x.in_place(r * s.n, [&](auto from) { return moments_of_run<T>(from, s.n); });
      const T mean = T(m.mean), scale = scale_of(m);
      means.put(r, 1, 1, &mean);
      scales.put(r, 1, 1, &scale);
      const int64_t step = x.widens() ? kRun : s.n;
      for (int64_t i = 0; i < s.n; i += step) {
        const int64_t at = r * s.n + i, some = least(step, s.n - i);
        T *to = y.place(at, memory);
        normalise_run(x.read(at, some, memory), some, mean, scale, w ? w + i : w, b ? b + i : b,
                      to);
        y.round(at, some, to);
      }
    }
  };
  const int64_t memory = x.widens() ? kRun : 0;
  if (s.n <= kRun) return parallel_with_memory<T>(c, s.rows, grain(s.n), memory, short_rows);
  return parallel_with_memory<T>(c, s.rows, grain(s.n), memory, long_rows);
}

// One row of the derivative by the input, times 1 unless `weighted`; adds the row's share to the
// sums for weight and bias if `sums`.
template <bool sums, bool weighted, class T>
void backward_row(const T *g, const T *x, int64_t n, T mean, T rstd, const T *w, T *gx, T *gw,
                  T *gb) {
  constexpr int64_t k = kLanes<T>;
  Vec<T> sum[4] = {}, dot[4] = {};  // several, as each waits for its last addition
  int64_t i = 0;
  const auto add = [&](int64_t at, Vec<T> &to_sum, Vec<T> &to_dot) {
    const Vec<T> own = load(g + at), h = (load(x + at) - mean) * rstd;
    Vec<T> a = own;
    if (weighted) a *= load(w + at);
    to_sum += a;
    to_dot += a * h;
    if (sums) {
      store(gw + at, load(gw + at) + own * h);
      store(gb + at, load(gb + at) + own);
    }
  };
  for (; i + 4 * k <= n; i += 4 * k)
    for (int j = 0; j < 4; j++) add(i + j * k, sum[j], dot[j]);
  for (; i + k <= n; i += k) add(i, sum[0], dot[0]);
  T total = sum_of<T>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  T product = sum_of<T>((dot[0] + dot[1]) + (dot[2] + dot[3]));
  for (; i < n; i++) {
    const T h = (x[i] - mean) * rstd, a = weighted ? g[i] * w[i] : g[i];
    total += a;
    product += a * h;
    if (sums) {
      gw[i] += g[i] * h;
      gb[i] += g[i];
    }
  }
  const T p = total / T(n), q = product / T(n);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++)
    gx[j] = rstd * ((weighted ? g[j] * w[j] : g[j]) - p - (x[j] - mean) * rstd * q);
}
template <bool sums, class T>
void backward_row(const T *g, const T *x, int64_t n, T mean, T rstd, const T *w, T *gx, T *gw,
                  T *gb) {
  if (w) return backward_row<sums, true>(g, x, n, mean, rstd, w, gx, gw, gb);
  backward_row<sums, false>(g, x, n, mean, rstd, w, gx, gw, gb);
}

// The derivative by the input alone.
template <class T>
void backward_rows(const plait_call *c, const Sizes &s, const T *g, const T *x, const T *mean,
                   const T *rstd, const T *w, T *gx) {
  parallel_ranges(c, s.rows, grain(s.n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      backward_row<false, T>(g + r * s.n, x + r * s.n, s.n, mean[r], rstd[r], w, gx + r * s.n,
                             nullptr, nullptr);
  });
}

// The derivatives by weight and bias at columns [begin, end).
template <class T>
void sum_columns(const Sizes &s, int64_t begin, int64_t end, const T *g, const T *x, const T *mean,
                 const T *rstd, T *gw, T *gb) {
  for (int64_t i = begin; i < end; i++) gw[i] = gb[i] = T(0);
  for (int64_t r = 0; r < s.rows; r++) {
    const T *own = g + r * s.n, *from = x + r * s.n;
    const T m = mean[r], scale = rstd[r];
#pragma GCC ivdep
    for (int64_t i = begin; i < end; i++) {
      gw[i] += own[i] * ((from[i] - m) * scale);
      gb[i] += own[i];
    }
  }
}

// layer_norm_backward(grad, input, mean, rstd, weight, normalized_shape) -> by input, weight, bias
template <class T>
plait_status backward(const plait_call *c, const DLTensor *in) {
  const Sizes s(in, c->in[5]);
  Dense<T> grad, input, means, scales;
  Factors<T> weight;
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(input.take(c, in));
  PLAIT_TRY(means.take(c, tensor(c, 2)));
  PLAIT_TRY(scales.take(c, tensor(c, 3)));
  PLAIT_TRY(weight.take(c, tensor(c, 4), s.n));
  const T *g = grad, *x = input, *mean = means, *rstd = scales, *w = weight;
  T *gx = data<T>(result(c)), *gw = data<T>(result(c, 1)), *gb = data<T>(result(c, 2));
  if (s.rows <= kParts && s.n >= kLongRows) {  // few long rows: their sums are taken by columns
    backward_rows<T>(c, s, g, x, mean, rstd, w, gx);
    parallel_ranges(c, s.n, grain(s.rows), [&](int64_t begin, int64_t end) {
      for (; begin < end; begin += kColumns)
        sum_columns(s, begin, begin + kColumns < end ? begin + kColumns : end, g, x, mean, rstd, gw,
                    gb);
    });
    return PLAIT_OK;
  }
  int64_t each = ceil_div(s.rows, kParts);
  each = each > grain(s.n) ? each : grain(s.n);
  const int64_t parts = s.rows ? ceil_div(s.rows, each) : 1;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(parts * 2 * s.n) * sizeof(T)));
  T *sums = space.as<T>();
  memset(sums, 0, size_t(parts * 2 * s.n) * sizeof(T));
  parallel(c, parts, [&](int64_t p) {
    T *own = sums + p * 2 * s.n;
    for (int64_t r = p * each; r < (p + 1) * each && r < s.rows; r++)
      backward_row<true, T>(g + r * s.n, x + r * s.n, s.n, mean[r], rstd[r], w, gx + r * s.n, own,
                            own + s.n);
  });
  constexpr int64_t kBlock = 64;
  for (int64_t i = 0; i < s.n; i += kBlock) {
    const int64_t n = s.n - i < kBlock ? s.n - i : kBlock;
    double a[kBlock] = {}, b[kBlock] = {};
    for (int64_t p = 0; p < parts; p++) {
      const T *own = sums + p * 2 * s.n + i;
      for (int64_t j = 0; j < n; j++) {
        a[j] += double(own[j]);
        b[j] += double(own[s.n + j]);
      }
    }
    for (int64_t j = 0; j < n; j++) {
      gw[i + j] = T(a[j]);
      gb[i + j] = T(b[j]);
    }
  }
  return PLAIT_OK;
}

// layer_norm_backward_input(grad, input, mean, rstd, normalized_shape)
template <class T>
plait_status backward_input(const plait_call *c, const DLTensor *in) {
  const Sizes s(in, c->in[4]);
  Dense<T> grad, input, means, scales;
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(input.take(c, in));
  PLAIT_TRY(means.take(c, tensor(c, 2)));
  PLAIT_TRY(scales.take(c, tensor(c, 3)));
  backward_rows<T>(c, s, grad, input, means, scales, nullptr, data<T>(result(c)));
  return PLAIT_OK;
}

plait_status native_layer_norm(plait_call *c) {
  for (int i = 2; i < 4; i++) {  // of halves, factors of other layouts are left to the fallback
    const DLTensor *t = tensor(c, i);
    if (t && is_half(kind(t->dtype)) && !is_contiguous(t)) return PLAIT_DECLINE;
  }
  PLAIT_COMPUTED(kind(result(c)->dtype), return forward<T>(c, tensor(c, 0)))
  return PLAIT_OK;
}
plait_status layer_norm_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c, tensor(c, 1)))
  return PLAIT_OK;
}
plait_status layer_norm_backward_input(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return backward_input<T>(c, tensor(c, 1)))
  return PLAIT_OK;
}
PLAIT_KERNEL("native_layer_norm", native_layer_norm);
PLAIT_KERNEL("layer_norm_backward", layer_norm_backward);
PLAIT_KERNEL("layer_norm_backward_input", layer_norm_backward_input);

}  // namespace
}  // namespace plait::core
