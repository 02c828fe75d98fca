#include <algorithm>

#include <plait/plait.hpp>

#include "cursor.hpp"
#include "steps.hpp"

namespace plait::optim {
namespace {

bool is_step_dtype(DType d) { return same(d, dtype::float32) || same(d, dtype::float64); }

// Dense, in the order of dimensions of the parameter, so that a step on a channels-last weight is
// one flat loop.
plait_status like_shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    const plait_tensor *p = call->in[0].u.t;
    if (call->in[1].u.f != 0 && !is_step_dtype(p->dl.dtype))
      return call->thread->runtime->fail(
          call, PLAIT_DTYPE_ERROR,
          "`param` must be float32 or float64 where `fill` isn't 0; got %s", name(p->dl.dtype));
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
    return call->thread->runtime->result_strided(call, 0, p->dl.dtype, n, p->dl.shape,
                                                 strides.data());
  });
}

plait_status like_kernel(plait_call *call) {
  const plait_tensor *t = call->out[0].u.t;
  const double fill = call->in[1].u.f;
  if (fill == 0)
    std::memset(t->dl.data, 0, size_t(numel(t) * itemsize(t->dl.dtype)));
  else if (t->dl.dtype.bits == 64)
    std::fill_n(static_cast<double *>(t->dl.data), numel(t), fill);
  else
    std::fill_n(static_cast<float *>(t->dl.data), numel(t), float(fill));
  return PLAIT_OK;
}

plait_status load_shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    const auto fail = call->thread->runtime->fail;
    const plait_tensor *to = call->in[0].u.t, *from = call->in[1].u.t;
    if (!is_step_dtype(to->dl.dtype) || !is_step_dtype(from->dl.dtype))
      return fail(call, PLAIT_DTYPE_ERROR,
                  "`state` and `value` must be float32 or float64; got %s and %s",
                  name(to->dl.dtype), name(from->dl.dtype));
    if (shape_text(to) != shape_text(from))
      return fail(call, PLAIT_SHAPE_ERROR, "`value` must have the shape of `state`, %s; got %s",
                  shape_text(to).c_str(), shape_text(from).c_str());
    return PLAIT_OK;
  });
}

template <class To, class From>
void copy(const plait_tensor *to, const plait_tensor *from) {
  const int64_t n = numel(to);
  if (n == 0) return;
  Cursor target(to, 0), source(from, 0);
  for (int64_t i = 0; i < n; i++, target.next(), source.next())
    *reinterpret_cast<To *>(target.at()) = To(*reinterpret_cast<const From *>(source.at()));
}

plait_status load_kernel(plait_call *call) {
  const plait_tensor *to = call->in[0].u.t, *from = call->in[1].u.t;
  const bool wide_to = to->dl.dtype.bits == 64, wide_from = from->dl.dtype.bits == 64;
  if (wide_to)
    (wide_from ? copy<double, double> : copy<double, float>)(to, from);
  else
    (wide_from ? copy<float, double> : copy<float, float>)(to, from);
  return PLAIT_OK;
}

}  // namespace

const Step state_like = {
    {PLAIT_HEADER(plait_op_def), "optimizer_state(Tensor param, float fill=0) -> Tensor",
     "Copies of `fill` with the shape, dtype, device and order of dimensions "
     "of `param`: what a step keeps between calls.",
     0, 0, like_shape, nullptr, nullptr, nullptr, nullptr},
    like_kernel};

const Step state_load = {
    {PLAIT_HEADER(plait_op_def), "optimizer_state_load(Tensor! state, Tensor value) -> ()",
     "Copies `value` of a saved state into `state`, cast to its dtype.", 0, 0, load_shape, nullptr,
     nullptr, nullptr, nullptr},
    load_kernel};

}  // namespace plait::optim
