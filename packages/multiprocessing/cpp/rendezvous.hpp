// How processes find the block of their group by a name: rank 0 makes it, and serves it on a socket
// that has no file until all have come.
#pragma once
#include <memory>

#include "group.hpp"

namespace plait::multiprocessing {

struct Meeting {
  std::string name;
  uint32_t rank, size;
  Patience patience;
  // or empty: why the member of this rank, if it has not come, never will
  std::function<bool(uint32_t rank, Why &why)> lost;
};
constexpr size_t most_name = 80;  // bytes

// Joins the group that all processes call by this name, when all have come. nullptr with an outcome
// and its text; `status` is negative where the thread has the error.
std::unique_ptr<Group> meet_by_name(plait_thread *, const Meeting &, double timeout, Outcome &,
                                    Why &why, plait_status &status);

}  // namespace plait::multiprocessing
