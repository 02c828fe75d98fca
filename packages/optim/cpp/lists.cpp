#include "lists.hpp"

#include <cstring>

#include "blocks.hpp"

namespace plait::optim {
namespace {

bool same_shape(const plait_tensor *a, const plait_tensor *b) {
  return a->dl.ndim == b->dl.ndim &&
         std::memcmp(a->dl.shape, b->dl.shape, sizeof(int64_t) * a->dl.ndim) == 0;
}

plait_status check_param(const plait_call *call, uint32_t i, const plait_tensor *p) {
  if (is_real_floating(p->dl.dtype)) return PLAIT_OK;
  return call->thread->runtime->fail(
      call, PLAIT_DTYPE_ERROR, "`%s[%u]` must be %s; got %s of shape %s",
      plait_arg_at(call->op, 0)->name, i, floating_names, name(p->dl.dtype), shape_text(p).c_str());
}

plait_status check_partner(const plait_call *call, const char *list, uint32_t i,
                           const plait_tensor *p, const plait_tensor *t) {
  const auto fail = call->thread->runtime->fail;
  const char *first = plait_arg_at(call->op, 0)->name;
  if (!same_shape(p, t))
    return fail(call, PLAIT_SHAPE_ERROR, "`%s[%u]` must have the shape of `%s[%u]`, %s; got %s",
                list, i, first, i, shape_text(p).c_str(), shape_text(t).c_str());
  if (!same(p->dl.dtype, t->dl.dtype))
    return fail(call, PLAIT_DTYPE_ERROR,
                "`%s[%u]` must have the dtype of `%s[%u]`, %s; got %s (shape %s)", list, i, first,
                i, name(p->dl.dtype), name(t->dl.dtype), shape_text(t).c_str());
  return PLAIT_OK;
}

}  // namespace

Lists::Lists(const plait_call *call, uint32_t n) : n_lists(n), length(call->in[0].n) {
  for (uint32_t k = 0; k < n; k++) {
    items[k] = call->in[k].u.ts;
    present[k] = call->in[k].n > 0;
  }
}

plait_status check_lists(const plait_call *call, const Lists &lists, uint32_t optional) {
  const auto name = [call](uint32_t k) { return plait_arg_at(call->op, k)->name; };
  for (uint32_t k = 1; k < lists.n_lists; k++) {
    const uint32_t n = call->in[k].n;
    if (n == lists.length || (n == 0 && (optional >> k & 1))) continue;
    return call->thread->runtime->fail(call, PLAIT_VALUE_ERROR,
                                       "`%s` must hold one tensor for each of `%s`, %u; got %u",
                                       name(k), name(0), lists.length, n);
  }
  for (uint32_t i = 0; i < lists.length; i++) {
    const plait_tensor *p = lists.at(0, i);
    plait_status status = check_param(call, i, p);
    for (uint32_t k = 1; k < lists.n_lists && status == PLAIT_OK; k++)
      if (lists.has(k)) status = check_partner(call, name(k), i, p, lists.at(k, i));
    if (status != PLAIT_OK) return status;
  }
  return PLAIT_OK;
}

plait_status check_steps(const plait_call *call, const plait_value &steps, uint32_t n_params) {
  const auto fail = call->thread->runtime->fail;
  if (steps.n != 1 && steps.n != n_params)
    return fail(call, PLAIT_VALUE_ERROR,
                "`steps` must hold one number, or one for each of `params`, %u; got %u", n_params,
                steps.n);
  for (uint32_t i = 0; i < steps.n; i++)
    if (steps.u.is[i] < 1)
      return fail(call, PLAIT_VALUE_ERROR, "`steps[%u]` must be at least 1; got %lld", i,
                  (long long)steps.u.is[i]);
  return PLAIT_OK;
}

plait_status check_counts(const plait_call *call, const plait_tensor *counts,
                          const plait_value &steps) {
  const auto fail = call->thread->runtime->fail;
  if (steps.n != 0)
    return fail(call, PLAIT_VALUE_ERROR, "`steps` must be empty where `counts` is given; got %u",
                steps.n);
  if (!same(counts->dl.dtype, dtype::float64))
    return fail(call, PLAIT_DTYPE_ERROR, "`counts` must be float64; got %s",
                name(counts->dl.dtype));
  if (counts->dl.ndim != 1 || counts->dl.shape[0] != int64_t(call->in[0].n))
    return fail(call, PLAIT_SHAPE_ERROR,
                "`counts` must hold one number for each of `params`, (%u,); got %s", call->in[0].n,
                shape_text(counts).c_str());
  return PLAIT_OK;
}

}  // namespace plait::optim
