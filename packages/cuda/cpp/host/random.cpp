#include "host/random.h"

namespace plait::cuda {

plait_status reserve_blocks(const plait_call *c, int64_t blocks, RandomStream *out) {
  plait_generator *generator = nullptr;
  for (int i = 0; i < c->n_in; i++)
    if (plait_arg_at(c->op, uint64_t(i))->kind == PLAIT_KIND_GENERATOR &&
        c->in[i].tag == PLAIT_OBJECT)
      generator = reinterpret_cast<plait_generator *>(c->in[i].u.o);
  const auto *rng = PLAIT_ROLE(plait_rng, roles.rng);
  if (rng->fill)
    return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                      "the random numbers of %s are not computed on this device", rng->name);
  out->base = nullptr;
  rng->reserve(rng->ctx, generator, uint64_t(blocks), &out->seed, &out->offset);
  return PLAIT_OK;
}

}  // namespace plait::cuda
