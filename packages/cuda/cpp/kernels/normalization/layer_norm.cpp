// Layer normalisation and its derivatives.
//
// Mean and variance are those of a row that is in registers or in shared memory: the second pass
// takes differences from the mean of the first. Sums of squares are added in float64, where none
// overflows.
#include "block/reduce.h"
#include "block/rows.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/reduce.h"
#include "host/rows.h"
#endif

namespace plait::cuda {

struct LayerNormArgs {
  const void *x, *grad, *weight, *bias;  // the last two may be NULL
  void *y, *mean, *scale;  // the last two in the type of the computation
  RowShape shape;
  double eps;
  int32_t is_kept;
};

#if PLAIT_KERNELS
template <class T>
struct Normal {  // what makes a row's elements normal
  T mean, scale;
};
// From the mean of the first pass, the sum of squared differences from it and that of differences.
template <class T>
PLAIT_DEVICE Normal<T> normal_of(T mean, double squares, double rest, int64_t n, double eps) {
  const double share = rest / double(n);
  const double variance = squares / double(n) - share * share;
  return {n ? T(double(mean) + (share == share ? share : 0)) : T(scalar::math::kNan),
          T(1 / ::sqrt((variance < 0 ? 0 : variance) + eps))};
}

template <class E>
PLAIT_DEVICE void layer_norm_rows(Block &t, const LayerNormArgs &a) {
  using T = Compute<E>;
  const auto x = t.global<const E>(a.x), weight = t.global<const E>(a.weight);
  const auto bias = t.global<const E>(a.bias);
  const auto y = t.global<E>(a.y);
  const auto means = t.global<T>(a.mean), scales = t.global<T>(a.scale);
  const auto room = t.shared<double>(t.warps());
  const int lanes = a.shape.lanes, beside = t.threads() / lanes, lane = t.thread() % lanes;
  const RowPart part(a.shape, lane, int(16 / sizeof(E)));
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const int64_t row = first + t.thread() / lanes;
    const bool is_row = row < a.shape.rows;
    T v[kRowItems], sum = T(0);
    if (is_row) part.load(x, row * a.shape.n, T(0), v);
    each_item(is_row ? part.items() : 0, [&](int k) { sum += v[k]; });
    const T mean = T(reduce_row(t, double(sum), lanes, room, Plus()) / double(a.shape.n));
    double squares = 0, rest = 0;
    each_item(is_row ? part.items() : 0, [&](int k) {
      const double d = part.is_inside(k, int(16 / sizeof(E))) ? double(v[k] - mean) : 0;
      squares += d * d;
      rest += d;
    });
    squares = reduce_row(t, squares, lanes, room, Plus());
    rest = reduce_row(t, rest, lanes, room, Plus());
    if (!is_row) continue;
    const Normal<T> f = normal_of(mean, squares, rest, a.shape.n, a.eps);
    each_item(part.items(), [&](int k) { v[k] = (v[k] - f.mean) * f.scale; });
    T factor[kRowItems];
    if (a.weight) {
      part.load(weight, 0, T(0), factor);
      each_item(part.items(), [&](int k) { v[k] *= factor[k]; });
    }
    if (a.bias) {
      part.load(bias, 0, T(0), factor);
      each_item(part.items(), [&](int k) { v[k] += factor[k]; });
    }
    part.store(y, row * a.shape.n, v);
    if (lane == 0) means.store(row, f.mean), scales.store(row, f.scale);
  }
}

template <class E>
PLAIT_DEVICE void layer_norm_long_rows(Block &t, const LayerNormArgs &a) {
  using T = Compute<E>;
  using Row = LongRow<E>;
  constexpr int kWidth = Row::kWidth;
  const auto x = t.global<const E>(a.x), weight = t.global<const E>(a.weight);
  const auto bias = t.global<const E>(a.bias);
  const auto y = t.global<E>(a.y);
  const auto room = t.shared<double>(t.warps());
  const Row own(t, a.shape, a.is_kept);
  for (int64_t row = t.block(); row < a.shape.rows; row += t.blocks()) {
    const int64_t base = row * a.shape.n;
    double sum = 0, squares = 0, rest = 0;
    own.first_pass(x, base, T(0), [&](int64_t, const T *v) {
      T some = T(0);
#pragma unroll
      for (int e = 0; e < kWidth; e++) some += v[e];
      sum += double(some);
    });
    const T mean = T(reduce_row(t, sum, t.threads(), room, Plus()) / double(a.shape.n));
    own.next_pass(x, base, mean, [&](int64_t, const T *v) {
#pragma unroll
      for (int e = 0; e < kWidth; e++) {
        const double d = double(v[e] - mean);
        squares += d * d;
        rest += d;
      }
    });
    squares = reduce_row(t, squares, t.threads(), room, Plus());
    rest = reduce_row(t, rest, t.threads(), room, Plus());
    const Normal<T> f = normal_of(mean, squares, rest, a.shape.n, a.eps);
    own.next_pass(x, base, T(0), [&](int64_t i, T *v) {
      T w[kWidth], b[kWidth];
      if (a.weight) own.load(weight, 0, i, T(0), w);
      if (a.bias) own.load(bias, 0, i, T(0), b);
#pragma unroll
      for (int e = 0; e < kWidth; e++) {
        v[e] = (v[e] - f.mean) * f.scale;
        if (a.weight) v[e] *= w[e];
        if (a.bias) v[e] += b[e];
      }
      own.store(y, base, i, v);
    });
    if (t.thread() == 0) {
      t.global<T>(a.mean).store(row, f.mean);
      t.global<T>(a.scale).store(row, f.scale);
    }
  }
}

// The gradient of the input: scale (a - mean(a) - h mean(a h)) with a = grad weight and the normal
// elements h.
template <class E>
PLAIT_DEVICE void layer_norm_backward_rows(Block &t, const LayerNormArgs &a) {
  using T = Compute<E>;
  const auto x = t.global<const E>(a.x), grad = t.global<const E>(a.grad);
  const auto weight = t.global<const E>(a.weight);
  const auto out = t.global<E>(a.y);
  const auto room = t.shared<double>(t.warps());
  const int lanes = a.shape.lanes, beside = t.threads() / lanes, lane = t.thread() % lanes;
  const RowPart part(a.shape, lane, int(16 / sizeof(E)));
  for (int64_t first = t.block() * beside; first < a.shape.rows; first += t.blocks() * beside) {
    const int64_t row = first + t.thread() / lanes;
    const bool is_row = row < a.shape.rows;
    T h[kRowItems], g[kRowItems], sum = T(0), product = T(0), scale = T(0);
    if (is_row) {
      const T mean = t.global<T>(a.mean).load(row);
      scale = t.global<T>(a.scale).load(row);
      part.load(x, row * a.shape.n, mean, h);
      part.load(grad, row * a.shape.n, T(0), g);
      each_item(part.items(), [&](int k) { h[k] = (h[k] - mean) * scale; });
      if (a.weight) {
        T w[kRowItems];
        part.load(weight, 0, T(0), w);
        each_item(part.items(), [&](int k) { g[k] *= w[k]; });
      }
      each_item(part.items(), [&](int k) {
        sum += g[k];
        product += g[k] * h[k];
      });
    }
    const T p = T(reduce_row(t, double(sum), lanes, room, Plus()) / double(a.shape.n));
    const T q = T(reduce_row(t, double(product), lanes, room, Plus()) / double(a.shape.n));
    if (!is_row) continue;
    each_item(part.items(), [&](int k) { g[k] = scale * (g[k] - p - h[k] * q); });
    part.store(out, row * a.shape.n, g);
  }
}

template <class E>
PLAIT_DEVICE void layer_norm_backward_long_rows(Block &t, const LayerNormArgs &a) {
  using T = Compute<E>;
  using Row = LongRow<E>;
  constexpr int kWidth = Row::kWidth;
  const auto x = t.global<const E>(a.x), grad = t.global<const E>(a.grad);
  const auto weight = t.global<const E>(a.weight);
  const auto out = t.global<E>(a.y);
  const auto room = t.shared<double>(t.warps());
  const Row own(t, a.shape, false);
  for (int64_t row = t.block(); row < a.shape.rows; row += t.blocks()) {
    const int64_t base = row * a.shape.n;
    const T mean = t.global<T>(a.mean).load(row), scale = t.global<T>(a.scale).load(row);
    // what is after the row's end has no gradient
    const auto each = [&](int64_t i, T *h, T *g) {
      own.load(grad, base, i, T(0), g);
      T w[kWidth];
      if (a.weight) own.load(weight, 0, i, T(0), w);
#pragma unroll
      for (int e = 0; e < kWidth; e++) {
        h[e] = (h[e] - mean) * scale;
        if (a.weight) g[e] *= w[e];
      }
    };
    double sum = 0, product = 0;
    own.first_pass(x, base, mean, [&](int64_t i, T *h) {
      T g[kWidth], some = T(0), other = T(0);
      each(i, h, g);
#pragma unroll
      for (int e = 0; e < kWidth; e++) some += g[e], other += g[e] * h[e];
      sum += double(some);
      product += double(other);
    });
    const T p = T(reduce_row(t, sum, t.threads(), room, Plus()) / double(a.shape.n));
    const T q = T(reduce_row(t, product, t.threads(), room, Plus()) / double(a.shape.n));
    own.next_pass(x, base, mean, [&](int64_t i, T *h) {
      T g[kWidth];
      each(i, h, g);
#pragma unroll
      for (int e = 0; e < kWidth; e++) g[e] = scale * (g[e] - p - h[e] * q);
      own.store(out, base, i, g);
    });
  }
}

// The gradients of weight and bias: sums over rows of grad h and of grad. `data` is the gradient,
// `other` the input, `extra` the means and scales of rows.
struct TwoSums {
  double first, second;
};
template <class E>
struct Pair {
  E grad, x;
};
template <class E>
struct FactorGradients {
  using T = Compute<E>;
  using Element = Pair<E>;
  using Value = TwoSums;
  static constexpr int kWidth = int(16 / sizeof(E));
  Global<const E> grad, x;
  Global<const T> mean, scale;
  PLAIT_DEVICE FactorGradients(Thread &t, const ReduceArgs &a)
      : grad(t.global<const E>(a.data)),
        x(t.global<const E>(a.other)),
        mean(t.global<const T>(a.extra[0])),
        scale(t.global<const T>(a.extra[1])) {}
  PLAIT_DEVICE void begin(int64_t) {}
  PLAIT_DEVICE Element load(int64_t at) const { return {grad.load(at), x.load(at)}; }
  PLAIT_DEVICE void load_vector(int64_t at, Element *to) const {
    const auto g = grad.template load_vector<kWidth>(at), v = x.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++) to[e] = {g.at[e], v.at[e]};
  }
  PLAIT_DEVICE Value start() const { return {0, 0}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return {a.first + b.first, a.second + b.second};
  }
  template <int N, int width>
  PLAIT_DEVICE void fold(Value &value, const Element *from, int64_t first, int64_t apart) const {
    T h = T(0), sum = T(0);
#pragma unroll
    for (int k = 0; k < N; k++) {
      const int64_t row = first + k / width * apart + k % width;
      const T g = widen(from[k].grad);
      h += g * ((widen(from[k].x) - mean.load(row)) * scale.load(row));
      sum += g;
    }
    value.first += double(h);
    value.second += double(sum);
  }
  PLAIT_DEVICE void finish(Thread &t, const ReduceArgs &a, int64_t i, const Value &value) const {
    t.global<E>(a.out).store(i, narrow<E>(T(value.first)));
    t.global<E>(a.second).store(i, narrow<E>(T(value.second)));
  }
};
template <class T>
PLAIT_DEVICE void layer_norm_factor_gradients(Block &t, const ReduceArgs &a) {
  reduce<FactorGradients<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(layer_norm_rows, LayerNormArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(layer_norm_long_rows, LayerNormArgs, 512, FLOATING);
PLAIT_DEVICE_KERNEL(layer_norm_backward_rows, LayerNormArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(layer_norm_backward_long_rows, LayerNormArgs, 512, FLOATING);
PLAIT_DEVICE_KERNEL(layer_norm_factor_gradients, ReduceArgs, 256, FLOATING);

#if PLAIT_HOST
namespace {

// The rows of `t` if its last dimensions are those of a shape.
RowShape rows_of(const DLTensor *t, const plait_value &shape,
                 std::initializer_list<const void *> data) {
  int64_t rows = 1, n = 1;
  for (int d = 0; d < t->ndim; d++) (d < t->ndim - int(shape.n) ? rows : n) *= t->shape[d];
  return row_shape(rows, n, size_of(kind(t->dtype)), data);
}
plait_status launch_rows(const plait_call *c, Kind k, LayerNormArgs a, bool is_backward) {
  if (!a.shape.rows || (is_backward && !a.shape.n)) return PLAIT_OK;
  if (a.shape.n <= kHeldRow)
    return launch(c, is_backward ? layer_norm_backward_rows_kernel : layer_norm_rows_kernel, k, a,
                  row_blocks(a.shape), kRowThreads, 1024);
  const int64_t bytes = is_backward ? 0 : long_row_bytes(c, a.shape.n, k);
  a.is_kept = bytes > 0;
  return launch(c, is_backward ? layer_norm_backward_long_rows_kernel : layer_norm_long_rows_kernel,
                k, a, long_row_blocks(a.shape), kLongRowThreads, bytes ? bytes : 1024);
}

// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (result, mean, 1 / sqrt(var +
// eps))
plait_status native_layer_norm(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  Operand x, weight, bias;
  PLAIT_TRY(x.take_dense(c, in));
  if (tensor(c, 2)) PLAIT_TRY(weight.take_dense(c, tensor(c, 2)));
  if (tensor(c, 3)) PLAIT_TRY(bias.take_dense(c, tensor(c, 3)));
  LayerNormArgs a{};
  a.x = x.data(), a.y = result(c)->data, a.eps = real(c, 4);
  a.weight = tensor(c, 2) ? weight.data() : nullptr;
  a.bias = tensor(c, 3) ? bias.data() : nullptr;
  a.mean = result(c, 1)->data, a.scale = result(c, 2)->data;
  a.shape = rows_of(in, c->in[1], {a.x, a.y, a.weight, a.bias});
  return launch_rows(c, kind(in->dtype), a, false);
}

// The gradient of the input, argument 1 after the gradient and before mean and rstd.
struct BackwardRows {
  LayerNormArgs a{};
  Operand grad, x, mean, scale, weight;

  plait_status launch(const plait_call *c, const DLTensor *factors, const plait_value &shape) {
    const DLTensor *in = tensor(c, 1);
    const Kind k = kind(in->dtype);
    const DLDataType wide = k == F64 ? in->dtype : DLDataType{kDLFloat, 32, 1};
    PLAIT_TRY(grad.take_dense(c, tensor(c, 0)));
    PLAIT_TRY(x.take_dense(c, in));
    PLAIT_TRY(mean.take_as(c, tensor(c, 2), wide));
    PLAIT_TRY(scale.take_as(c, tensor(c, 3), wide));
    if (factors) PLAIT_TRY(weight.take_dense(c, factors));
    a.x = x.data(), a.grad = grad.data(), a.y = result(c)->data;
    a.weight = factors ? weight.data() : nullptr;
    a.mean = mean.tensor()->data, a.scale = scale.tensor()->data;
    a.shape = rows_of(in, shape, {a.x, a.grad, a.y, a.weight});
    return launch_rows(c, k, a, true);
  }
};

// layer_norm_backward_input(grad, input, mean, rstd, normalized_shape)
plait_status layer_norm_backward_input(plait_call *c) {
  return BackwardRows().launch(c, nullptr, c->in[4]);
}

// layer_norm_backward(grad, input, mean, rstd, weight, normalized_shape) -> by input, weight, bias
plait_status layer_norm_backward(plait_call *c) {
  BackwardRows rows;
  PLAIT_TRY(rows.launch(c, tensor(c, 4), c->in[5]));
  const LayerNormArgs &a = rows.a;
  ReduceArgs sums{};
  sums.other = a.x, sums.out = result(c, 1)->data, sums.second = result(c, 2)->data;
  sums.extra[0] = a.mean, sums.extra[1] = a.scale;
  int64_t shape[2] = {a.shape.rows, a.shape.n}, strides[2] = {a.shape.n, 1};
  DLTensor matrix = *rows.grad.tensor();
  matrix.ndim = 2, matrix.shape = shape, matrix.strides = strides;
  return launch_reduction(c, layer_norm_factor_gradients_kernel, &matrix, 1, sums);
}
PLAIT_KERNEL("native_layer_norm", native_layer_norm);
PLAIT_KERNEL("layer_norm_backward", layer_norm_backward);
PLAIT_KERNEL("layer_norm_backward_input", layer_norm_backward_input);

}  // namespace
#endif
}  // namespace plait::cuda
