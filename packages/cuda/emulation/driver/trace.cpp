// Tells a tool what the driver is asked for and what it has done.
#include <algorithm>
#include <ctime>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {
namespace {

std::atomic<const emulation::Tracer *> tracer;
std::atomic<uint32_t> calls{0};

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

void run_or_fail(ContextHandle &context, const std::function<void()> &run) {
  // In parts: a test that lowers the number while it sleeps does not wait for all of it.
  for (int64_t slept = 0, left; (left = number(kDelay) - slept) > 0;) {
    const int64_t step = std::min<int64_t>(left, 5000);
    const timespec pause = {0, step * 1000};
    nanosleep(&pause, nullptr);
    slept += step;
  }
  if (is_due(kLostIn)) return set_fault(context, kLaunchFailed, "the device was told to be lost");
  run();
}

}  // namespace

uint32_t new_stream_number() {
  static std::atomic<uint32_t> last{0};
  return ++last;
}

uint32_t &call_of_graph() {
  static thread_local uint32_t number = 0;
  return number;
}

TracedCall trace_call(emulation::TracedKind kind, const char *name, uint64_t bytes) {
  const emulation::Tracer *tool = tracer;
  if (!tool) return {kind, name, bytes, 0};
  const TracedCall result = {kind, name, bytes, ++calls};
  tool->called(result.number);
  return result;
}

void work(const StreamPtr &stream, const TracedCall &call, const std::function<void()> &run) {
  ContextHandle &context = *stream->context;
  if (context.fault.load(std::memory_order_acquire)) return;
  const emulation::Tracer *tool = tracer;
  if (!tool || call.kind == emulation::TracedKind::kNone) return run_or_fail(context, run);
  const uint32_t graph = call_of_graph();
  emulation::TracedWork traced = {call.kind,      call.name,
                                  call.bytes,     context.ordinal,
                                  stream->number, graph ? graph : call.number,
                                  now(),          0};
  run_or_fail(context, run);
  traced.end = now();
  tool->ran(traced);
}

}  // namespace plait::cuda::driver

extern "C" __attribute__((visibility("default"))) void plait_emulation_trace(
    const plait::cuda::emulation::Tracer *tracer) {
  plait::cuda::driver::tracer = tracer;
}
extern "C" __attribute__((visibility("default"))) uint32_t
plait_emulation_stream(plait::cuda::driver::Stream handle) {
  plait::cuda::driver::StreamPtr stream;
  return plait::cuda::driver::entered(handle, &stream) ? 0 : stream->number;
}
