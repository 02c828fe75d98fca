// Types and numbers of the driver's interface, as far as plait-cuda uses them. The values are those
// of the CUDA driver API; the names are ours.
#pragma once
#include <cstddef>
#include <cstdint>

namespace plait::cuda::driver {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kMapFailed = 205,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kPeerAlreadyEnabled = 704,
  kInvalidSource = 300,
  kFileNotFound = 301,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemDriverMismatch = 803,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

using Device = int;
using Address = unsigned long long;  // of device memory
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;  // nullptr: the default stream, which waits for the others
using Event = struct EventHandle *;
using Graph = struct GraphHandle *;
using GraphExec = struct GraphExecHandle *;
struct Uuid {
  char bytes[16];
};
struct IpcHandle {
  char bytes[64];
};

// Attributes of devices.
enum : int {
  kMaxSharedMemory = 8,  // of a block, in bytes, without opting in
  kMaxThreadsPerUnit = 39,
  kUnits = 16,  // number of multiprocessors
  kPciDomain = 50,
  kMajor = 75,
  kMinor = 76,
  kMaxSharedMemoryOptIn = 97,
  kL2Bytes = 38,
  kIntegrated = 18,
};
// Attributes of functions.
enum : int {
  kFunctionMaxThreads = 0,
  kFunctionDynamicShared = 8,
};
// Attributes of pointers.
enum : int { kPointerMemoryType = 2, kPointerOrdinal = 9 };
// What the driver says of kPointerMemoryType.
enum : unsigned { kMemoryOfHost = 1, kMemoryOfDevice = 2 };
// Flags.
enum : unsigned {
  kStreamNonBlocking = 1,  // it does not wait for the default stream
  kEventNoTiming = 2,
  kEventInterprocess = 4,
  kPinnedPortable = 1,
  kPinnedMapped = 2,
  kIpcLazyPeer = 1,
};
enum : int { kCaptureGlobal = 0, kCaptureThread = 1, kCaptureRelaxed = 2 };
enum : int { kNotCapturing = 0, kCapturing = 1, kCaptureBroken = 2 };

}  // namespace plait::cuda::driver
