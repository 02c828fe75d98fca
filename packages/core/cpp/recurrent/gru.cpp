// GRU over sequences. As in lstm.cpp, the product of a step and its pointwise part follow each
// other while the gates of a block of hidden units are in the cache.
#include "pointwise/math.h"
#include "recurrent/recurrent.h"

namespace plait::core {
namespace {

namespace math = scalar::math;

// Gates x of the input, u of the state before, h0, and their bias to h, for n units; `next` gets h
// too. Kept for the derivative: r, z, n and the last part of u with its bias. Gates are `width`
// elements apart, in u `wide` elements.
template <class T>
struct Cell {
  static PLAIT_INLINE void run(const T *x, const T *__restrict u, int64_t wide, const T *bias,
                               const T *h0, int64_t n, int64_t width, T *__restrict kept,
                               T *__restrict h, T *__restrict next) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) {
      const T r = math::sigmoid(x[j] + (bias[j] + u[j])),
              z = math::sigmoid(x[width + j] + (bias[width + j] + u[wide + j])),
              own = bias[2 * width + j] + u[2 * wide + j],
              result = math::tanh(x[2 * width + j] + r * own);
      kept[j] = r;
      kept[width + j] = z;
      kept[2 * width + j] = result;
      kept[3 * width + j] = own;
      h[j] = next[j] = result + z * (h0[j] - result);
    }
  }
};

// gru_forward(gates, hx, weight, bias, sizes, reverse) -> output, h, activated
template <class T>
plait_status forward(const plait_call *c) {
  const int64_t width = tensor(c, 1)->shape[1];
  Steps steps;
  Dense<T> gates, hx, given_bias;
  Workspace zeros;
  PackedWeight<T> weight;
  Exchange<T> states;
  const DLTensor *w = tensor(c, 2), *b = tensor(c, 3);
  PLAIT_TRY(steps.take(c, c->in[4], integer(c, 5) != 0));
  PLAIT_TRY(gates.take(c, tensor(c, 0)));
  PLAIT_TRY(hx.take(c, tensor(c, 1)));
  if (b) {
    PLAIT_TRY(given_bias.take(c, b));
  } else {
    PLAIT_TRY(zeros.take(c, uint64_t(3 * width + 16) * sizeof(T)));
    memset(zeros.as<T>(), 0, size_t(3 * width) * sizeof(T));
  }
  const T *bias = b ? given_bias : zeros.as<T>();
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[1], w->strides[0]}, width, 3, kUnits, width));
  PLAIT_TRY(states.take(c, steps.batch(), width));
  T *output = data<T>(result(c, 0)), *last = data<T>(result(c, 1)), *kept = data<T>(result(c, 2));
  states.fill(hx, steps.batch(), width);
  const auto fetch = [&](Cache cache, int64_t row, Block u) PLAIT_INLINED {
    fetch_units(cache, gates + row * 3 * width + u.first, u.count, 3, width);
    fetch_units(cache, kept + row * 4 * width + u.first, u.count, 4, width);
    fetch_units(cache, output + row * width + u.first, u.count, 1, width);
  };
  return each_step<T>(
      c, steps.count(), steps.batch(), kUnits, width, 3 * width,
      [&](int64_t k) { return steps.size(steps.at(k)); },
      [&](int64_t k, Block u, int64_t first, int64_t end) {
        const int64_t start = steps.start(steps.at(k)), row = 3 * u.wide + kPadding;
        alignas(64) T tile[kSequences * (3 * kUnits + kPadding)];
        for (; first < end; first += kSequences) {
          const int64_t m = end - first < kSequences ? end - first : kSequences;
          for (int64_t i = 0; i < m; i++) fetch(kSecond, start + first + i, u);
          multiply_tile(m, 3 * u.wide, width, states.rows(k, first), weight.panels(u), tile, row,
                        false);
          for (int64_t i = 0; i < m; i++) {
            if (i + kFetchRows < m) fetch(kFirst, start + first + i + kFetchRows, u);
            const int64_t r = first + i;
            T *h = output + (start + r) * width + u.first;
            run_loop<Cell<T>>(gates + (start + r) * 3 * width + u.first, tile + i * row, u.wide,
                              bias + u.first, states.at(k, r) + u.first, u.count, width,
                              kept + (start + r) * 4 * width + u.first, h,
                              states.at(k + 1, r) + u.first);
            if (steps.is_last(k, r))
              memcpy(last + r * width + u.first, h, size_t(u.count) * sizeof(T));
          }
        }
      });
}

// The gradients of the gates of n units, of the input and of the state before; gh keeps the
// gradient that bypasses the gates, and `next` gets those of the state's gates too. Gates are
// `width` elements apart.
template <class T>
struct CellBackward {
  static PLAIT_INLINE void run(const T *kept, const T *h0, const T *grad, int64_t n, int64_t width,
                               T *__restrict gh, T *__restrict by_x, T *__restrict by_u,
                               T *__restrict next) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; j++) {
      const T r = kept[j], z = kept[width + j], result = kept[2 * width + j],
              own = kept[3 * width + j];
      const T h = gh[j] + grad[j], by_result = h * (T(1) - z) * (T(1) - result * result);
      const T by_r = by_result * own * r * (T(1) - r), by_z = h * (h0[j] - result) * z * (T(1) - z);
      by_x[j] = by_u[j] = next[j] = by_r;
      by_x[width + j] = by_u[width + j] = next[width + j] = by_z;
      by_x[2 * width + j] = by_result;
      by_u[2 * width + j] = next[2 * width + j] = by_result * r;
      gh[j] = h * z;
    }
  }
};

// The sums of columns, in float64: one float32 after the other, the error would grow with the rows.
template <class T>
void sum_rows(const plait_call *c, const T *from, int64_t rows, int64_t n, T *to) {
  constexpr int64_t kColumns = 128;
  parallel_ranges(c, ceil_div(n, kColumns), kSerial / (kColumns * (rows + 1)) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; i++) {
                      double sums[kColumns] = {};
                      const int64_t rest = n - i * kColumns;
                      const int64_t count = rest < kColumns ? rest : kColumns;
                      for (int64_t r = 0; r < rows; r++)
                        for (int64_t j = 0; j < count; j++)
                          sums[j] += double(from[r * n + i * kColumns + j]);
                      for (int64_t j = 0; j < count; j++) to[i * kColumns + j] = T(sums[j]);
                    }
                  });
}

// gru_backward(grad, grad_h, gates, hx, weight, bias, output, activated, sizes, reverse) -> by
// gates, hx, weight, bias
template <class T>
plait_status backward(const plait_call *c) {
  const int64_t width = tensor(c, 3)->shape[1];
  Steps steps;
  Dense<T> grad, grad_h, hx, output, kept;
  PackedWeight<T> weight;
  Exchange<T> gradients;
  Workspace by_state;
  const DLTensor *w = tensor(c, 4);
  PLAIT_TRY(steps.take(c, c->in[8], integer(c, 9) != 0));
  PLAIT_TRY(grad.take(c, tensor(c, 0)));
  PLAIT_TRY(grad_h.take(c, tensor(c, 1)));
  PLAIT_TRY(hx.take(c, tensor(c, 3)));
  PLAIT_TRY(output.take(c, tensor(c, 6)));
  PLAIT_TRY(kept.take(c, tensor(c, 7)));
  PLAIT_TRY(weight.take(c, {data<T>(w), w->strides[0], w->strides[1]}, 3 * width, 1,
                        units_back(steps.batch()), width));
  PLAIT_TRY(gradients.take(c, steps.batch(), 3 * width));
  PLAIT_TRY(by_state.take(c, uint64_t(steps.rows() * 3 * width + 16) * sizeof(T)));
  T *by_x = data<T>(result(c, 0)), *by_h = data<T>(result(c, 1)), *by_u = by_state.as<T>();
  memcpy(by_h, grad_h, size_t(steps.batch() * width) * sizeof(T));
  PLAIT_TRY(each_step_back<T>(
      c, steps, gradients, weight, width, 3, by_h, true,
      [&](Cache cache, int64_t t, int64_t r, Block u) PLAIT_INLINED {
        const int64_t row = steps.start(t) + r, at = row * 3 * width + u.first;
        fetch_units(cache, kept + row * 4 * width + u.first, u.count, 4, width);
        fetch_units(cache, by_x + at, u.count, 3, width);
        fetch_units(cache, by_u + at, u.count, 3, width);
        fetch_units(cache, grad + row * width + u.first, u.count, 1, width);
        fetch_units(cache, steps.row_before<T>(t, r, output, hx, width) + u.first, u.count, 1,
                    width);
      },
      [&](int64_t k, int64_t t, int64_t r, Block u, T *gh) {
        const int64_t row = steps.start(t) + r, at = row * 3 * width + u.first;
        run_loop<CellBackward<T>>(kept + row * 4 * width + u.first,
                                  steps.row_before<T>(t, r, output, hx, width) + u.first,
                                  grad + row * width + u.first, u.count, width, gh, by_x + at,
                                  by_u + at, gradients.at(k, r) + u.first);
      }));
  sum_rows(c, by_u, steps.rows(), 3 * width, data<T>(result(c, 3)));
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
