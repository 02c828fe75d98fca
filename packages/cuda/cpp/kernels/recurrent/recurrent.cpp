// LSTM and GRU over packed sequences: for each step the product of the states before with the
// weight, then one pointwise kernel. The weight's gradient is one product over all steps.
#include "block/block.h"
#if PLAIT_HOST
#include "host/dense.h"
#include "host/product.h"
#endif

namespace plait::cuda {

// One step. Its rows follow each other; the states before lie in rows of the step before, as far as
// that one has as many, and in the first states.
struct StepArgs {
  int64_t rows, width;
  int64_t known;  // rows whose state before is a row of `before`, the others' is one of `first`
  int64_t last_from;  // rows from here on have no further step
  const void *sums;  // products with the weight (LSTM: and the gates), or their gradients
  const void *gates;  // GRU: of the input
  const void *before, *first;  // c of an LSTM, h of a GRU
  void *output, *cells, *activated;  // of this step
  void *last_h, *last_c;
  // backward
  const void *grad;  // of the output
  void *by_gates, *by_state, *by_h, *by_c;
};

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE T state_before(Thread &t, const StepArgs &a, int64_t row, int64_t i) {
  return t.global<const T>(row < a.known ? a.before : a.first).load(i);
}

template <class T>
PLAIT_DEVICE void lstm_cell(Thread &t, const StepArgs &a) {
  const auto sums = t.global<const T>(a.sums);
  const auto activated = t.global<T>(a.activated), output = t.global<T>(a.output);
  const auto cells = t.global<T>(a.cells);
  for (int64_t at = t.index(); at < a.rows * a.width; at += t.stride()) {
    const int64_t row = at / a.width, j = at - row * a.width, g = row * 4 * a.width + j;
    const T i = scalar::math::sigmoid(sums.load(g));
    const T f = scalar::math::sigmoid(sums.load(g + a.width));
    const T n = scalar::math::tanh(sums.load(g + 2 * a.width));
    const T o = scalar::math::sigmoid(sums.load(g + 3 * a.width));
    const T c = f * state_before<T>(t, a, row, at) + i * n, h = o * scalar::math::tanh(c);
    activated.store(g, i), activated.store(g + a.width, f);
    activated.store(g + 2 * a.width, n), activated.store(g + 3 * a.width, o);
    cells.store(at, c);
    output.store(at, h);
    if (row < a.last_from) continue;
    t.global<T>(a.last_h).store(at, h);
    t.global<T>(a.last_c).store(at, c);
  }
}

template <class T>
PLAIT_DEVICE void lstm_cell_backward(Thread &t, const StepArgs &a) {
  const auto gates = t.global<const T>(a.activated), cells = t.global<const T>(a.cells);
  const auto grad = t.global<const T>(a.grad);
  const auto by_gates = t.global<T>(a.by_gates), by_h = t.global<T>(a.by_h);
  const auto by_c = t.global<T>(a.by_c);
  for (int64_t at = t.index(); at < a.rows * a.width; at += t.stride()) {
    const int64_t row = at / a.width, j = at - row * a.width, q = row * 4 * a.width + j;
    const T i = gates.load(q), f = gates.load(q + a.width), g = gates.load(q + 2 * a.width);
    const T o = gates.load(q + 3 * a.width), s = scalar::math::tanh(cells.load(at));
    const T h = by_h.load(at) + grad.load(at);
    const T state = by_c.load(at) + h * o * (T(1) - s * s);
    by_gates.store(q, state * g * i * (T(1) - i));
    by_gates.store(q + a.width, state * state_before<T>(t, a, row, at) * f * (T(1) - f));
    by_gates.store(q + 2 * a.width, state * i * (T(1) - g * g));
    by_gates.store(q + 3 * a.width, h * s * o * (T(1) - o));
    by_c.store(at, state * f);
  }
}

template <class T>
PLAIT_DEVICE void gru_cell(Thread &t, const StepArgs &a) {
  const auto x = t.global<const T>(a.gates), u = t.global<const T>(a.sums);
  const auto kept = t.global<T>(a.activated), output = t.global<T>(a.output);
  for (int64_t at = t.index(); at < a.rows * a.width; at += t.stride()) {
    const int64_t row = at / a.width, j = at - row * a.width, g = row * 3 * a.width + j;
    const T r = scalar::math::sigmoid(x.load(g) + u.load(g));
    const T z = scalar::math::sigmoid(x.load(g + a.width) + u.load(g + a.width));
    const T own = u.load(g + 2 * a.width);
    const T n = scalar::math::tanh(x.load(g + 2 * a.width) + r * own);
    const T h = n + z * (state_before<T>(t, a, row, at) - n);
    const int64_t q = row * 4 * a.width + j;
    kept.store(q, r), kept.store(q + a.width, z);
    kept.store(q + 2 * a.width, n), kept.store(q + 3 * a.width, own);
    output.store(at, h);
    if (row >= a.last_from) t.global<T>(a.last_h).store(at, h);
  }
}

template <class T>
PLAIT_DEVICE void gru_cell_backward(Thread &t, const StepArgs &a) {
  const auto kept = t.global<const T>(a.activated), grad = t.global<const T>(a.grad);
  const auto by_x = t.global<T>(a.by_gates), by_u = t.global<T>(a.by_state);
  const auto by_h = t.global<T>(a.by_h);
  for (int64_t at = t.index(); at < a.rows * a.width; at += t.stride()) {
    const int64_t row = at / a.width, j = at - row * a.width, q = row * 4 * a.width + j;
    const T r = kept.load(q), z = kept.load(q + a.width), n = kept.load(q + 2 * a.width);
    const T own = kept.load(q + 3 * a.width), h = by_h.load(at) + grad.load(at);
    const T by_made = h * (T(1) - z) * (T(1) - n * n), by_r = by_made * own * r * (T(1) - r);
    const T by_z = h * (state_before<T>(t, a, row, at) - n) * z * (T(1) - z);
    const int64_t g = row * 3 * a.width + j;
    by_x.store(g, by_r), by_u.store(g, by_r);
    by_x.store(g + a.width, by_z), by_u.store(g + a.width, by_z);
    by_x.store(g + 2 * a.width, by_made), by_u.store(g + 2 * a.width, by_made * r);
    by_h.store(at, h * z);
  }
}

// Sums of columns, in the order of the rows.
template <class T>
PLAIT_DEVICE void gru_bias(Thread &t, const StepArgs &a) {
  const auto from = t.global<const T>(a.sums);
  const auto to = t.global<T>(a.output);
  for (int64_t j = t.index(); j < a.width; j += t.stride()) {
    T sum = T(0);
    for (int64_t row = 0; row < a.rows; row++) sum += from.load(row * a.width + j);
    to.store(j, sum);
  }
}
#endif

PLAIT_DEVICE_KERNEL(lstm_cell, StepArgs, 256, WIDE);
PLAIT_DEVICE_KERNEL(lstm_cell_backward, StepArgs, 256, WIDE);
PLAIT_DEVICE_KERNEL(gru_cell, StepArgs, 256, WIDE);
PLAIT_DEVICE_KERNEL(gru_cell_backward, StepArgs, 256, WIDE);
PLAIT_DEVICE_KERNEL(gru_bias, StepArgs, 256, WIDE);

#if PLAIT_HOST
namespace {

// The layout of packed sequences: a row of each sequence for the first step, then for the second,
// and so on.
struct Steps {
  const int64_t *sizes;
  int64_t count, rows = 0;
  bool reverse;
  Steps(const plait_value &v, bool backwards)
      : sizes(v.u.is), count(int64_t(v.n)), reverse(backwards) {
    for (int64_t t = 0; t < count; t++) rows += sizes[t];
  }
  int64_t batch() const { return count ? sizes[0] : 0; }
  int64_t at(int64_t k) const { return reverse ? count - 1 - k : k; }
  int64_t start(int64_t t) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < t; i++) sum += sizes[i];
    return sum;
  }
  // The step before step t, -1: there is none; and how many rows of step t have a row of it.
  int64_t before(int64_t t) const {
    const int64_t from = reverse ? t + 1 : t - 1;
    return from < count ? from : -1;
  }
  int64_t known(int64_t t) const {
    const int64_t from = before(t);
    return from < 0 ? 0 : sizes[from] < sizes[t] ? sizes[from] : sizes[t];
  }
};

// A step's rows of tensors that have a row for each row of all steps.
struct Rows {
  Kind k;
  int64_t width;
  const void *at(const void *data, int64_t row, int64_t columns = 1) const {
    return static_cast<const char *>(data) + row * width * columns * size_of(k);
  }
  void *at(void *data, int64_t row, int64_t columns = 1) const {
    return static_cast<char *>(data) + row * width * columns * size_of(k);
  }
};

// Calls f(first row of the step, rows, their states) for the rows that have a state in `output`,
// and for those whose state is one of `first`.
template <class F>
plait_status each_state(const Steps &steps, const Rows &rows, int64_t t, const void *output,
                        const void *first, F &&f) {
  const int64_t known = steps.known(t);
  if (known > 0) PLAIT_TRY(f(int64_t(0), known, rows.at(output, steps.start(steps.before(t)))));
  if (known < steps.sizes[t]) PLAIT_TRY(f(known, steps.sizes[t] - known, rows.at(first, known)));
  return PLAIT_OK;
}

// sums = states of step t times the transposed weight, plus `addend`, of `gates` products a unit.
plait_status multiply_states(const plait_call *c, const Steps &steps, const Rows &rows, int64_t t,
                             const void *output, const void *first, const MatrixOperand &weight,
                             int64_t gates, const MatrixOperand &addend, void *sums) {
  const int64_t wide = gates * rows.width;
  return each_state(steps, rows, t, output, first,
                    [&](int64_t begin, int64_t count, const void *states) {
                      MatrixProduct p{rows.k, 1, count, wide, rows.width};
                      p.a = {states, rows.width, 1, 0}, p.b = weight;
                      p.c = rows.at(sums, begin, gates), p.c_row = wide;
                      p.addend = addend;
                      if (addend.data && addend.row)
                        p.addend.data = rows.at(addend.data, begin, gates);
                      return product(c, p);
                    });
}

// What a step's kernel needs of the states before, for tensors `output` and `first` of states.
StepArgs step_of(const Steps &steps, const Rows &rows, int64_t k, const void *output,
                 const void *first) {
  const int64_t t = steps.at(k), before = steps.before(t);
  StepArgs a{};
  a.rows = steps.sizes[t], a.width = rows.width, a.known = steps.known(t);
  a.first = first;
  if (before >= 0) a.before = rows.at(output, steps.start(before));
  a.last_from = k + 1 == steps.count ? 0 : steps.sizes[steps.at(k + 1)];
  return a;
}

plait_status launch_step(const plait_call *c, const DeviceKernel &kernel, Kind k,
                         const StepArgs &a) {
  return launch(c, kernel, k, a, blocks_for(c, a.rows * a.width, 256), 256);
}

// Operands in C order.
template <int count>
struct DenseOperands {
  DeviceWorkspace space[count];
  const void *data[count] = {};
  plait_status take(const plait_call *c, const int (&arguments)[count]) {
    for (int i = 0; i < count; i++)
      PLAIT_TRY(make_dense(c, tensor(c, arguments[i]), &space[i], &data[i]));
    return PLAIT_OK;
  }
};

bool is_wide(Kind k) { return k == F32 || k == F64; }

// lstm_forward(gates, hx, cx, weight, sizes, reverse) -> output, h, c, cells, activated
plait_status lstm_forward(plait_call *c) {
  const Kind k = kind(result(c)->dtype);
  if (!is_wide(k)) return PLAIT_DECLINE;
  const Rows rows{k, tensor(c, 1)->shape[1]};
  const Steps steps(c->in[4], integer(c, 5) != 0);
  const DLTensor *w = tensor(c, 3);
  DenseOperands<3> in;
  DeviceWorkspace space;
  PLAIT_TRY(in.take(c, {0, 1, 2}));
  PLAIT_TRY(space.take(c, steps.batch() * 4 * rows.width * size_of(k)));
  const MatrixOperand weight{w->data, w->strides[1], w->strides[0], 0};
  for (int64_t i = 0; i < steps.count; i++) {
    const int64_t t = steps.at(i), start = steps.start(t);
    const MatrixOperand gates{rows.at(in.data[0], start, 4), 4 * rows.width, 1, 0};
    PLAIT_TRY(multiply_states(c, steps, rows, t, result(c)->data, in.data[1], weight, 4, gates,
                              space.data()));
    StepArgs a = step_of(steps, rows, i, result(c, 3)->data, in.data[2]);
    a.sums = space.data();
    a.output = rows.at(result(c)->data, start);
    a.cells = rows.at(result(c, 3)->data, start);
    a.activated = rows.at(result(c, 4)->data, start, 4);
    a.last_h = result(c, 1)->data, a.last_c = result(c, 2)->data;
    PLAIT_TRY(launch_step(c, lstm_cell_kernel, k, a));
  }
  return PLAIT_OK;
}

// The gradient of the weight: the gradients of the products of all rows times their states before.
plait_status weight_gradient(const plait_call *c, const Steps &steps, const Rows &rows,
                             const void *by_gates, int64_t gates, const void *output,
                             const void *first, DLTensor *to) {
  const int64_t bytes = rows.width * size_of(rows.k);
  DeviceWorkspace states;
  PLAIT_TRY(states.take(c, steps.rows * bytes));
  for (int64_t t = 0; t < steps.count; t++)
    PLAIT_TRY(each_state(
        steps, rows, t, output, first, [&](int64_t begin, int64_t count, const void *from) {
          return copy_bytes(c, rows.at(states.data(), steps.start(t) + begin), from, count * bytes);
        }));
  MatrixProduct p{rows.k, 1, gates * rows.width, rows.width, steps.rows};
  p.a = {by_gates, 1, gates * rows.width, 0}, p.b = {states.data(), rows.width, 1, 0};
  p.c = to->data, p.c_row = rows.width;
  return product(c, p);
}

// The gradient of the states before the rows of step t: their gates' times the weight, added to
// what bypasses the gates if `add`.
plait_status multiply_gradients(const plait_call *c, const Rows &rows, int64_t count,
                                const void *by_gates, int64_t gates, const DLTensor *w, bool add,
                                void *by_h) {
  MatrixProduct p{rows.k, 1, count, rows.width, gates * rows.width};
  p.a = {by_gates, gates * rows.width, 1, 0}, p.b = {w->data, w->strides[0], w->strides[1], 0};
  p.c = by_h, p.c_row = rows.width;
  if (add) p.addend = {by_h, rows.width, 1, 0};
  return product(c, p);
}

// lstm_backward(grad, grad_h, grad_c, gates, hx, cx, weight, output, cells, activated, sizes,
// reverse) -> by gates, hx, cx, weight
plait_status lstm_backward(plait_call *c) {
  const Kind k = kind(result(c)->dtype);
  if (!is_wide(k)) return PLAIT_DECLINE;
  const Rows rows{k, tensor(c, 4)->shape[1]};
  const Steps steps(c->in[10], integer(c, 11) != 0);
  const DLTensor *w = tensor(c, 6);
  DenseOperands<8> in;
  PLAIT_TRY(in.take(c, {0, 1, 2, 4, 5, 7, 8, 9}));
  const void *grad = in.data[0], *hx = in.data[3], *cx = in.data[4], *output = in.data[5];
  void *cells = const_cast<void *>(in.data[6]), *activated = const_cast<void *>(in.data[7]);
  void *by_h = result(c, 1)->data, *by_c = result(c, 2)->data;
  const int64_t bytes = steps.batch() * rows.width * size_of(k);
  PLAIT_TRY(copy_bytes(c, by_h, in.data[1], bytes));
  PLAIT_TRY(copy_bytes(c, by_c, in.data[2], bytes));
  for (int64_t i = steps.count - 1; i >= 0; i--) {
    const int64_t t = steps.at(i), start = steps.start(t);
    StepArgs a = step_of(steps, rows, i, cells, cx);
    a.grad = rows.at(grad, start), a.cells = rows.at(cells, start);
    a.activated = rows.at(activated, start, 4);
    a.by_gates = rows.at(result(c)->data, start, 4), a.by_h = by_h, a.by_c = by_c;
    PLAIT_TRY(launch_step(c, lstm_cell_backward_kernel, k, a));
    PLAIT_TRY(multiply_gradients(c, rows, a.rows, a.by_gates, 4, w, false, by_h));
  }
  return weight_gradient(c, steps, rows, result(c)->data, 4, output, hx, result(c, 3));
}

// gru_forward(gates, hx, weight, bias, sizes, reverse) -> output, h, activated
plait_status gru_forward(plait_call *c) {
  const Kind k = kind(result(c)->dtype);
  if (!is_wide(k)) return PLAIT_DECLINE;
  const Rows rows{k, tensor(c, 1)->shape[1]};
  const Steps steps(c->in[4], integer(c, 5) != 0);
  const DLTensor *w = tensor(c, 2), *b = tensor(c, 3);
  DenseOperands<2> in;
  DeviceWorkspace space;
  PLAIT_TRY(in.take(c, {0, 1}));
  PLAIT_TRY(space.take(c, steps.batch() * 3 * rows.width * size_of(k)));
  const MatrixOperand weight{w->data, w->strides[1], w->strides[0], 0};
  MatrixOperand bias{};
  if (b) bias = {b->data, 0, b->strides[0], 0};
  for (int64_t i = 0; i < steps.count; i++) {
    const int64_t t = steps.at(i), start = steps.start(t);
    PLAIT_TRY(multiply_states(c, steps, rows, t, result(c)->data, in.data[1], weight, 3, bias,
                              space.data()));
    StepArgs a = step_of(steps, rows, i, result(c)->data, in.data[1]);
    a.sums = space.data(), a.gates = rows.at(in.data[0], start, 3);
    a.output = rows.at(result(c)->data, start);
    a.activated = rows.at(result(c, 2)->data, start, 4);
    a.last_h = result(c, 1)->data;
    PLAIT_TRY(launch_step(c, gru_cell_kernel, k, a));
  }
  return PLAIT_OK;
}

// gru_backward(grad, grad_h, gates, hx, weight, bias, output, activated, sizes, reverse) -> by
// gates, hx, weight, bias
plait_status gru_backward(plait_call *c) {
  const Kind k = kind(result(c)->dtype);
  if (!is_wide(k)) return PLAIT_DECLINE;
  const Rows rows{k, tensor(c, 3)->shape[1]};
  const Steps steps(c->in[8], integer(c, 9) != 0);
  const DLTensor *w = tensor(c, 4);
  DenseOperands<5> in;
  DeviceWorkspace by_state;
  PLAIT_TRY(in.take(c, {0, 1, 3, 6, 7}));
  PLAIT_TRY(by_state.take(c, steps.rows * 3 * rows.width * size_of(k)));
  void *by_h = result(c, 1)->data;
  PLAIT_TRY(copy_bytes(c, by_h, in.data[1], steps.batch() * rows.width * size_of(k)));
  for (int64_t i = steps.count - 1; i >= 0; i--) {
    const int64_t t = steps.at(i), start = steps.start(t);
    StepArgs a = step_of(steps, rows, i, in.data[3], in.data[2]);
    a.grad = rows.at(in.data[0], start);
    a.activated = const_cast<void *>(rows.at(in.data[4], start, 4));
    a.by_gates = rows.at(result(c)->data, start, 3), a.by_h = by_h;
    a.by_state = rows.at(by_state.data(), start, 3);
    PLAIT_TRY(launch_step(c, gru_cell_backward_kernel, k, a));
    PLAIT_TRY(multiply_gradients(c, rows, a.rows, a.by_state, 3, w, true, by_h));
  }
  StepArgs bias{};
  bias.rows = steps.rows, bias.width = 3 * rows.width;
  bias.sums = by_state.data(), bias.output = result(c, 3)->data;
  PLAIT_TRY(launch(c, gru_bias_kernel, k, bias, blocks_for(c, bias.width, 256), 256));
  return weight_gradient(c, steps, rows, by_state.data(), 3, in.data[3], in.data[2], result(c, 2));
}

PLAIT_KERNEL("lstm_forward", lstm_forward);
PLAIT_KERNEL("lstm_backward", lstm_backward);
PLAIT_KERNEL("gru_forward", gru_forward);
PLAIT_KERNEL("gru_backward", gru_backward);

}  // namespace
#endif

}  // namespace plait::cuda
