// Checking what a member asks for.
#pragma once
#include "collectives.hpp"

namespace plait::multiprocessing {

// What is to run, with the tensors of this rank that take part; or an error.
plait_status check_arguments(plait_thread *, const Group &, const plait_collective &asked,
                             Collective &);

}  // namespace plait::multiprocessing
