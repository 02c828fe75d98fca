// The start and the end of the driver, and what each call asks first.
#include "emulation/driver/state.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace plait::cuda::driver {
namespace {

std::atomic<bool> initialized{false}, forked{false}, ending{false};
thread_local ContextHandle *current = nullptr;

ContextHandle *contexts() {
  static auto *all = new ContextHandle[kMaxDevices];
  return all;
}

// At the end of the process what has begun is waited for, but not for ever: it may need a lock of
// the host language, which is gone. What is still in a queue is dropped.
void end() {
  ending = true;
  const auto most = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int i = 0; i < devices(); i++) {
    std::vector<StreamPtr> streams;
    {
      const std::lock_guard<std::mutex> hold(contexts()[i].lock);
      streams = contexts()[i].streams;
    }
    for (const StreamPtr &stream : streams) {
      std::unique_lock<std::mutex> hold(stream->lock);
      stream->changed.notify_all();
      stream->changed.wait_until(hold, most, [&] { return !stream->busy; });
    }
  }
}

}  // namespace

bool is_ending() { return ending.load(std::memory_order_relaxed); }

int devices() {
  static const int value = [] {
    const char *text = getenv("PLAIT_CUDA_DEVICES");
    return text && *text ? std::clamp(atoi(text), 0, kMaxDevices) : 1;
  }();
  return value;
}
ContextHandle &context_of(int ordinal) { return contexts()[ordinal]; }

bool &runs_host_function() {
  static thread_local bool value = false;
  return value;
}

Result entered() {
  if (forked.load(std::memory_order_relaxed)) return kNotInitialized;
  if (!initialized.load(std::memory_order_acquire)) return kNotInitialized;
  if (is_ending()) return kDeinitialized;
  return runs_host_function() ? kNotPermitted : kSuccess;
}

Result entered(ContextHandle **context) {
  if (const Result r = entered()) return r;
  if (!current) return kInvalidContext;
  *context = current;
  return Result(current->fault.load(std::memory_order_acquire));
}

Result init(unsigned flags) {
  if (forked) return kNotInitialized;
  if (flags) return kInvalidValue;
  if (devices() == 0) return kNoDevice;
  static std::once_flag once;
  std::call_once(once, [] {
    for (int i = 0; i < kMaxDevices; i++) {
      ContextHandle &context = context_of(i);
      context.ordinal = i;
      auto stream = std::make_shared<StreamHandle>();
      stream->context = &context;
      stream->blocking = false;
      stream->priority = 0;
      context.streams.push_back(stream);
    }
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    atexit(end);
    initialized = true;
  });
  return kSuccess;
}

Result driver_version(int *version) {
  if (!version) return kInvalidValue;
  *version = int(number(kVersion));
  return kSuccess;
}

Result primary_retain(Context *context, Device device) {
  if (const Result r = entered()) return r;
  if (!context) return kInvalidValue;
  if (device < 0 || device >= devices()) return kInvalidDevice;
  *context = &context_of(device);
  (*context)->users++;
  return kSuccess;
}
Result primary_release(Device device) {
  if (const Result r = entered()) return r;
  if (device < 0 || device >= devices()) return kInvalidDevice;
  ContextHandle &context = context_of(device);
  int users = context.users;
  while (users > 0 && !context.users.compare_exchange_weak(users, users - 1)) continue;
  return users > 0 ? kSuccess : kInvalidContext;
}
Result context_set(Context context) {
  if (const Result r = entered()) return r;
  if (context && (context < contexts() || context >= contexts() + kMaxDevices || !context->users))
    return kInvalidContext;
  current = context;
  return kSuccess;
}
Result context_get(Context *context) {
  if (const Result r = entered()) return r;
  if (!context) return kInvalidValue;
  *context = current;
  return kSuccess;
}

namespace {

struct ErrorText {
  Result code;
  const char *name, *text;
};
const ErrorText kTexts[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kMapFailed, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {kEccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {kPeerAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {kInvalidSource, "CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid"},
    {kFileNotFound, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kIllegalState, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kAssert, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {kHardwareStackError, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {kIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "an illegal instruction was encountered"},
    {kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kSystemDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {kCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {kCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
const ErrorText *text_of(Result code) {
  for (const ErrorText &each : kTexts)
    if (each.code == code) return &each;
  return nullptr;
}

}  // namespace

Result error_name(Result code, const char **name) {
  const ErrorText *text = text_of(code);
  if (!name) return kInvalidValue;
  *name = text ? text->name : nullptr;
  return text ? kSuccess : kInvalidValue;
}
Result error_text(Result code, const char **out) {
  const ErrorText *text = text_of(code);
  if (!out) return kInvalidValue;
  *out = text ? text->text : nullptr;
  return text ? kSuccess : kInvalidValue;
}

}  // namespace plait::cuda::driver
