// The provider of the role "communicator".
#pragma once
#include <plait/plait.hpp>

namespace plait::multiprocessing {

extern const plait_collectives shared_memory;
void stop_collectives();    // before the process ends
void forget_collectives();  // in the child of a fork, where their threads are not

}  // namespace plait::multiprocessing
