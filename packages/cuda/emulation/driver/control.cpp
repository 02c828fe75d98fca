// What tests ask of the emulation beyond the driver's functions: faults on request, counters, and
// the text of the last trap. And the list of functions, which the linker checks to be complete.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {
namespace {

const char *const kNames[kNumbers] = {
    "alloc_fails_in", "launch_fails_in", "lost_in", "delay_us", "version",
    "launches",       "allocs",          "copies",  "waits",    "live_bytes",
    "threads",        "graph_launches",  "profiles"};
std::atomic<int64_t> numbers[kNumbers] = {{0}, {0}, {0}, {0}, {13000}, {0}, {0},
                                          {0}, {0}, {0}, {0}, {0},     {0}};

int number_at(const char *name) {
  for (int i = 0; i < kNumbers; i++)
    if (!strcmp(kNames[i], name)) return i;
  return -1;
}

std::mutex &trap_lock() {
  static auto *lock = new std::mutex();
  return *lock;
}
char trap_text[1024];

}  // namespace

int64_t number(Number which) { return numbers[which].load(); }
void count(Number which, int64_t change) { numbers[which] += change; }
bool is_due(Number which) {
  int64_t left = numbers[which].load(std::memory_order_relaxed);
  while (left > 0)
    if (numbers[which].compare_exchange_weak(left, left - 1)) return left == 1;
  return false;
}

void set_fault(ContextHandle &context, Result code, const char *text) {
  const std::lock_guard<std::mutex> hold(trap_lock());
  if (context.fault.load() != kSuccess) return;  // the first one counts
  // The text comes first: whoever sees the fault may read it.
  snprintf(trap_text, sizeof trap_text, "%s", text);
  context.fault.store(code);
  char line[1100];
  const int n =
      snprintf(line, sizeof line, "plait_cuda emulation: cuda:%d: %s\n", context.ordinal, text);
  if (write(2, line, size_t(n)) < 0) return;
}

// Each function of the list, so that one without a definition does not link.
__attribute__((used)) void *const kFunctions[] = {
#define PLAIT_CUDA_FUNCTION(name, exported, parameters) reinterpret_cast<void *>(&name),
#include "driver/functions.h"
#undef PLAIT_CUDA_FUNCTION
};

}  // namespace plait::cuda::driver

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// Sets a number; 0: there is none of that name.
PLAIT_EXPORT int plait_emulation_set(const char *name, int64_t value) {
  using namespace plait::cuda::driver;
  const int i = number_at(name);
  if (i >= 0) numbers[i] = value;
  return i >= 0;
}
// A number; -1: there is none of that name.
PLAIT_EXPORT int64_t plait_emulation_get(const char *name) {
  using namespace plait::cuda::driver;
  const int i = number_at(name);
  return i < 0 ? -1 : number(Number(i));
}
// The text of the last fault; it changes with the next one. Empty: there was none.
PLAIT_EXPORT const char *plait_emulation_trap() { return plait::cuda::driver::trap_text; }
// Where the host finds the bytes behind an address of a device; NULL: they are not in one
// allocation. For stand-ins of libraries, whose work in streams is a function of the host.
PLAIT_EXPORT char *plait_emulation_memory(uint64_t address, size_t bytes) {
  return plait::cuda::driver::host_address(-1, address, bytes);
}
// Ends the faults of all devices, and captures, so that further tests have some.
PLAIT_EXPORT void plait_emulation_revive() {
  using namespace plait::cuda::driver;
  end_captures();
  for (int i = 0; i < kMaxDevices; i++) {
    drain_device(context_of(i));
    context_of(i).fault = kSuccess;
  }
  trap_text[0] = 0;
}
