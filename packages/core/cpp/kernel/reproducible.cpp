#include "kernel/reproducible.h"

#include "kernel/settings.h"

namespace plait::core {
namespace {

// Whether `matches` holds for the kind of a tensor among the arguments and results.
template <class F>
bool any_kind(const plait_call *c, F matches) {
  auto one = [&](const plait_tensor *t) { return t && matches(kind(t->dl.dtype)); };
  auto any = [&](const plait_value &v) {
    if (v.tag == PLAIT_TENSOR) return one(v.u.t);
    for (uint32_t i = 0; v.tag == PLAIT_TENSORS && i < v.n; i++)
      if (one(v.u.ts[i])) return true;
    return false;
  };
  for (int i = 0; i < c->n_in; i++)
    if (any(c->in[i])) return true;
  for (int i = 0; i < c->n_out; i++)
    if (any(c->out[i])) return true;
  return false;
}

plait_status refuse(plait_call *c) {
  if (!reproducible()) return PLAIT_DECLINE;
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "there is no way to compute it with the same bits on every processor, which "
                    "set_reproducible(True) asks for");
}

plait_status refuse_kind(const plait_call *c, const char *numbers) {
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "there is no way to compute it for %s with the same bits on every processor, "
                    "which set_reproducible(True) asks for; for float32 there is one",
                    numbers);
}
plait_status refuse_wide(plait_call *c) {
  if (!reproducible()) return PLAIT_DECLINE;
  const bool wide = any_kind(c, [](Kind k) { return k == F64 || is_complex_kind(k); });
  return wide ? refuse_kind(c, "float64 and complex numbers") : PLAIT_DECLINE;
}
plait_status refuse_complex(plait_call *c) {
  if (!reproducible() || !any_kind(c, is_complex_kind)) return PLAIT_DECLINE;
  return refuse_kind(c, "complex numbers");
}

plait_kernel refusal(Library library) {
  switch (library) {
    case Library::libm_wide: return refuse_wide;
    case Library::libm_complex: return refuse_complex;
    default: return refuse;
  }
}

}  // namespace

plait_status register_refusals(const plait_runtime *runtime, const plait_plugin *self) {
  for (size_t i = 0; i < n_library_calls; i++) {
    const plait_op *op = runtime->op(library_calls[i].op);
    uint64_t undo = 0;
    if (op)  // the operator set may be another version without this operator
      PLAIT_TRY(runtime->implement(runtime->thread(), op, kDLCPU, refusal(library_calls[i].library),
                                   nullptr, self, &undo));
  }
  return PLAIT_OK;
}

}  // namespace plait::core
