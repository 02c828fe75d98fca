// The meeting of a job's processes: rank 0 listens at the place, each of the others comes, both
// prove that they know the job's secret, and all get what each brought.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "place.hpp"

namespace plait::ucx {

constexpr uint32_t most_ranks = 4096;
constexpr size_t most_brought = 64 << 10;  // bytes that one process brings

enum class Met { all, failed, timed_out, interrupted };

struct Guest {
  uint32_t rank, size;
  std::string secret;   // of the job; may be empty where a place is local
  std::string brought;  // what the others get
};

// Waits for all, at most `timeout` seconds; `all`: what each brought, by rank.
Met meet(const Place &, const Guest &, double timeout, const std::function<bool()> &interrupted,
         std::vector<std::string> &all, std::string &why);

}  // namespace plait::ucx
