// softmax, log_softmax and their gradients: one line of elements along `dim` at a time, or, where
// the line is strided and its neighbours are adjacent, kColumns lines side by side.
#include "kernels/indices.h"
#include "scalar/math.h"

namespace plait::core {
namespace {

constexpr int kColumns = 16;
constexpr int kMostInputs = 2;

// What each operator does to one line: x (and z) of n elements to y. Sums run in kColumns lanes, so
// that their order is fixed and they vectorise.
template <class T>
PLAIT_INLINE T total(const T *lane) {
  T s = 0;
  for (int j = 0; j < kColumns; j++) s += lane[j];
  return s;
}
template <class T>
PLAIT_INLINE T largest(const T *x, int64_t n) {
  T lane[kColumns];
  for (int j = 0; j < kColumns; j++) lane[j] = -T(__builtin_inff());
  int64_t i = 0;
  for (; i + kColumns <= n; i += kColumns)
    for (int j = 0; j < kColumns; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  T m = lane[0];
  for (int j = 1; j < kColumns; j++) m = lane[j] > m ? lane[j] : m;
  for (; i < n; i++) m = x[i] > m ? x[i] : m;
  return m;
}
// The sum of f(i) over i < n.
template <class T, class F>
PLAIT_INLINE T summed(int64_t n, F &&f) {
  T lane[kColumns] = {};
  int64_t i = 0;
  for (; i + kColumns <= n; i += kColumns)
    for (int j = 0; j < kColumns; j++) lane[j] += f(i + j);
  for (int j = 0; i < n; i++, j++) lane[j] += f(i);
  return total(lane);
}

struct Softmax {
  static constexpr int inputs = 1;
  template <class T>
  static void line(T *y, const T *x, const T *, int64_t n) {
    const T m = largest(x, n);
    const T scale =
        T(1) / summed<T>(n, [=](int64_t i) { return y[i] = scalar::math::exp(x[i] - m); });
    for (int64_t i = 0; i < n; i++) y[i] *= scale;
  }
  template <class T>
  static void columns(T *y, int64_t sy, const T *x, int64_t sx, const T *, int64_t, int64_t n) {
    T m[kColumns], s[kColumns] = {};
    for (int j = 0; j < kColumns; j++) m[j] = -T(__builtin_inff());
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) m[j] = x[i * sx + j] > m[j] ? x[i * sx + j] : m[j];
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++)
        s[j] += y[i * sy + j] = scalar::math::exp(x[i * sx + j] - m[j]);
    for (int j = 0; j < kColumns; j++) s[j] = T(1) / s[j];
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) y[i * sy + j] *= s[j];
  }
};

struct LogSoftmax {
  static constexpr int inputs = 1;
  template <class T>
  static void line(T *y, const T *x, const T *, int64_t n) {
    const T m = largest(x, n);
    const T shift =
        m + scalar::math::log(summed<T>(n, [=](int64_t i) { return scalar::math::exp(x[i] - m); }));
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - shift;
  }
  template <class T>
  static void columns(T *y, int64_t sy, const T *x, int64_t sx, const T *, int64_t, int64_t n) {
    T m[kColumns], s[kColumns] = {};
    for (int j = 0; j < kColumns; j++) m[j] = -T(__builtin_inff());
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) m[j] = x[i * sx + j] > m[j] ? x[i * sx + j] : m[j];
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) s[j] += scalar::math::exp(x[i * sx + j] - m[j]);
    for (int j = 0; j < kColumns; j++) s[j] = m[j] + scalar::math::log(s[j]);
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) y[i * sy + j] = x[i * sx + j] - s[j];
  }
};

struct SoftmaxBackward {  // x is gy, z the result of softmax
  static constexpr int inputs = 2;
  template <class T>
  static void line(T *y, const T *x, const T *z, int64_t n) {
    const T s = summed<T>(n, [=](int64_t i) { return x[i] * z[i]; });
    for (int64_t i = 0; i < n; i++) y[i] = z[i] * (x[i] - s);
  }
  template <class T>
  static void columns(T *y, int64_t sy, const T *x, int64_t sx, const T *z, int64_t sz, int64_t n) {
    T s[kColumns] = {};
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) s[j] += x[i * sx + j] * z[i * sz + j];
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) y[i * sy + j] = z[i * sz + j] * (x[i * sx + j] - s[j]);
  }
};

struct LogSoftmaxBackward {
  static constexpr int inputs = 2;
  template <class T>
  static void line(T *y, const T *x, const T *z, int64_t n) {
    const T s = summed<T>(n, [=](int64_t i) { return x[i]; });
    for (int64_t i = 0; i < n; i++) y[i] = x[i] - scalar::math::exp(z[i]) * s;
  }
  template <class T>
  static void columns(T *y, int64_t sy, const T *x, int64_t sx, const T *z, int64_t sz, int64_t n) {
    T s[kColumns] = {};
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++) s[j] += x[i * sx + j];
    for (int64_t i = 0; i < n; i++)
      for (int j = 0; j < kColumns; j++)
        y[i * sy + j] = x[i * sx + j] - scalar::math::exp(z[i * sz + j]) * s[j];
  }
};

// The lines of up to three tensors of one shape. Operand 0 is the result.
struct Lines {
  int64_t size = 1, lines = 1, step[1 + kMostInputs], walk[1 + kMostInputs][PLAIT_MAX_DIMS];
  int64_t shape[PLAIT_MAX_DIMS], run = 1;  // run: lines that are adjacent in every operand
  int ndim = 0, operands;
  char *data[1 + kMostInputs];

  Lines(const DLTensor *const *t, int n, int dim) : operands(n) {
    const DLTensor *out = t[0];
    if (out->ndim) size = out->shape[dim];
    int last = -1;  // the walked dimension whose neighbours lie closest goes last
    for (int d = 0; d < out->ndim; d++)
      if (d != dim && out->shape[d] > 1 && (last < 0 || magnitude(out, d) < magnitude(out, last)))
        last = d;
    for (int d = 0; d < out->ndim; d++)
      if (d != dim && d != last) add(t, d);
    if (last >= 0) add(t, last);
    for (int k = 0; k < n; k++) {
      data[k] = static_cast<char *>(t[k]->data);
      step[k] = out->ndim ? t[k]->strides[dim] : 1;
    }
    bool adjacent = ndim > 0;
    for (int k = 0; k < n; k++) adjacent = adjacent && walk[k][ndim - 1] == 1;
    if (adjacent) run = shape[ndim - 1];
  }
  bool dense() const {
    for (int k = 0; k < operands; k++)
      if (step[k] != 1 && size > 1) return false;
    return true;
  }

 private:
  static int64_t magnitude(const DLTensor *t, int d) {
    return t->strides[d] < 0 ? -t->strides[d] : t->strides[d];
  }
  void add(const DLTensor *const *t, int d) {
    shape[ndim] = t[0]->shape[d];
    lines *= shape[ndim];
    for (int k = 0; k < operands; k++) walk[k][ndim] = t[k]->strides[d];
    ndim++;
  }
};

template <class Op, class T>
struct Runner {
  const Lines &l;
  T *at[1 + kMostInputs];  // the current line of each operand

  // Coordinates of line `i`.
  void seek(int64_t i) {
    for (int k = 0; k < l.operands; k++) at[k] = reinterpret_cast<T *>(l.data[k]);
    for (int d = l.ndim - 1; d >= 0; d--) {
      const int64_t c = i % l.shape[d];
      for (int k = 0; k < l.operands; k++) at[k] += c * l.walk[k][d];
      i /= l.shape[d];
    }
  }
  void dense_line() { Op::line(at[0], at[1], l.operands > 2 ? at[2] : nullptr, l.size); }
  void wide() {
    Op::columns(at[0], l.step[0], at[1], l.step[1], l.operands > 2 ? at[2] : nullptr,
                l.operands > 2 ? l.step[2] : 0, l.size);
  }
  void strided_line(T *buffer) {
    T *b[1 + kMostInputs];
    for (int k = 0; k < l.operands; k++) {
      b[k] = buffer + k * l.size;
      for (int64_t i = 0; k > 0 && i < l.size; i++) b[k][i] = at[k][i * l.step[k]];
    }
    Op::line(b[0], b[1], l.operands > 2 ? b[2] : nullptr, l.size);
    for (int64_t i = 0; i < l.size; i++) at[0][i * l.step[0]] = b[0][i];
  }
};

template <class Op, class T>
plait_status over_lines(const plait_call *c, const Lines &l) {
  const int64_t grain = ceil_div(kChunk, l.size ? l.size : 1);
  if (l.dense()) {
    parallel_ranges(c, l.lines, grain, [&](int64_t begin, int64_t end) {
      Runner<Op, T> r{l, {}};
      for (int64_t i = begin; i < end; i++) r.seek(i), r.dense_line();
    });
    return PLAIT_OK;
  }
  const int64_t whole = l.run / kColumns * kColumns;
  const int64_t rows = l.lines / l.run, blocks = whole / kColumns;
  if (blocks) {
    parallel_ranges(c, rows * blocks, ceil_div(grain, kColumns), [&](int64_t begin, int64_t end) {
      Runner<Op, T> r{l, {}};
      for (int64_t i = begin; i < end; i++)
        r.seek(i / blocks * l.run + i % blocks * kColumns), r.wide();
    });
  }
  const int64_t rest = l.run - whole;
  if (!rest) return PLAIT_OK;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(l.operands) * uint64_t(l.size ? l.size : 1) * sizeof(T)));
  Runner<Op, T> r{l, {}};
  for (int64_t row = 0; row < rows; row++)
    for (int64_t j = whole; j < l.run; j++) r.seek(row * l.run + j), r.strided_line(space.as<T>());
  return PLAIT_OK;
}

template <class Op>
plait_status kernel(plait_call *c) {
  const DLTensor *t[1 + kMostInputs] = {result(c), tensor(c, 0),
                                        Op::inputs > 1 ? tensor(c, 1) : nullptr};
  if (numel(t[0]) == 0) return PLAIT_OK;
  const int dim = t[0]->ndim ? int(wrapped(integer(c, Op::inputs), t[0]->ndim)) : 0;
  const Lines l(t, 1 + Op::inputs, dim);
  PLAIT_FLOATING(kind(t[0]->dtype), return (over_lines<Op, T>(c, l)))
  return PLAIT_DECLINE;
}
PLAIT_KERNEL("softmax", kernel<Softmax>);
PLAIT_KERNEL("log_softmax", kernel<LogSoftmax>);
PLAIT_KERNEL("softmax_backward", kernel<SoftmaxBackward>);
PLAIT_KERNEL("log_softmax_backward", kernel<LogSoftmaxBackward>);

}  // namespace
}  // namespace plait::core
