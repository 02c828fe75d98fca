// How processes find the block of their group by a name: rank 0 creates it and sends it over an
// abstract socket until all have joined.
#pragma once
#include <memory>

#include "group.hpp"

namespace plait::multiprocessing {

struct Meeting {
  std::string name;
  uint32_t rank, size;
  Patience patience;
  // May be empty. Returns whether the member of a rank is lost, and the reason.
  std::function<bool(uint32_t rank, Explanation &reason)> lost;
};
constexpr size_t most_name = 80;  // bytes

// Joins the group that all processes call by this name, when all have come. nullptr with an outcome
// and its text; `status` is negative where the thread has the error.
std::unique_ptr<Group> meet_by_name(plait_thread *, const Meeting &, double timeout, Outcome &,
                                    Explanation &reason, plait_status &status);

}  // namespace plait::multiprocessing
