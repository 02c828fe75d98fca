#include "host/pointwise.h"

#include "host/copy.h"
#include "pointwise/operands.h"

namespace plait::cuda {
namespace {

// Numbers of float16 and bfloat16 stay float32, as on the CPU; in comparisons they are rounded, so
// that they can equal an element.
Number rounded(Number x, Kind k) {
  if (k == F16) x.real = double(widen(narrow<Half>(float(x.real))));
  if (k == BF16) x.real = double(widen(narrow<BFloat>(float(x.real))));
  return x;
}

// Adds operand i to the plan, or its value to the arguments.
template <int operands>
void add_operand(const plait_call *c, const PointwiseFacts &f, Kind k, int i, Plan *plan,
                 PointwiseArgs<operands> *a) {
  const plait_value &v = c->in[i];
  const bool on_host = v.tag == PLAIT_TENSOR && v.u.t->dl.device.device_type == kDLCPU;
  if (v.tag == PLAIT_TENSOR && !on_host) return plan->add(&v.u.t->dl, size_of(k));
  plait_value number = v;
  double parts[2];
  if (on_host) read_number(&v.u.t->dl, &number, parts);
  Number x = number_of(number);
  if (f.to == result_as::BOOL) x = rounded(x, k);
  a->is_number |= 1u << i;
  a->number[i][0] = x.real, a->number[i][1] = x.imaginary, a->integer[i] = x.integer;
  plan->add_constant(nullptr);
}

template <int operands>
plait_status launch_plan(const plait_call *c, const PointwiseFacts &f, Kind k, const Plan &plan,
                         const int *item, PointwiseArgs<operands> *a) {
  if (!make_walk(plan, &a->walk, item))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "operands of more than %d dimensions that cannot be merged have no kernel",
                      kWalkDims);
  for (int i = 0; i <= operands; i++) a->data[i] = plan.data[i];
  const int width = f.is_special ? 1 : pointwise_width(size_of(k));
  a->n = plan.numel;
  a->is_repeated = 0;
  a->vectors = vectors_of(plan, item, width, a->is_number, &a->is_repeated);
  const int64_t rest = a->n - a->vectors * width, work = a->vectors > rest ? a->vectors : rest;
  return launch(c, *f.kernel, k, *a, blocks_for(c, work, 256), 256);
}

// Kernels divide numbers of 32 bits, so a larger walk is cut along its outermost dimension.
template <int operands>
plait_status launch_pieces(const plait_call *c, const PointwiseFacts &f, Kind k, const Plan &plan,
                           const int *item, PointwiseArgs<operands> *a) {
  constexpr int64_t kMost = int64_t(1) << 31;
  if (plan.ndim == 1 || plan.numel < kMost) return launch_plan(c, f, k, plan, item, a);
  const int64_t row = plan.numel / plan.size[0], step = row < kMost ? (kMost - 1) / row : 1;
  for (int64_t first = 0; first < plan.size[0]; first += step) {
    Plan piece = plan;
    piece.size[0] = first + step < plan.size[0] ? step : plan.size[0] - first;
    piece.numel = row * piece.size[0];
    for (int i = 0; i <= operands; i++) piece.data[i] += first * plan.stride[i][0];
    piece.finish(false);  // without the outermost dimension if that has one row
    PLAIT_TRY(launch_pieces(c, f, k, piece, item, a));
  }
  return PLAIT_OK;
}

}  // namespace

int64_t vectors_of(const Plan &plan, const int *item, int width, uint32_t is_number,
                   uint32_t *is_repeated) {
  const int last = plan.ndim - 1;
  if (width == 1 || plan.numel < width) return 0;
  if (last > 0 && plan.size[last] % width != 0) return 0;
  for (int k = 0; k < plan.operands; k++) {
    if (k > 0 && (is_number >> (k - 1) & 1)) continue;
    if (k > 0 && plan.stride[k][last] == 0) {
      *is_repeated |= 1u << (k - 1);
      continue;
    }
    const int64_t bytes = int64_t(item[k]) * width;
    if (plan.stride[k][last] != item[k] || uintptr_t(plan.data[k]) % uintptr_t(bytes)) return 0;
    for (int d = 0; d < last; d++)
      if (plan.stride[k][d] % bytes) return 0;
  }
  return plan.numel / width;
}

template <int operands>
plait_status run_pointwise(plait_call *c, const PointwiseFacts &f) {
  const Kind k = operand_kind(c, operands, f.to == result_as::BOOL);
  const DLTensor *out = result(c);
  PointwiseArgs<operands> a{};
  a.n = numel(out);
  if (!a.n) return PLAIT_OK;
  int item[operands + 1];
  item[0] = size_of(kind(out->dtype));
  Plan plan;
  plan.add(out, item[0]);
  for (int i = 0; i < operands; i++) {
    item[i + 1] = size_of(k);
    add_operand(c, f, k, i, &plan, &a);
  }
  for (int j = 0; j < f.n_params; j++) {
    const Number x = number_of(c->in[operands + j]);
    a.param[j] = x.real, a.imaginary[j] = x.imaginary, a.integer_param[j] = x.integer;
  }
  plan.finish();
  if (f.bounded >= 0) a.fault = fault_of(c, f.bounded), a.low = f.low, a.high = f.high;
  return launch_pieces(c, f, k, plan, item, &a);
}

template plait_status run_pointwise<1>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<2>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<3>(plait_call *, const PointwiseFacts &);
template plait_status run_pointwise<4>(plait_call *, const PointwiseFacts &);

}  // namespace plait::cuda
