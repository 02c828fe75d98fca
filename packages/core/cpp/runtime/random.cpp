// Role "rng": positions in one counter-based stream for each generator (Philox4x32-10; Salmon et
// al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). Kernels compute the numbers; here
// positions are reserved, so the numbers of an operator depend on the seed and on the calls before
// it, never on threads.
#include <sys/random.h>
#include <time.h>

#include <atomic>

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

// Each accelerator has a stream of its own, so that the numbers of the CPU do not depend on what
// runs on devices. It begins with the seed of the CPU's.
constexpr int32_t kMostDevices = 64;  // further ones draw from the CPU's
std::atomic<plait_generator *> of_devices[PLAIT_MAX_DEVICE_TYPES][kMostDevices];
const plait_runtime *runtime_;

plait_generator *device_generator(void *, DLDevice d) {
  if (uint32_t(d.device_type) >= PLAIT_MAX_DEVICE_TYPES || d.device_type == kDLCPU ||
      uint32_t(d.device_id) >= uint32_t(kMostDevices))
    return default_;
  std::atomic<plait_generator *> &at = of_devices[d.device_type][d.device_id];
  if (plait_generator *g = at.load(std::memory_order_acquire)) return g;
  plait_generator *fresh =
      runtime_->generator_new(__atomic_load_n(&default_->seed, __ATOMIC_ACQUIRE));
  if (!fresh) return default_;
  fresh->device = d;
  plait_generator *other = nullptr;
  if (at.compare_exchange_strong(other, fresh)) return fresh;
  plait_release(fresh);
  return other;
}

const plait_rng kTable = [] {
  plait_rng t{};
  t.h = PLAIT_HEADER(plait_rng);
  t.name = "plait_core.philox";
  t.reserve = reserve;
  t.default_generator = default_generator;
  t.device_generator = device_generator;
  return t;
}();

}  // namespace

const plait_rng *random_stream(const plait_runtime *runtime) {
  runtime_ = runtime;
  if (!default_) default_ = runtime->generator_new(fresh_seed());
  return &kTable;
}

}  // namespace plait::core
