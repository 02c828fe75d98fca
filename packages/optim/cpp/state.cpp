#include <algorithm>

#include <plait/plait.hpp>

#include "blocks.hpp"
#include "operations.hpp"
#include "steps.hpp"

namespace plait::optim {
namespace {

// Dense, in the order of dimensions of the parameter, so that a step on a channels-last weight is
// one flat loop.
Dims strides_like(const plait_tensor *p) {
  const int n = p->dl.ndim;
  int order[PLAIT_MAX_DIMS];
  for (int i = 0; i < n; i++) order[i] = i;
  std::stable_sort(order, order + n, [&](int a, int b) {
    return std::llabs(p->dl.strides[a]) > std::llabs(p->dl.strides[b]);
  });
  Dims strides(n, 0);
  int64_t next = 1;
  for (int k = n - 1; k >= 0; k--) {
    strides[order[k]] = next;
    next *= std::max<int64_t>(p->dl.shape[order[k]], 1);
  }
  return strides;
}

plait_status check_fill(const plait_call *call) {
  const plait_tensor *p = call->in[0].u.t;
  if (call->in[1].u.f == 0 || is_real_floating(p->dl.dtype)) return PLAIT_OK;
  return call->thread->runtime->fail(call, PLAIT_DTYPE_ERROR,
                                     "`param` must be %s where `fill` isn't 0; got %s",
                                     floating_names, name(p->dl.dtype));
}

plait_status like_shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    if (const plait_status status = check_fill(call); status != PLAIT_OK) return status;
    const plait_tensor *p = call->in[0].u.t;
    return call->thread->runtime->result_strided(call, 0, p->dl.dtype, p->dl.ndim, p->dl.shape,
                                                 strides_like(p).data());
  });
}

plait_status like_decomposed(plait_call *call) {
  plait_thread *thread = call->thread;
  return border(thread, call->op->name, [&]() -> plait_status {
    static const Operator fill(thread->runtime, "fill_");
    if (const plait_status status = check_fill(call); status != PLAIT_OK) return status;
    const DLTensor &p = call->in[0].u.t->dl;
    Tensor result;
    check(thread->runtime->tensor_new(thread, p.dtype, p.ndim, p.shape,
                                      strides_like(call->in[0].u.t).data(), p.device,
                                      result.out()));
    fill(thread, result, call->in[1]);
    call->out[0] = value(result.release());
    return PLAIT_OK;
  });
}

template <class T>
void fill_block(void *block, double value) {
  std::fill_n(static_cast<T *>(block), block_elements, T(value));
}

plait_status like_kernel(plait_call *call) {
  const plait_tensor *t = call->out[0].u.t;
  const int64_t n = numel(t);
  const double value = call->in[1].u.f;
  if (value == 0) {
    std::memset(t->dl.data, 0, size_t(n * itemsize(t->dl.dtype)));
    return PLAIT_OK;
  }
  Block block;
  (is_wide(t->dl.dtype) ? fill_block<double> : fill_block<float>)(block, value);
  for (int64_t start = 0; start < n; start += block_elements)
    scatter(t, true, start, std::min(block_elements, n - start), block);
  return PLAIT_OK;
}

plait_status load_shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    const auto fail = call->thread->runtime->fail;
    const plait_tensor *to = call->in[0].u.t, *from = call->in[1].u.t;
    if (!is_real_floating(to->dl.dtype) || !is_real_floating(from->dl.dtype))
      return fail(call, PLAIT_DTYPE_ERROR, "`state` and `value` must be %s; got %s and %s",
                  floating_names, name(to->dl.dtype), name(from->dl.dtype));
    if (shape_text(to) != shape_text(from))
      return fail(call, PLAIT_SHAPE_ERROR, "`value` must have the shape of `state`, %s; got %s",
                  shape_text(to).c_str(), shape_text(from).c_str());
    return PLAIT_OK;
  });
}

template <class To, class From>
void cast(void *block, int64_t n) {
  const From *from = static_cast<const From *>(block);
  To to[block_elements];
  std::copy_n(from, n, to);
  std::memcpy(block, to, size_t(n) * sizeof(To));
}

plait_status load_kernel(plait_call *call) {
  const plait_tensor *to = call->in[0].u.t, *from = call->in[1].u.t;
  const bool wide = is_wide(to->dl.dtype), same_width = wide == is_wide(from->dl.dtype);
  const bool to_flat = is_contiguous(to), from_flat = is_contiguous(from);
  const int64_t total = numel(to);
  Block block;
  for (int64_t start = 0; start < total; start += block_elements) {
    const int64_t n = std::min(block_elements, total - start);
    gather(from, from_flat, start, n, block);
    if (!same_width) (wide ? cast<double, float> : cast<float, double>)(block, n);
    scatter(to, to_flat, start, n, block);
  }
  return PLAIT_OK;
}

plait_status load_decomposed(plait_call *call) {
  if (const plait_status s = load_shape(call); s < 0) return s;
  return border(call->thread, call->op->name, [&]() -> plait_status {
    static const Operator copy(call->thread->runtime, "copy_");
    copy(call->thread, call->in[0], call->in[1]);
    return PLAIT_OK;
  });
}

void like_cost(const plait_call *, plait_cost *out) { out->read = 0; }

void load_cost(const plait_call *call, plait_cost *out) {
  out->read = bytes_of(call->in[1].u.t);
  out->written = bytes_of(call->in[0].u.t);
}

}  // namespace

const Step state_like = {
    {PLAIT_HEADER(plait_op_def), "optimizer_state(Tensor param, float fill=0) -> Tensor",
     "Copies of `fill` with the shape, dtype, device and order of dimensions "
     "of `param`: what a step keeps between calls.",
     0, like_shape, nullptr, nullptr, nullptr, like_decomposed, nullptr, like_cost, nullptr, "ee."},
    like_kernel};

const Step state_load = {
    {PLAIT_HEADER(plait_op_def), "optimizer_state_load(Tensor! state, Tensor value) -> ()",
     "Copies `value` of a saved state into `state`, cast to its dtype.", 0, load_shape, nullptr,
     nullptr, nullptr, load_decomposed, nullptr, load_cost, nullptr, "eee"},
    load_kernel};

}  // namespace plait::optim
