// Which members of a group are on one host.
#ifndef PLAIT_COLLECTIVES_HOSTS_HPP
#define PLAIT_COLLECTIVES_HOSTS_HPP
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "letters.hpp"

namespace plait::collectives {

// Of what processes have in common that may share memory: the host's name, which start of which
// kernel it is, the numbering of processes (containers have their own), and the user.
inline NameDigest own_host(const std::string &name) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char pids[64] = {};
  if (readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0) pids[0] = 0;
  return NameDigest(name + "\n" + boot + "\n" + pids + "\n" + std::to_string(getuid()));
}

// Every member has the same, as it is made of what all told all.
struct Hosts {
  std::vector<std::vector<uint32_t>> ranks;  // of each host, ascending; hosts by their first rank
  std::vector<uint32_t> host_of, place_of;  // by rank: its host, and its place among that's ranks

  Hosts() = default;
  explicit Hosts(const std::vector<NameDigest> &by_rank) {
    std::map<NameDigest, uint32_t> known;
    for (uint32_t r = 0; r < by_rank.size(); r++) {
      const auto [it, is_new] = known.emplace(by_rank[r], uint32_t(ranks.size()));
      if (is_new) ranks.emplace_back();
      host_of.push_back(it->second);
      place_of.push_back(uint32_t(ranks[it->second].size()));
      ranks[it->second].push_back(r);
    }
  }
  uint32_t count() const { return uint32_t(ranks.size()); }
  uint32_t size_of(uint32_t host) const { return uint32_t(ranks[host].size()); }
  uint32_t largest() const {
    size_t most = 0;
    for (const auto &r : ranks) most = std::max(most, r.size());
    return uint32_t(most);
  }
  // whether each host's ranks follow each other
  bool contiguous() const {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const auto &r) { return r.back() - r.front() + 1 == r.size(); });
  }
};

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_HOSTS_HPP
