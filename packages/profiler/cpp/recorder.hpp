// The records of an observer: a bounded ring for each thread, which only that thread writes to.
#ifndef PLAIT_PROFILER_RECORDER_HPP
#define PLAIT_PROFILER_RECORDER_HPP
#include <plait/fork.hpp>
#include <plait/plait.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace plait::profiler {

struct Record {  // 64 bytes, read by plait_profiler/_recorder.py
  uint64_t start, end;  // nanoseconds of CLOCK_MONOTONIC; equal for ALLOC and FREE
  const char *name;     // NULL for ALLOC and FREE
  const char *shapes;   // "[[2, 3], []]", or NULL
  uint64_t a, b;        // as in plait_event
  uint32_t kind;
  int32_t status;
  uint64_t thread;  // the system's id of the thread
};
static_assert(sizeof(Record) == 64, "the Python side reads 64 bytes");

// The owning thread writes; others read once the recorder is off and the thread has left `push`.
class Ring {
 public:
  Ring(uint64_t capacity, uint64_t thread) : thread(thread), capacity_(capacity) {}
  void push(const Record &);
  void miss() { missed_++; }  // there was no memory for a record
  const char *keep(
      // copies, as names of ranges and nodes may be freed before the records are read
      const std::string &text);
  uint64_t size() const { return records_.size(); }
  uint64_t dropped() const { return missed_ + count_ - records_.size(); }
  void copy(Record *to) const;  // oldest first

  const uint64_t thread;
  std::atomic<bool> writing{false};

 private:
  const uint64_t capacity_;
  uint64_t count_ = 0, missed_ = 0;
  std::vector<Record> records_;
  std::unordered_set<std::string> texts_;
};

// Recorders are reused and never freed, as an event may end on any thread long after its session.
class Recorder {
 public:
  plait_status start(const plait_runtime *, uint64_t kinds, uint64_t capacity, bool shapes);
  void stop(const plait_runtime *);
  uint64_t size() const;
  uint64_t dropped() const;
  void copy(Record *to) const;
  void clear();

 private:
  static void begin(void *self, const plait_event *, uint64_t *token);
  static void end(void *self, const plait_event *, uint64_t token, plait_status);
  void add(const plait_event *, uint64_t start, uint64_t end, plait_status);
  void record(Ring &, const plait_event *, uint64_t start, uint64_t end, plait_status) const;
  const std::shared_ptr<Ring> &ring();

  plait_observer observer_{PLAIT_HEADER(plait_observer), this, 0, begin, end};
  std::atomic<bool> on_{false};
  std::atomic<uint64_t> session_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> lost_{0};  // events of threads whose ring found no memory
  uint64_t capacity_ = 0;
  bool shapes_ = false;
  mutable ProcessLock mutex_;  // of rings_
  std::vector<std::shared_ptr<Ring>> rings_;
};

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_RECORDER_HPP
