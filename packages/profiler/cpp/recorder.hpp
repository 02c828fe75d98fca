// The recorder: one observer for all profiles of the process. A profile is a time in which it runs.
#ifndef PLAIT_PROFILER_RECORDER_HPP
#define PLAIT_PROFILER_RECORDER_HPP
#include <plait/plait.hpp>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "profiler.h"
#include "row.hpp"

struct plait_profiler_session {
  uint64_t kinds = 0;
  uint64_t capacity = 0;  // rows of a thread
  bool stacks = false;
  // what was recorded
  uint64_t begin = 0, end = 0;
  std::vector<plait::profiler::Row> rows;  // by thread, in the order of their ends
  std::map<uint16_t, uint64_t> dropped;
  std::vector<std::pair<uint64_t, uint64_t>> reserved;  // times, bytes
};

namespace plait::profiler {

using Session = plait_profiler_session;

void set_runtime(const plait_runtime *);
plait_status start(uint64_t kinds, uint64_t capacity, bool stacks, Session **out);
plait_status stop(Session *);  // an error of a device that was waited for
bool is_recording();

// Of the calling thread: the module whose forward runs, as a number of `modules`. Returns the last.
uint32_t set_module(uint32_t number);
// Says that a storage is of this category from now on.
void mark(const plait_storage *, uint32_t category);
// Called at the end of events while a profile wants stacks: the number of the stack, or 0.
void set_stack_function(uint32_t (*)());
void sample_reserved();

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_RECORDER_HPP
