// What a call costs by the definition of its operator: bytes and floating-point operations.
#include <algorithm>
#include <cstring>

#include "frame.hpp"
#include "runtime.hpp"

namespace plait::abi {
namespace {

// Elements in memory: those that an expanded dimension repeats count once.
uint64_t elements(const plait_tensor *t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; i++)
    if (t->dl.strides[i] || t->dl.shape[i] == 0) n *= uint64_t(t->dl.shape[i]);
  return n;
}

uint64_t bytes(const plait_tensor *t) {
  const uint64_t bits = uint64_t(t->dl.dtype.bits) * t->dl.dtype.lanes;
  return elements(t) * ((bits + 7) / 8);
}

}  // namespace

void cost(const plait_call *c, plait_cost *out) {
  plait_cost all{};
  all.size = out->size;
  if (!(c->op->flags & PLAIT_OP_VIEW)) {
    each_tensor(c->in, c->n_in,
                [&](const plait_tensor *t, const plait_value *) { all.read += bytes(t); });
    each_tensor(c->out, c->n_out, [&](const plait_tensor *t, const plait_value *) {
      all.written += bytes(t);
      if (c->op->flags & PLAIT_OP_POINTWISE) all.operations += elements(t);
    });
  }
  if (c->op->def->cost) c->op->def->cost(c, &all);
  std::memcpy(out, &all, std::min<size_t>(out->size, sizeof all));
}

}  // namespace plait::abi
