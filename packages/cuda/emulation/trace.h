// What a tool sees of the emulated driver: the calls that put work into streams, and that work. The
// driver and the stand-in for CUPTI are built from one tree, so nothing here is kept compatible.
#pragma once
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::emulation {

enum class TracedKind : int { kNone, kKernel, kCopy, kPeerCopy, kFill };

struct TracedWork {
  TracedKind kind;
  const char *name;  // of a kernel; else NULL
  uint64_t bytes;
  int device;
  uint32_t stream, call;
  uint64_t begin, end;  // nanoseconds of CLOCK_REALTIME
};

struct Tracer {
  void (*called)(uint32_t call);  // on the thread that calls
  void (*ran)(const TracedWork &work);  // on the thread of the stream
};

}  // namespace plait::cuda::emulation

// Chooses the tool; NULL: none. It must live as long as the process.
extern "C" void plait_emulation_trace(const plait::cuda::emulation::Tracer *tracer);
constexpr const char *kTraceFunction = "plait_emulation_trace";
// The number of a stream; 0: there is no such stream. NULL is the default stream.
extern "C" uint32_t plait_emulation_stream(plait::cuda::driver::Stream stream);
constexpr const char *kStreamFunction = "plait_emulation_stream";
