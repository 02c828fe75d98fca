// What a group says to its control group, a communicator of the CPU.
#pragma once
#include <plait/collectives/failure.hpp>

#include <chrono>

#include "host/device.h"

namespace plait::cuda::nccl {

constexpr auto kPause = std::chrono::milliseconds(10);  // between looks at what is in flight
constexpr double kGrace = 0.5;  // seconds in which what a lost member had sent may arrive
// No program's message has these tags: plait's are at least 0.
constexpr int64_t kIdTag = -0x6e63636c, kLeaveTag = kIdTag - 1;

// A tensor of bytes on the CPU.
inline Tensor bytes_on_cpu(plait_thread *thread, size_t n) {
  Tensor t;
  const auto shape = int64_t(n);
  plait::check(thread->runtime->tensor_new(thread, plait::dtype::uint8, 1, &shape, nullptr,
                                           {kDLCPU, 0}, t.out()));
  return t;
}

// What the error of a thread says.
inline collectives::Explanation explain(const plait_thread *thread) {
  const plait_error *e = thread->error;
  if (!e || !e->message) return "the control group failed";
  const auto *failure = collectives::failure_of(e->cause);
  if (!failure) return e->message;
  collectives::Explanation result(failure->e.message ? failure->e.message : "");
  result.kind = collectives::FailureKind(failure->kind);
  result.lost.assign(failure->lost, failure->lost + failure->count);
  return result;
}

}  // namespace plait::cuda::nccl
