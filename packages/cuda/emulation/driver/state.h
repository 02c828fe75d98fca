// The state of the emulated driver. Everything lives until the process ends: threads of streams run
// until then.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver/types.h"
#include "emulation/library.h"
#include "emulation/trace.h"

namespace plait::cuda::driver {

// The functions that the library exports, under the names of the driver.
#define PLAIT_CUDA_FUNCTION(name, exported, parameters) \
  __attribute__((visibility("default"))) Result name parameters __asm__(exported);
#include "driver/functions.h"
#undef PLAIT_CUDA_FUNCTION

struct Capture;

// Work of a stream. It runs on the stream's thread, also after a fault: work that touches memory
// asks for that first.
using Task = std::function<void()>;
// `finish` is called together with the work being counted as done: nobody sees one without the
// other.
struct Work {
  Task run, finish;
};

// A place in a stream that has been reached or not: what an event stands for once it is recorded.
struct Point {
  bool reached = false;
  double milliseconds = 0;
};
using PointPtr = std::shared_ptr<Point>;
PointPtr reached_point();
void reach(const PointPtr &);
bool is_reached(const PointPtr &);
void await(const PointPtr &);

// As tools name streams: each has another one.
uint32_t new_stream_number();

struct StreamHandle {
  ContextHandle *context;
  bool blocking;  // it and the default stream wait for each other
  int priority;
  uint32_t number = new_stream_number();
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Work> queue;
  uint64_t put = 0, done = 0;
  bool started = false, closed = false, busy = false;
  // Under the lock of captures (capture.h): NULL, or the capture that the stream takes part in, and
  // the nodes that the next one comes after.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last_nodes;
};
using StreamPtr = std::shared_ptr<StreamHandle>;
struct EventHandle;
using EventPtr = std::shared_ptr<EventHandle>;

// A device and its primary context.
struct ContextHandle {
  int ordinal = 0;
  std::atomic<int> users{0};
  std::atomic<int> fault{kSuccess};  // what every call returns from then on
  std::atomic<unsigned> peers{0};  // devices whose memory kernels may touch: a bit for each
  std::mutex lock;
  std::vector<StreamPtr> streams;  // the default stream is the first
};

// Objects that programs have handles of. An unknown handle is an error, not a crash.
template <class T>
class Handles {
 public:
  T *add(std::shared_ptr<T> object) {
    const std::lock_guard<std::mutex> hold(lock_);
    T *handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(T *handle) {
    const std::lock_guard<std::mutex> hold(lock_);
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second;
  }
  std::shared_ptr<T> remove(T *handle) {
    const std::lock_guard<std::mutex> hold(lock_);
    const auto at = objects_.find(handle);
    if (at == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }

 private:
  std::mutex lock_;
  std::unordered_map<T *, std::shared_ptr<T>> objects_;
};

constexpr int kMaxDevices = 4;
int devices();  // how many there are
ContextHandle &context_of(int ordinal);

// Numbers that tests read and set: plait_emulation_get and plait_emulation_set.
enum Number {
  kAllocFailsIn,
  kLaunchFailsIn,
  kLostIn,
  kDelay,
  kVersion,
  kLaunches,
  kAllocs,
  kCopies,
  kWaits,
  kLiveBytes,
  kThreads,
  kGraphLaunches,
  kProfiles,
  kNumbers
};
int64_t number(Number);
void count(Number, int64_t change = 1);
bool is_due(Number);  // the request counts down to 0

// What each call asks first: whether the driver was started, in this process, and has not ended.
Result entered();
// And whether the thread has a context, which has met no fault.
Result entered(ContextHandle **context);
// And the stream of a handle; NULL is the default stream of the thread's context.
Result entered(Stream handle, StreamPtr *stream);
bool &runs_host_function();  // of this thread: the driver may not be called there

void set_fault(ContextHandle &context, Result code, const char *text);
bool is_ending();

// Puts work behind the other work of a stream.
void enqueue(const StreamPtr &stream, Task run, Task finish = nullptr);
// `enqueue`, or adds a node to the graph if the stream is being captured. `task` may run often.
Result submit(const StreamPtr &stream, Task task);
// Whether a call is allowed now that a capture may forbid: one that waits, asks, or changes memory.
// `stream` is the one that it is about, or NULL. A capture that forbids the call is broken.
Result check_capture(const StreamPtr &stream = nullptr);
void end_captures();
void drain(const StreamPtr &stream);
void drain_device(ContextHandle &context);

// A call that puts work into a stream, as a tool sees it.
struct TracedCall {
  emulation::TracedKind kind;
  const char *name;
  uint64_t bytes;
  uint32_t number;  // 0: nobody traces
};
// Tells the tool of a call that this thread makes.
TracedCall trace_call(emulation::TracedKind kind, const char *name, uint64_t bytes);
// Work that runs on this thread belongs to this call, if it is not 0, and not to the one that put
// it into a graph.
uint32_t &call_of_graph();

// Runs work that touches memory, unless the device has met a fault.
void work(const StreamPtr &stream, const TracedCall &call, const std::function<void()> &run);

// Memory: the host's address of what programs see at `address`; NULL: it is not in one allocation.
char *host_address(int device, Address address, size_t bytes);
bool is_pinned(const void *address, size_t bytes);
bool is_shown(const void *address);  // an address of the device
const emulation::Driver &services();

}  // namespace plait::cuda::driver
