// GRU over sequences. As in lstm.cpp, the product of a step and its pointwise part follow each
// other while the gates of a thread's sequences are in the cache.
#include "pointwise/math.h"
#include "recurrent/recurrent.h"

namespace plait::core {
namespace {

namespace math = scalar::math;

// gates x of the input and u of the state before, h0, to h; kept for the derivative: r, z, n and
// the last part of u.
template <class T>
void cell(const T *x, const T *__restrict u, const T *h0, int64_t n, T *__restrict kept,
          T *__restrict h) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T r = math::sigmoid(x[j] + u[j]), z = math::sigmoid(x[n + j] + u[n + j]),
            own = u[2 * n + j], made = math::tanh(x[2 * n + j] + r * own);
    kept[j] = r;
    kept[n + j] = z;
    kept[2 * n + j] = made;
    kept[3 * n + j] = own;
    h[j] = made + z * (h0[j] - made);
  }
}

// gru_forward(gates, hx, weight, bias, sizes, reverse) -> output, h, activated
template <class T>
plait_status forward(const plait_call *c) {
  const int64_t width = tensor(c, 1)->shape[1], wide = padded(3 * width);
  Steps steps;
  Dense<T> gates, hx, bias;
  PackedWeight<T> weight;
  const DLTensor *w = tensor(c, 2), *b = tensor(c, 3);
  PLAIT_TRY(steps.take(c, c->in[4], integer(c, 5) != 0));
  PLAIT_TRY(gates.take(c, tensor(c, 0)));
  PLAIT_TRY(hx.take(c, tensor(c, 1)));
  if (b) PLAIT_TRY(bias.take(c, b));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[1], w->strides[0]}, width, 3 * width));
  T *output = data<T>(result(c, 0)), *last = data<T>(result(c, 1)), *kept = data<T>(result(c, 2));
  const int64_t work = steps.rows() * width * width * 3;
  return each_share<T>(c, steps.batch(), work, wide, [&](int64_t first, int64_t end, T *memory) {
    for (int64_t k = 0; k < steps.count(); k++) {
      const int64_t t = steps.at(k), stop = steps.size(t) < end ? steps.size(t) : end;
      const int64_t start = steps.start(t);
      for (int64_t r = first; r < stop; r++) {
        T *u = memory + (r - first) * wide;
        for (int64_t j = 0; j < 3 * width; j++) u[j] = b ? bias[j] : T(0);
      }
      steps.before(t, first, stop, [&](int64_t from, int64_t to, int64_t row) {
        const T *h = row < 0 ? hx + from * width : output + (row + from) * width;
        multiply_tile(to - from, ceil_div(3 * width, kPanel<T>) * kPanel<T>, width, {h, width, 1},
                      weight.panels(), memory + (from - first) * wide, wide, true);
      });
      for (int64_t r = first; r < stop; r++) {
        T *h = output + (start + r) * width;
        cell(gates + (start + r) * 3 * width, memory + (r - first) * wide,
             steps.row_before<T>(t, r, output, hx, width), width, kept + (start + r) * 4 * width,
             h);
        memcpy(last + r * width, h, size_t(width) * sizeof(T));
      }
    }
  });
}

// The gradients of a row's gates, of the input and of the state before; gh keeps the gradient that
// bypasses the gates.
template <class T>
void cell_backward(const T *kept, const T *h0, const T *grad, int64_t n, T *__restrict gh,
                   T *__restrict by_x, T *__restrict by_u) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T r = kept[j], z = kept[n + j], made = kept[2 * n + j], own = kept[3 * n + j];
    const T h = gh[j] + grad[j], by_made = h * (T(1) - z) * (T(1) - made * made);
    const T by_r = by_made * own * r * (T(1) - r), by_z = h * (h0[j] - made) * z * (T(1) - z);
    by_x[j] = by_u[j] = by_r;
    by_x[n + j] = by_u[n + j] = by_z;
    by_x[2 * n + j] = by_made;
    by_u[2 * n + j] = by_made * r;
    gh[j] = h * z;
  }
}

template <class T>
void sum_rows(const T *from, int64_t rows, int64_t n, T *to) {
  memset(to, 0, size_t(n) * sizeof(T));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < n; j++) to[j] += from[r * n + j];
}

// gru_backward(grad, grad_h, gates, hx, weight, bias, output, activated, sizes, reverse) -> by
// gates, hx, weight, bias
template <class T>
plait_status backward(const plait_call *c) {
  const int64_t width = tensor(c, 3)->shape[1], wide = padded(width);
  Steps steps;
  Dense<T> grad, grad_h, hx, output, kept;
  PackedWeight<T> weight;
  Workspace by_state;
  const DLTensor *w = tensor(c, 4);
  PLAIT_TRY(steps.take(c, c->in[8], integer(c, 9) != 0));
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(grad_h.take(c, tensor(c, 1)));
  PLAIT_TRY(hx.take(c, tensor(c, 3)));
  PLAIT_TRY(output.take(c, tensor(c, 6)));
  PLAIT_TRY(kept.take(c, tensor(c, 7)));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[0], w->strides[1]}, 3 * width, width));
  PLAIT_TRY(by_state.take(c, uint64_t(steps.rows() * 3 * width + 16) * sizeof(T)));
  T *by_x = data<T>(result(c, 0)), *by_h = data<T>(result(c, 1)), *by_u = by_state.as<T>();
  const int64_t work = steps.rows() * width * width * 3;
  PLAIT_TRY(each_share<T>(c, steps.batch(), work, wide, [&](int64_t first, int64_t end, T *memory) {
    for (int64_t r = first; r < end; r++)
      memcpy(memory + (r - first) * wide, grad_h + r * width, size_t(width) * sizeof(T));
    for (int64_t k = steps.count() - 1; k >= 0; k--) {
      const int64_t t = steps.at(k), start = steps.start(t);
      const int64_t stop = steps.size(t) < end ? steps.size(t) : end;
      for (int64_t r = first; r < stop; r++)
        cell_backward(kept + (start + r) * 4 * width, steps.row_before<T>(t, r, output, hx, width),
                      grad + (start + r) * width, width, memory + (r - first) * wide,
                      by_x + (start + r) * 3 * width, by_u + (start + r) * 3 * width);
      if (first < stop)
        multiply_tile(stop - first, ceil_div(width, kPanel<T>) * kPanel<T>, 3 * width,
                      {by_u + (start + first) * 3 * width, 3 * width, 1}, weight.panels(), memory,
                      wide, true);
    }
    for (int64_t r = first; r < end; r++)
      memcpy(by_h + r * width, memory + (r - first) * wide, size_t(width) * sizeof(T));
  }));
  sum_rows(by_u, steps.rows(), 3 * width, data<T>(result(c, 3)));
  return weight_gradient<T>(c, steps, by_u, 3 * width, output, hx, width, data<T>(result(c, 2)));
}

plait_status gru_forward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return forward<T>(c))
  return PLAIT_OK;
}
plait_status gru_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c))
  return PLAIT_OK;
}

PLAIT_KERNEL("gru_forward", gru_forward);
PLAIT_KERNEL("gru_backward", gru_backward);

}  // namespace
}  // namespace plait::core
