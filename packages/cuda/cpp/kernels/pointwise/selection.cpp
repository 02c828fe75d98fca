// where and masked_fill. Elements are only moved, so one instance for each size serves all dtypes.
#include "block/block.h"
#include "host/walk.h"
#include "pointwise/pointwise.h"

namespace plait::cuda {
namespace {

// to = condition ? yes : no
struct SelectArgs {
  int64_t n, vectors;  // as those of pointwise kernels
  void *to;
  const void *condition, *from[2];
  uint32_t is_number, is_repeated;  // bits of condition, yes, no
  bool flag;                        // the condition, where it is a number
  alignas(16) char number[2][16];
  Walk<4> walk;  // strides in elements
};

#if PLAIT_KERNELS
// Operand k for a whole vector.
template <int kWidth, class E>
PLAIT_DEVICE Vector<E, kWidth> select_operand(const SelectArgs &a, int k, const Global<const E> &in,
                                              E number, int64_t at) {
  if (!((a.is_number | a.is_repeated) >> k & 1)) return in.template load_vector<kWidth>(at);
  const E element = (a.is_number >> k & 1) ? number : in.load(at);
  Vector<E, kWidth> v;
#pragma unroll
  for (int j = 0; j < kWidth; j++) v.at[j] = element;
  return v;
}

template <class E>
PLAIT_DEVICE void select_elements(Thread &t, const SelectArgs &a) {
  constexpr int kWidth = pointwise_width(sizeof(E));
  const auto to = t.global<E>(a.to);
  const auto condition = t.global<const uint8_t>(a.condition);
  const auto yes = t.global<const E>(a.from[0]), no = t.global<const E>(a.from[1]);
  E number[2];
  memcpy(&number[0], a.number[0], sizeof(E));
  memcpy(&number[1], a.number[1], sizeof(E));
  int64_t at[4];
  if constexpr (kWidth > 1) {
    for (int64_t i = t.index(); i < a.vectors; i += t.stride()) {
      a.walk.seek_small(i * kWidth, at);
      const auto c = select_operand<kWidth>(a, 0, condition, uint8_t(a.flag), at[1]);
      const auto p = select_operand<kWidth>(a, 1, yes, number[0], at[2]);
      const auto q = select_operand<kWidth>(a, 2, no, number[1], at[3]);
      Vector<E, kWidth> y;
#pragma unroll
      for (int j = 0; j < kWidth; j++) y.at[j] = c.at[j] ? p.at[j] : q.at[j];
      to.template store_vector<kWidth>(at[0], y);
    }
  }
  for (int64_t i = a.vectors * kWidth + t.index(); i < a.n; i += t.stride()) {
    a.walk.seek_small(i, at);
    const bool c = (a.is_number & 1) ? a.flag : condition.load(at[1]) != 0;
    const int k = c ? 1 : 2;
    to.store(at[0], (a.is_number >> k & 1) ? number[k - 1] : c ? yes.load(at[2]) : no.load(at[3]));
  }
}
#endif

PLAIT_DEVICE_KERNEL(select_elements, SelectArgs, 256, SIZES);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
#include "host/pointwise.h"

namespace plait::cuda {
namespace {

// Adds a tensor of the device to the plan; false: it is a number or a 0-d tensor of the CPU.
bool add_tensor(Plan *plan, const plait_value &v, int item) {
  if (v.tag != PLAIT_TENSOR || v.u.t->dl.device.device_type == kDLCPU) {
    plan->add_constant(nullptr);
    return false;
  }
  plan->add(&v.u.t->dl, item);
  return true;
}

plait_status launch_select(const plait_call *c, const Plan &plan, const int *item, SelectArgs *a) {
  if (plan.ndim > 1 && plan.numel >= int64_t(1) << 31) {
    for (int64_t i = 0; i < plan.size[0]; i++) {  // kernels divide numbers of 32 bits
      Plan row = plan;
      row.size[0] = 1, row.numel = plan.numel / plan.size[0];
      for (int k = 0; k < 4; k++) row.data[k] += i * plan.stride[k][0];
      row.finish(false);
      PLAIT_TRY(launch_select(c, row, item, a));
    }
    return PLAIT_OK;
  }
  if (!make_walk(plan, &a->walk, item))
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "operands of more than %d dimensions that cannot be merged have no kernel",
                      kWalkDims);
  const int width = pointwise_width(item[0]);
  a->n = plan.numel;
  a->to = plan.data[0], a->condition = plan.data[1];
  a->from[0] = plan.data[2], a->from[1] = plan.data[3];
  a->is_repeated = 0;
  a->vectors = vectors_of(plan, item, width, a->is_number, &a->is_repeated);
  const int64_t rest = a->n - a->vectors * width, work = a->vectors > rest ? a->vectors : rest;
  return launch(c, select_elements_kernel, instance_of_size(item[0]), *a, blocks_for(c, work, 256),
                256);
}

// yes and no are tensors of the result's dtype, or numbers
plait_status select(const plait_call *c, const plait_value &condition, const plait_value &yes,
                    const plait_value &no) {
  const DLTensor *out = result(c);
  const Kind k = kind(out->dtype);
  if (k == Unknown || kind(condition.u.t->dl.dtype) != Bool) return PLAIT_DECLINE;
  if (numel(out) == 0) return PLAIT_OK;
  SelectArgs a{};
  const int item[4] = {size_of(k), 1, size_of(k), size_of(k)};
  Plan plan;
  plan.add(out, item[0]);
  if (!add_tensor(&plan, condition, 1))
    a.is_number |= 1, a.flag = *data<uint8_t>(&condition.u.t->dl) != 0;
  const plait_value *operand[2] = {&yes, &no};
  for (int i = 0; i < 2; i++) {
    const plait_value &v = *operand[i];
    if (v.tag == PLAIT_TENSOR && kind(v.u.t->dl.dtype) != k) return PLAIT_DECLINE;
    if (add_tensor(&plan, v, item[0])) continue;
    a.is_number |= 2u << i;
    if (v.tag == PLAIT_TENSOR) {
      memcpy(a.number[i], v.u.t->dl.data, size_t(item[0]));
    } else {
      store_number(k, v, a.number[i]);
    }
  }
  plan.finish();
  return launch_select(c, plan, item, &a);
}

plait_status where(plait_call *c) { return select(c, c->in[0], c->in[1], c->in[2]); }
plait_status masked_fill(plait_call *c) { return select(c, c->in[1], c->in[2], c->in[0]); }

PLAIT_KERNEL("where", where);
PLAIT_KERNEL("masked_fill", masked_fill);

}  // namespace
}  // namespace plait::cuda
#endif
