// Which ranks an error is about, as data beside its text.
#ifndef PLAIT_COLLECTIVES_LOST_HPP
#define PLAIT_COLLECTIVES_LOST_HPP
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../plait.hpp"

namespace plait::collectives {

struct LostRank {  // a process that died, left, is stopped or was interrupted
  int64_t rank = -1;  // in the group that the call is about; -1: it is no member, or not known
  int64_t process = -1;  // its number in the job; -1: not known
  int64_t pid = 0;  // 0: not known
};

// The text of a failure, with the lost ranks if these are its reason.
struct Why : std::string {
  std::vector<LostRank> lost;
  Why() = default;
  Why(const char *text) : std::string(text) {}
  Why(std::string text, std::vector<LostRank> ranks = {})
      : std::string(std::move(text)), lost(std::move(ranks)) {}
};

// The same processes, with their ranks in a group made of these members of theirs.
inline std::vector<LostRank> in_subgroup(std::vector<LostRank> lost,
                                         const std::vector<uint32_t> &members) {
  for (LostRank &each : lost) {
    const auto found = std::find(members.begin(), members.end(), each.rank);
    each.rank = found == members.end() ? -1 : found - members.begin();
  }
  return lost;
}

// The cause of an error: an error with the ranks behind it. The name of its type stands for this
// layout, so a `plait_error` that has grown needs another name.
struct LostRanks {
  plait_error e;
  uint64_t count;
  const LostRank *all;
};
static_assert(sizeof(plait_error) == 56, "LostRanks needs another name");
constexpr const char *lost_ranks_name = "lost_ranks";

// NULL if the cause of an error is something else.
inline const LostRanks *lost_ranks(const plait_object *cause) {
  const bool is_it = cause && std::strcmp(cause->type->name, lost_ranks_name) == 0;
  return is_it ? reinterpret_cast<const LostRanks *>(cause) : nullptr;
}

// Gives the error that the thread has just raised the lost ranks as its cause.
inline void add_lost_ranks(plait_thread *thread, const Why &why) {
  struct Object : LostRanks {
    Why why;
  };
  static const plait_type type{PLAIT_HEADER(plait_type), lost_ranks_name, [](plait_object *o) {
                                 delete static_cast<Object *>(reinterpret_cast<LostRanks *>(o));
                               }};
  plait_error *error = thread->error;
  // the error for no memory is shared
  if (why.lost.empty() || !error || error->code == PLAIT_MEMORY_ERROR || error->cause) return;
  auto object = std::make_unique<Object>();
  object->why = why;
  object->e = {{1, &type}, PLAIT_ERROR, 0, object->why.c_str(), nullptr, nullptr, nullptr};
  object->count = object->why.lost.size();
  object->all = object->why.lost.data();
  error->cause = &object.release()->e.o;
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_LOST_HPP
