// The role "rng" of PyTorch's generator: who draws from which MT19937.
#pragma once
#include <plait/plait.hpp>

#include <mutex>

#include "random/mersenne_twister.hpp"

namespace plait::pytorch {

extern const plait_runtime *runtime;

// What a generator of the CPU keeps.
struct Twister {
  plait_object o;
  std::mutex mutex;
  MersenneTwister mt;
  explicit Twister(uint64_t seed);
};

// The table of the role. Generators of other devices, and operators without a kernel of PyTorch's,
// draw from Philox.
const plait_rng *mt19937();

// The twister from which a call draws; NULL where another generator is in force.
Twister *twister_of(const plait_call *);

}  // namespace plait::pytorch
