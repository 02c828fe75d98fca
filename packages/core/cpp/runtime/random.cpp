// Role "rng": positions in one counter-based stream for each generator (Philox4x32-10; Salmon et
// al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). Kernels compute the numbers; here
// positions are reserved, so the numbers of an operator depend on the seed and on the calls before
// it, never on threads.
#include <sys/random.h>
#include <time.h>

#include "core.hpp"

namespace plait::core {
namespace {

plait_generator *default_;

uint64_t fresh_seed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
    seed = uint64_t(time(nullptr)) * 0x9e3779b97f4a7c15u;
  return seed >> 11;  // fits a double, so that seeds stay exact as JSON numbers and Python floats
}

void reserve(void *, plait_generator *generator, uint64_t blocks, uint64_t *seed,
             uint64_t *offset) {
  plait_generator *g = generator ? generator : default_;
  *seed = __atomic_load_n(&g->seed, __ATOMIC_ACQUIRE);
  *offset = __atomic_fetch_add(&g->offset, blocks, __ATOMIC_RELAXED);
}

plait_generator *default_generator(void *) { return default_; }

const plait_rng kTable = [] {
  plait_rng t{};
  t.h = PLAIT_HEADER(plait_rng);
  t.name = "plait_core.philox";
  t.reserve = reserve;
  t.default_generator = default_generator;
  return t;
}();

}  // namespace

const plait_rng *random_stream(const plait_runtime *runtime) {
  if (!default_) default_ = runtime->generator_new(fresh_seed());
  return &kTable;
}

}  // namespace plait::core
