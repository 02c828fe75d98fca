// What calls allocate on the CPU: counted for a thread, and limited for the process.
#pragma once
#include <cstdint>

#include "graph.hpp"

namespace plait::graph {

// While it lives, it counts the bytes that the calls of the thread allocate on the CPU. The parts
// of a parallel loop run at once on many threads: each counts as the largest of them.
class MemoryRecord {
 public:
  MemoryRecord() : outer_(current) { current = this; }
  MemoryRecord(const MemoryRecord &) = delete;
  MemoryRecord &operator=(const MemoryRecord &) = delete;
  ~MemoryRecord() { current = outer_; }

  int64_t live() const { return live_; }  // bytes that were allocated and not freed
  int64_t peak() const { return peak_; }  // the most that were live at once
  // The next allocation of so many bytes gets this memory, which is not counted and never freed.
  void lend(void *data, uint64_t nbytes) { lent_ = data, lent_bytes_ = nbytes; }

  // For the allocator and the executor that count.
  void *take_lent(uint64_t nbytes);
  void add(int64_t nbytes);
  void add_peak(int64_t nbytes);  // beside what is live

  static thread_local MemoryRecord *current;

 private:
  MemoryRecord *outer_;
  int64_t live_ = 0, peak_ = 0;
  void *lent_ = nullptr;
  uint64_t lent_bytes_ = 0;
};

// From now on records count, and `set_memory_limit` limits: an allocator and an executor of this
// library stand before those of the process. Raises plait::Error.
void count_memory();

// Bytes that allocations on the CPU may have at once, in the whole process; a larger request is an
// error. 0: any number.
void set_memory_limit(uint64_t nbytes);
uint64_t memory_limit();
uint64_t used_memory();  // bytes that were allocated since a limit was set first

}  // namespace plait::graph
