// Why a group of processes failed, as data beside an error's text.
#ifndef PLAIT_COLLECTIVES_FAILURE_HPP
#define PLAIT_COLLECTIVES_FAILURE_HPP
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../plait.hpp"

namespace plait::collectives {

enum FailureKind : uint32_t {
  FAILURE_UNKNOWN = 0,
  FAILURE_MISMATCH,     // members called different things; the group can be used further
  FAILURE_LOST,         // members were lost, or this one to the others
  FAILURE_TIMED_OUT,    // a member waited in vain
  FAILURE_ABORTED,      // a member's program ended the group
  FAILURE_INTERRUPTED,  // the user ended the call in this member
  FAILURE_BROKEN        // anything else behind which the group cannot be used
};
constexpr uint32_t failure_kinds = 7;

// What PlaitError.failure calls it; '' if it is not known.
inline const char *failure_name(uint64_t kind) {
  static const char *names[failure_kinds] = {"",        "mismatch",    "lost",  "timed_out",
                                             "aborted", "interrupted", "broken"};
  return kind < failure_kinds ? names[kind] : "";
}

struct LostRank {  // a process that died, left, is stopped or was interrupted
  int64_t rank = -1;  // in the group that the call is about; -1: it is no member, or not known
  int64_t process = -1;  // its number in the job; -1: not known
  int64_t pid = 0;  // 0: not known
};

// The text of a failure, with its kind and the lost ranks if these are its reason.
struct Explanation : std::string {
  std::vector<LostRank> lost;
  FailureKind kind = FAILURE_UNKNOWN;
  Explanation() = default;
  Explanation(const char *text) : std::string(text) {}
  Explanation(std::string text, std::vector<LostRank> ranks = {})
      : std::string(std::move(text)),
        lost(std::move(ranks)),
        kind(lost.empty() ? FAILURE_UNKNOWN : FAILURE_LOST) {}
  Explanation(std::string text, FailureKind k) : std::string(std::move(text)), kind(k) {}
};

// The same processes, with their ranks in a group made of these members of theirs.
inline std::vector<LostRank> in_subgroup(std::vector<LostRank> lost,
                                         const std::vector<uint32_t> &members) {
  for (LostRank &each : lost) {
    const auto it = std::find(members.begin(), members.end(), each.rank);
    each.rank = it == members.end() ? -1 : it - members.begin();
  }
  return lost;
}

// The cause of an error: an error with the facts behind it. The name of its type stands for this
// layout. A later `plait_error` may be larger, and then the facts are still where they were.
struct GroupFailure {
  union {
    plait_error e;
    unsigned char room[128];
  };
  uint64_t kind;  // FailureKind
  uint64_t count;
  const LostRank *lost;
};
static_assert(sizeof(plait_error) <= 128, "GroupFailure needs another name");
constexpr const char *failure_type_name = "group_failure";

// NULL if the cause of an error is something else.
inline const GroupFailure *failure_of(const plait_object *cause) {
  const bool is_it = cause && std::strcmp(cause->type->name, failure_type_name) == 0;
  return is_it ? reinterpret_cast<const GroupFailure *>(cause) : nullptr;
}

// Gives the error that the thread has just raised the failure as its cause.
inline void add_failure(plait_thread *thread, FailureKind kind, const Explanation &explanation) {
  struct Object : GroupFailure {
    Explanation explanation;
  };
  static const plait_type type{PLAIT_HEADER(plait_type), failure_type_name, [](plait_object *o) {
                                 delete static_cast<Object *>(reinterpret_cast<GroupFailure *>(o));
                               }};
  plait_error *error = thread->error;
  // the error for no memory is shared
  if (!error || error->code == PLAIT_MEMORY_ERROR || error->cause) return;
  auto object = std::make_unique<Object>();
  object->explanation = explanation;
  object->e = {{1, &type}, PLAIT_ERROR, 0, object->explanation.c_str(), nullptr, nullptr, nullptr};
  object->kind = kind;
  object->count = object->explanation.lost.size();
  object->lost = object->explanation.lost.data();
  error->cause = &object.release()->e.o;
}

}  // namespace plait::collectives
#endif  // PLAIT_COLLECTIVES_FAILURE_HPP
