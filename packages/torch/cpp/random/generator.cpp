#include "random/generator.hpp"

#include <cstring>

namespace plait::pytorch {

const plait_runtime *runtime;

namespace {

constexpr uint64_t first_seed = 67280421310721;  // PyTorch's, where a program sets none

const plait_type twister_type{PLAIT_HEADER(plait_type), "generator state",
                              [](plait_object *o) { delete reinterpret_cast<Twister *>(o); }};

plait_generator *default_;
const plait_rng *before;  // which knows the generators of devices

Twister *twister(plait_generator *g) {
  auto *known = reinterpret_cast<Twister *>(__atomic_load_n(&g->state, __ATOMIC_ACQUIRE));
  if (known) return known;
  auto *fresh = new Twister(__atomic_load_n(&g->seed, __ATOMIC_ACQUIRE));
  plait_object *other = nullptr;
  if (__atomic_compare_exchange_n(&g->state, &other, &fresh->o, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return fresh;
  delete fresh;
  return reinterpret_cast<Twister *>(other);
}

bool is_of_cpu(const plait_generator *g) { return g->device.device_type == kDLCPU; }

void reserve(void *, plait_generator *generator, uint64_t blocks, uint64_t *seed,
             uint64_t *offset) {
  plait_generator *g = generator ? generator : default_;
  if (is_of_cpu(g)) {  // a stream of its own for each call
    Twister *t = twister(g);
    const std::lock_guard<std::mutex> lock(t->mutex);
    *seed = t->mt.next_pair();
    *offset = 0;
    return;
  }
  *seed = __atomic_load_n(&g->seed, __ATOMIC_ACQUIRE);
  *offset = __atomic_fetch_add(&g->offset, blocks, __ATOMIC_RELAXED);
}

plait_generator *default_generator(void *) { return default_; }

plait_generator *device_generator(void *, DLDevice d) {
  if (d.device_type == kDLCPU || !before || !PLAIT_HAS(plait_rng, before, device_generator))
    return default_;
  return before->device_generator(before->ctx, d);
}

uint64_t state_size(void *, plait_generator *g) {
  return is_of_cpu(g) ? MersenneTwister::state_size : 16;
}

plait_status get_state(void *, plait_thread *, plait_generator *g, void *state, uint64_t) {
  if (!is_of_cpu(g)) {
    const uint64_t words[2] = {g->seed, __atomic_load_n(&g->offset, __ATOMIC_RELAXED)};
    std::memcpy(state, words, sizeof words);
    return PLAIT_OK;
  }
  Twister *t = twister(g);
  const std::lock_guard<std::mutex> lock(t->mutex);
  t->mt.write(g->seed, state);
  return PLAIT_OK;
}

plait_status set_state(void *, plait_thread *thread, plait_generator *g, const void *state,
                       uint64_t) {
  if (!is_of_cpu(g)) {
    uint64_t words[2];
    std::memcpy(words, state, sizeof words);
    g->seed = words[0];
    __atomic_store_n(&g->offset, words[1], __ATOMIC_RELAXED);
    return PLAIT_OK;
  }
  Twister *t = twister(g);
  const std::lock_guard<std::mutex> lock(t->mutex);
  uint64_t seed = 0;
  if (!t->mt.read(state, &seed))
    return thread->runtime->raise(thread, PLAIT_VALUE_ERROR, "set_state",
                                  "these bytes are no state of a Mersenne Twister, as "
                                  "torch.get_rng_state() gives it");
  g->seed = seed;
  return PLAIT_OK;
}

plait_status set_seed(void *, plait_thread *, plait_generator *g, uint64_t seed) {
  if (!is_of_cpu(g)) return PLAIT_OK;
  Twister *t = twister(g);
  const std::lock_guard<std::mutex> lock(t->mutex);
  t->mt.begin(seed);
  return PLAIT_OK;
}

const plait_rng table = [] {
  plait_rng t{};
  t.h = PLAIT_HEADER(plait_rng);
  t.name = "plait_torch.mt19937";
  t.reserve = reserve;
  t.default_generator = default_generator;
  t.device_generator = device_generator;
  t.state_size = state_size;
  t.get_state = get_state;
  t.set_state = set_state;
  t.set_seed = set_seed;
  return t;
}();

}  // namespace

Twister::Twister(uint64_t seed) : o{1, &twister_type}, mt(seed) {}

const plait_rng *mt19937() {
  before = PLAIT_ROLE(plait_rng, runtime->role("rng", 0));
  if (!default_) default_ = runtime->generator_new(first_seed);
  return default_ ? &table : nullptr;
}

Twister *twister_of(const plait_call *c) {
  static const plait_role rng = runtime->role("rng", 0);
  if (PLAIT_ROLE(plait_rng, rng) != &table) return nullptr;
  plait_generator *g = default_;
  for (uint16_t i = 0; i < c->n_in; i++)
    if (plait_arg_at(c->op, i)->kind == PLAIT_KIND_GENERATOR && c->in[i].tag == PLAIT_OBJECT)
      g = reinterpret_cast<plait_generator *>(c->in[i].u.o);
  return is_of_cpu(g) ? twister(g) : nullptr;
}

}  // namespace plait::pytorch
