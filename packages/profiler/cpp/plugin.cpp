// libplait_profiler: recorders as plain C functions, for Python's ctypes and for programs without
// Python.
#include <plait/plait.hpp>

#include <cstdlib>

#include "recorder.hpp"

namespace plait::profiler {
namespace {

const plait_runtime *runtime = nullptr;  // set when the component is loaded

ForkMutex idle_mutex;
std::vector<Recorder *> idle;  // stopped recorders whose records were read, for reuse

plait_status init(const plait_runtime *r, const plait_plugin *) {
  runtime = r;
  return PLAIT_OK;
}

Recorder *idle_recorder() {
  const std::lock_guard<ForkMutex> lock(idle_mutex);
  if (idle.empty()) return new Recorder;
  Recorder *r = idle.back();
  idle.pop_back();
  return r;
}

struct Range {
  plait_event event;
  uint64_t tokens[PLAIT_TOKENS];
  uint64_t n;
  char name[1];
};

}  // namespace
}  // namespace plait::profiler

using namespace plait::profiler;
#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "plait_profiler", "0.1.0", 0, init, nullptr};

// Begins to record events of these kinds, at most `capacity` a thread; NULL if that fails.
PLAIT_EXPORT void *plait_profiler_start(uint64_t kinds, uint64_t capacity, int shapes) {
  Recorder *recorder = idle_recorder();
  if (recorder->start(runtime, kinds, capacity, shapes) >= 0) return recorder;
  const std::lock_guard<plait::ForkMutex> lock(idle_mutex);
  idle.push_back(recorder);
  return nullptr;
}

PLAIT_EXPORT void plait_profiler_stop(void *recorder) {
  static_cast<Recorder *>(recorder)->stop(runtime);
}

// After stop: the number of records, the number of dropped ones, and the records by thread, oldest
// first. Their texts live until plait_profiler_free.
PLAIT_EXPORT uint64_t plait_profiler_size(void *recorder) {
  return static_cast<Recorder *>(recorder)->size();
}
PLAIT_EXPORT uint64_t plait_profiler_dropped(void *recorder) {
  return static_cast<Recorder *>(recorder)->dropped();
}
PLAIT_EXPORT void plait_profiler_copy(void *recorder, void *records) {
  static_cast<Recorder *>(recorder)->copy(static_cast<Record *>(records));
}

PLAIT_EXPORT void plait_profiler_free(void *recorder) {
  static_cast<Recorder *>(recorder)->clear();
  const std::lock_guard<plait::ForkMutex> lock(idle_mutex);
  idle.push_back(static_cast<Recorder *>(recorder));
}

// A range that observers see under this name; NULL without observers. It must end on the thread
// that began it.
PLAIT_EXPORT void *plait_profiler_range_begin(const char *name) {
  if (!(__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_RANGE)) return nullptr;
  const size_t length = std::strlen(name);
  auto *range = static_cast<Range *>(std::calloc(1, sizeof(Range) + length));
  if (!range) return nullptr;
  std::memcpy(range->name, name, length);
  range->event.size = sizeof range->event;
  range->event.kind = PLAIT_EVENT_RANGE;
  range->event.name = range->name;
  range->n = runtime->begin(&range->event, range->tokens, PLAIT_TOKENS);
  return range;
}

PLAIT_EXPORT void plait_profiler_range_end(void *range, int failed) {
  auto *r = static_cast<Range *>(range);
  runtime->end(&r->event, r->tokens, r->n, failed ? PLAIT_HOST_ERROR : PLAIT_OK);
  std::free(range);
}
