// An event as it is recorded and saved: the columns of plait_profiler/_recording.py.
#ifndef PLAIT_PROFILER_ROW_HPP
#define PLAIT_PROFILER_ROW_HPP
#include <cstdint>

namespace plait::profiler {

struct Row {
  uint64_t start, duration;  // nanoseconds of CLOCK_MONOTONIC
  uint64_t a, b;             // by kind, as in plait_event
  uint64_t link;             // the node that the call recorded, or that ran
  uint32_t signature, context;
  uint32_t thread, process;
  uint16_t kind;  // a plait_event_kind or a Kind; 0: the row is not written yet
  int16_t status;
  uint16_t depth;
  uint16_t device;  // type << 8 | index
};
static_assert(sizeof(Row) == 64, "rows are read and saved by their layout");

enum Kind : uint16_t { STEP = 256, DEVICE = 512, MARK = 1024 };  // beside plait_event_kind

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_ROW_HPP
