// LSTM over sequences: the product of a step and its pointwise part follow each other while the
// gates of a block of hidden units are in the cache; the weight's gradient is one product over all
// steps.
#include "pointwise/math.h"
#include "recurrent/recurrent.h"

namespace plait::core {
namespace {

namespace math = scalar::math;

// Computes c, h and the values for the derivative of n units from the input's part x of their gates
// and the state's part u; `next` gets h too. Gates are `wide` elements apart in u, and `width`
// elements in the others.
template <class T>
struct Cell {
  static PLAIT_INLINE void run(const T *x, const T *__restrict u, int64_t wide, const T *c0,
                               int64_t n, int64_t width, T *__restrict gates, T *__restrict c,
                               T *__restrict h, T *__restrict next) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) {
      const T i = math::sigmoid(x[j] + u[j]), f = math::sigmoid(x[width + j] + u[wide + j]),
              g = math::tanh(x[2 * width + j] + u[2 * wide + j]),
              o = math::sigmoid(x[3 * width + j] + u[3 * wide + j]);
      const T state = f * c0[j] + i * g;
      gates[j] = i;
      gates[width + j] = f;
      gates[2 * width + j] = g;
      gates[3 * width + j] = o;
      c[j] = state;
      h[j] = next[j] = o * math::tanh(state);
    }
  }
};

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
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[1], w->strides[0]}, width, 4, kUnits, width));
  PLAIT_TRY(states.take(c, steps.batch(), width));
  T *output = data<T>(result(c, 0)), *last_h = data<T>(result(c, 1)),
    *last_c = data<T>(result(c, 2)), *cells = data<T>(result(c, 3)),
    *activated = data<T>(result(c, 4));
  states.fill(hx, steps.batch(), width);
  const auto fetch = [&](Cache cache, int64_t t, int64_t r, Block u) PLAIT_INLINED {
    const int64_t row = steps.start(t) + r;
    fetch_units(cache, steps.row_before<T>(t, r, cells, cx, width) + u.first, u.count, 1, width);
    fetch_units(cache, gates + row * 4 * width + u.first, u.count, 4, width);
    fetch_units(cache, activated + row * 4 * width + u.first, u.count, 4, width);
    fetch_units(cache, cells + row * width + u.first, u.count, 1, width);
    fetch_units(cache, output + row * width + u.first, u.count, 1, width);
  };
  return each_step<T>(
      c, steps.count(), steps.batch(), kUnits, width, 4 * width,
      [&](int64_t k) { return steps.size(steps.at(k)); },
      [&](int64_t k, Block u, int64_t first, int64_t end) {
        const int64_t t = steps.at(k), start = steps.start(t), row = 4 * u.wide + kPadding;
        const size_t bytes = size_t(u.count) * sizeof(T);
        alignas(64) T tile[kSequences * (4 * kUnits + kPadding)];
        for (; first < end; first += kSequences) {
          const int64_t m = end - first < kSequences ? end - first : kSequences;
          for (int64_t i = 0; i < m; i++) fetch(kSecond, t, first + i, u);
          multiply_tile(m, 4 * u.wide, width, states.rows(k, first), weight.panels(u), tile, row,
                        false);
          for (int64_t i = 0; i < m; i++) {
            if (i + kFetchRows < m) fetch(kFirst, t, first + i + kFetchRows, u);
            const int64_t r = first + i, at = (start + r) * width + u.first;
            const int64_t wide_at = (start + r) * 4 * width + u.first;
            run_loop<Cell<T>>(gates + wide_at, tile + i * row, u.wide,
                              steps.row_before<T>(t, r, cells, cx, width) + u.first, u.count, width,
                              activated + wide_at, cells + at, output + at,
                              states.at(k + 1, r) + u.first);
            if (!steps.is_last(k, r)) continue;
            memcpy(last_h + r * width + u.first, output + at, bytes);
            memcpy(last_c + r * width + u.first, cells + at, bytes);
          }
        }
      });
}

// The gradients of the gates of n units; the gradients of c and h are replaced by those of the step
// before, and `next` gets those of the gates too. Gates are `width` elements apart.
template <class T>
struct CellBackward {
  static PLAIT_INLINE void run(const T *gates, const T *c, const T *c0, const T *grad, int64_t n,
                               int64_t width, const T *gh, T *__restrict gc, T *__restrict out,
                               T *__restrict next) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) {
      const T i = gates[j], f = gates[width + j], g = gates[2 * width + j],
              o = gates[3 * width + j];
      const T s = math::tanh(c[j]), h = gh[j] + grad[j];
      const T state = gc[j] + h * o * (T(1) - s * s);
      out[j] = next[j] = state * g * i * (T(1) - i);
      out[width + j] = next[width + j] = state * c0[j] * f * (T(1) - f);
      out[2 * width + j] = next[2 * width + j] = state * i * (T(1) - g * g);
      out[3 * width + j] = next[3 * width + j] = h * s * o * (T(1) - o);
      gc[j] = state * f;
    }
  }
};

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
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[0], w->strides[1]}, 4 * width, 1,
                        units_back(steps.batch()), width));
  PLAIT_TRY(gradients.take(c, steps.batch(), 4 * width));
  T *by_gates = data<T>(result(c, 0)), *by_h = data<T>(result(c, 1)), *by_c = data<T>(result(c, 2));
  memcpy(by_h, grad_h, size_t(steps.batch() * width) * sizeof(T));
  memcpy(by_c, grad_c, size_t(steps.batch() * width) * sizeof(T));
  PLAIT_TRY(each_step_back<T>(
      c, steps, gradients, weight, width, 4, by_h, false,
      [&](Cache cache, int64_t t, int64_t r, Block u) PLAIT_INLINED {
        const int64_t row = steps.start(t) + r, at = row * width + u.first;
        fetch_units(cache, activated + row * 4 * width + u.first, u.count, 4, width);
        fetch_units(cache, by_gates + row * 4 * width + u.first, u.count, 4, width);
        fetch_units(cache, cells + at, u.count, 1, width);
        fetch_units(cache, steps.row_before<T>(t, r, cells, cx, width) + u.first, u.count, 1,
                    width);
        fetch_units(cache, by_c + r * width + u.first, u.count, 1, width);
        fetch_units(cache, grad + at, u.count, 1, width);
      },
      [&](int64_t k, int64_t t, int64_t r, Block u, T *gh) {
        const int64_t row = steps.start(t) + r, at = row * width + u.first;
        const int64_t wide_at = row * 4 * width + u.first;
        run_loop<CellBackward<T>>(activated + wide_at, cells + at,
                                  steps.row_before<T>(t, r, cells, cx, width) + u.first, grad + at,
                                  u.count, width, gh, by_c + r * width + u.first,
                                  by_gates + wide_at, gradients.at(k, r) + u.first);
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
