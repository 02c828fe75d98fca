// The provider of the role "communicator".
#pragma once
#include <plait/plait.hpp>

namespace plait::multiprocessing {

extern const plait_collectives shared_memory;

}  // namespace plait::multiprocessing
