// LSTM over sequences: the product of a step and its pointwise part follow each other while the
// gates of a thread's sequences are in the cache; the weight's gradient is one product over all
// steps.
#include "pointwise/math.h"
#include "recurrent/recurrent.h"

namespace plait::core {
namespace {

namespace math = scalar::math;

// Computes c, h and the values for the derivative from the gates before their activation functions.
template <class T>
void cell(const T *__restrict a, const T *c0, int64_t n, T *__restrict gates, T *__restrict c,
          T *__restrict h) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T i = math::sigmoid(a[j]), f = math::sigmoid(a[n + j]), g = math::tanh(a[2 * n + j]),
            o = math::sigmoid(a[3 * n + j]);
    const T state = f * c0[j] + i * g;
    gates[j] = i;
    gates[n + j] = f;
    gates[2 * n + j] = g;
    gates[3 * n + j] = o;
    c[j] = state;
    h[j] = o * math::tanh(state);
  }
}

// lstm_forward(gates, hx, cx, weight, sizes, reverse) -> output, h, c, cells, activated
template <class T>
plait_status forward(const plait_call *c) {
  const int64_t width = tensor(c, 1)->shape[1], wide = padded(4 * width);
  Steps steps;
  Dense<T> gates, hx, cx;
  PackedWeight<T> weight;
  const DLTensor *w = tensor(c, 3);
  PLAIT_TRY(steps.take(c, c->in[4], integer(c, 5) != 0));
  PLAIT_TRY(gates.take(c, tensor(c, 0)));
  PLAIT_TRY(hx.take(c, tensor(c, 1)));
  PLAIT_TRY(cx.take(c, tensor(c, 2)));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[1], w->strides[0]}, width, 4 * width));
  T *output = data<T>(result(c, 0)), *last_h = data<T>(result(c, 1)),
    *last_c = data<T>(result(c, 2)), *cells = data<T>(result(c, 3)),
    *activated = data<T>(result(c, 4));
  const int64_t work = steps.rows() * width * width * 4;
  return each_share<T>(c, steps.batch(), work, wide, [&](int64_t first, int64_t end, T *memory) {
    for (int64_t k = 0; k < steps.count(); k++) {
      const int64_t t = steps.at(k), stop = steps.size(t) < end ? steps.size(t) : end;
      const int64_t start = steps.start(t);
      for (int64_t r = first; r < stop; r++)
        memcpy(memory + (r - first) * wide, gates + (start + r) * 4 * width,
               size_t(4 * width) * sizeof(T));
      steps.before(t, first, stop, [&](int64_t from, int64_t to, int64_t row) {
        const T *h = row < 0 ? hx + from * width : output + (row + from) * width;
        multiply_tile(to - from, ceil_div(4 * width, kPanel<T>) * kPanel<T>, width, {h, width, 1},
                      weight.panels(), memory + (from - first) * wide, wide, true);
      });
      for (int64_t r = first; r < stop; r++) {
        const T *c0 = steps.row_before<T>(t, r, cells, cx, width);
        cell(memory + (r - first) * wide, c0, width, activated + (start + r) * 4 * width,
             cells + (start + r) * width, output + (start + r) * width);
        memcpy(last_h + r * width, output + (start + r) * width, size_t(width) * sizeof(T));
        memcpy(last_c + r * width, cells + (start + r) * width, size_t(width) * sizeof(T));
      }
    }
  });
}

// The gradients of a row's gates; the gradients of c and h are replaced by those of the step
// before.
template <class T>
void cell_backward(const T *gates, const T *c, const T *c0, const T *grad, int64_t n,
                   T *__restrict gh, T *__restrict gc, T *__restrict out) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T i = gates[j], f = gates[n + j], g = gates[2 * n + j], o = gates[3 * n + j];
    const T s = math::tanh(c[j]), h = gh[j] + grad[j];
    const T state = gc[j] + h * o * (T(1) - s * s);
    out[j] = state * g * i * (T(1) - i);
    out[n + j] = state * c0[j] * f * (T(1) - f);
    out[2 * n + j] = state * i * (T(1) - g * g);
    out[3 * n + j] = h * s * o * (T(1) - o);
    gc[j] = state * f;
  }
}

// lstm_backward(grad, grad_h, grad_c, gates, hx, cx, weight, output, cells, activated, sizes,
// reverse) -> by gates, hx, cx, weight
template <class T>
plait_status backward(const plait_call *c) {
  const int64_t width = tensor(c, 4)->shape[1], wide = padded(width);
  Steps steps;
  Dense<T> grad, grad_h, grad_c, hx, cx, output, cells, activated;
  PackedWeight<T> weight;
  const DLTensor *w = tensor(c, 6);
  PLAIT_TRY(steps.take(c, c->in[10], integer(c, 11) != 0));
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(grad_h.take(c, tensor(c, 1)));
  PLAIT_TRY(grad_c.take(c, tensor(c, 2)));
  PLAIT_TRY(hx.take(c, tensor(c, 4)));
  PLAIT_TRY(cx.take(c, tensor(c, 5)));
  PLAIT_TRY(output.take(c, tensor(c, 7)));
  PLAIT_TRY(cells.take(c, tensor(c, 8)));
  PLAIT_TRY(activated.take(c, tensor(c, 9)));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[0], w->strides[1]}, 4 * width, width));
  T *by_gates = data<T>(result(c, 0)), *by_h = data<T>(result(c, 1)), *by_c = data<T>(result(c, 2));
  const int64_t work = steps.rows() * width * width * 4;
  PLAIT_TRY(each_share<T>(c, steps.batch(), work, wide, [&](int64_t first, int64_t end, T *memory) {
    for (int64_t r = first; r < end; r++) {
      memcpy(memory + (r - first) * wide, grad_h + r * width, size_t(width) * sizeof(T));
      memcpy(by_c + r * width, grad_c + r * width, size_t(width) * sizeof(T));
    }
    for (int64_t k = steps.count() - 1; k >= 0; k--) {
      const int64_t t = steps.at(k), start = steps.start(t);
      const int64_t stop = steps.size(t) < end ? steps.size(t) : end;
      for (int64_t r = first; r < stop; r++)
        cell_backward(activated + (start + r) * 4 * width, cells + (start + r) * width,
                      steps.row_before<T>(t, r, cells, cx, width), grad + (start + r) * width,
                      width, memory + (r - first) * wide, by_c + r * width,
                      by_gates + (start + r) * 4 * width);
      if (first < stop)
        multiply_tile(stop - first, ceil_div(width, kPanel<T>) * kPanel<T>, 4 * width,
                      {by_gates + (start + first) * 4 * width, 4 * width, 1}, weight.panels(),
                      memory, wide, false);
    }
    for (int64_t r = first; r < end; r++)
      memcpy(by_h + r * width, memory + (r - first) * wide, size_t(width) * sizeof(T));
  }));
  return weight_gradient<T>(c, steps, by_gates, 4 * width, output, hx, width,
                            data<T>(result(c, 3)));
}

plait_status lstm_forward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return forward<T>(c))
  return PLAIT_OK;
}
plait_status lstm_backward(plait_call *c) {
  PLAIT_FLOATING(kind(result(c)->dtype), return backward<T>(c))
  return PLAIT_OK;
}

PLAIT_KERNEL("lstm_forward", lstm_forward);
PLAIT_KERNEL("lstm_backward", lstm_backward);

}  // namespace
}  // namespace plait::core
