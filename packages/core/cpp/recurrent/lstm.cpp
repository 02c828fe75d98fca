// LSTM over sequences: the product of a step and its pointwise part follow each other while the
// gates of a block of hidden units are in the cache; the weight's gradient is one product over all
// steps.
#include "pointwise/math.h"
#include "recurrent/recurrent.h"

namespace plait::core {
namespace {

namespace math = scalar::math;

// Computes c, h and the values for the derivative of n units from their gates before the activation
// functions. Gates are `wide` elements apart in a, and `width` elements in the values kept.
template <class T>
void cell(const T *__restrict a, int64_t wide, const T *c0, int64_t n, int64_t width,
          T *__restrict gates, T *__restrict c, T *__restrict h) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T i = math::sigmoid(a[j]), f = math::sigmoid(a[wide + j]),
            g = math::tanh(a[2 * wide + j]), o = math::sigmoid(a[3 * wide + j]);
    const T state = f * c0[j] + i * g;
    gates[j] = i;
    gates[width + j] = f;
    gates[2 * width + j] = g;
    gates[3 * width + j] = o;
    c[j] = state;
    h[j] = o * math::tanh(state);
  }
}

// lstm_forward(gates, hx, cx, weight, sizes, reverse) -> output, h, c, cells, activated
template <class T>
plait_status forward(const plait_call *c) {
  const int64_t width = tensor(c, 1)->shape[1];
  Steps steps;
  Dense<T> gates, hx, cx;
  PackedWeight<T> weight;
  Exchange<T> states;
  const DLTensor *w = tensor(c, 3);
  PLAIT_TRY(steps.take(c, c->in[4], integer(c, 5) != 0));
  PLAIT_TRY(gates.take(c, tensor(c, 0)));
  PLAIT_TRY(hx.take(c, tensor(c, 1)));
  PLAIT_TRY(cx.take(c, tensor(c, 2)));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[1], w->strides[0]}, width, 4, width));
  PLAIT_TRY(states.take(c, steps.batch(), width));
  T *output = data<T>(result(c, 0)), *last_h = data<T>(result(c, 1)),
    *last_c = data<T>(result(c, 2)), *cells = data<T>(result(c, 3)),
    *activated = data<T>(result(c, 4));
  states.fill(hx, steps.batch(), width);
  for (int64_t k = 0; k < steps.count(); k++) {
    const int64_t t = steps.at(k), start = steps.start(t);
    each_block<T>(c, width, steps.size(t), 4 * width, [&](Block u, int64_t first, int64_t end) {
      const int64_t row = 4 * u.wide + kPadding, rest = u.first;
      const size_t bytes = size_t(u.count) * sizeof(T);
      alignas(64) T tile[kSequences * (4 * kUnits + kPadding)];
      for (; first < end; first += kSequences) {
        const int64_t m = end - first < kSequences ? end - first : kSequences;
        for (int64_t i = 0; i < m; i++)
          for (int64_t g = 0; g < 4; g++)
            memcpy(tile + i * row + g * u.wide,
                   gates + ((start + first + i) * 4 + g) * width + rest, bytes);
        multiply_tile(m, 4 * u.wide, width, states.rows(k, first), weight.panels(u), tile, row,
                      true);
        for (int64_t i = 0; i < m; i++) {
          const int64_t r = first + i, at = (start + r) * width + rest;
          cell(tile + i * row, u.wide, steps.row_before<T>(t, r, cells, cx, width) + rest, u.count,
               width, activated + (start + r) * 4 * width + rest, cells + at, output + at);
          memcpy(states.at(k + 1, r) + rest, output + at, bytes);
          if (!steps.is_last(k, r)) continue;
          memcpy(last_h + r * width + rest, output + at, bytes);
          memcpy(last_c + r * width + rest, cells + at, bytes);
        }
      }
    });
  }
  return PLAIT_OK;
}

// The gradients of the gates of n units; the gradients of c and h are replaced by those of the step
// before. Gates are `width` elements apart.
template <class T>
void cell_backward(const T *gates, const T *c, const T *c0, const T *grad, int64_t n, int64_t width,
                   const T *gh, T *__restrict gc, T *__restrict out) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; j++) {
    const T i = gates[j], f = gates[width + j], g = gates[2 * width + j], o = gates[3 * width + j];
    const T s = math::tanh(c[j]), h = gh[j] + grad[j];
    const T state = gc[j] + h * o * (T(1) - s * s);
    out[j] = state * g * i * (T(1) - i);
    out[width + j] = state * c0[j] * f * (T(1) - f);
    out[2 * width + j] = state * i * (T(1) - g * g);
    out[3 * width + j] = h * s * o * (T(1) - o);
    gc[j] = state * f;
  }
}

// lstm_backward(grad, grad_h, grad_c, gates, hx, cx, weight, output, cells, activated, sizes,
// reverse) -> by gates, hx, cx, weight
template <class T>
plait_status backward(const plait_call *c) {
  const int64_t width = tensor(c, 4)->shape[1];
  Steps steps;
  Dense<T> grad, grad_h, grad_c, hx, cx, output, cells, activated;
  PackedWeight<T> weight;
  Exchange<T> gradients;
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
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[0], w->strides[1]}, 4 * width, 1, width));
  PLAIT_TRY(gradients.take(c, steps.batch(), 4 * width));
  T *by_gates = data<T>(result(c, 0)), *by_h = data<T>(result(c, 1)), *by_c = data<T>(result(c, 2));
  memcpy(by_h, grad_h, size_t(steps.batch() * width) * sizeof(T));
  memcpy(by_c, grad_c, size_t(steps.batch() * width) * sizeof(T));
  each_step_back<T>(c, steps, gradients, weight, width, 4, by_h, false,
                    [&](int64_t k, int64_t t, int64_t r, Block u, T *gh) {
                      const int64_t row = steps.start(t) + r, at = row * width + u.first;
                      T *out = by_gates + row * 4 * width + u.first;
                      cell_backward(activated + row * 4 * width + u.first, cells + at,
                                    steps.row_before<T>(t, r, cells, cx, width) + u.first,
                                    grad + at, u.count, width, gh, by_c + r * width + u.first, out);
                      for (int64_t g = 0; g < 4; g++)
                        memcpy(gradients.at(k, r) + g * width + u.first, out + g * width,
                               size_t(u.count) * sizeof(T));
                    });
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
