// The tables of the three roles that libplait_core provides.
#pragma once
#include <plait/abi.h>

namespace plait::core {

const plait_allocator *caching_allocator();
const plait_executor *thread_pool();
void stop_memory_timer();
void stop_thread_pool();
const plait_rng *random_stream(const plait_runtime *);

}  // namespace plait::core
