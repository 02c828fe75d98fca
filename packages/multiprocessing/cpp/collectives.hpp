// One collective of all members of a group.
#pragma once
#include "group.hpp"

namespace plait::multiprocessing {

Outcome run(Group &, const Collective &, const Patience &, std::string &why);

}  // namespace plait::multiprocessing
