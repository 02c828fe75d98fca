// One collective of all members of a group.
#pragma once
#include "group.hpp"

namespace plait::multiprocessing {

Outcome run(Group &, const Collective &, const Patience &, Explanation &reason);

}  // namespace plait::multiprocessing
