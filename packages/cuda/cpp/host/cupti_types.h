// Records and numbers of CUPTI's activity interface, as far as plait-cuda reads them. The values
// and layouts are those of cupti_activity.h in the package nvidia-cuda-cupti 13.0.85; in the one of
// 12.9.79 they are the same. Names are ours. A record goes on behind its last field here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "driver/types.h"

namespace plait::cuda::cupti {

using Status = int;
enum : Status {
  kSuccess = 0,
  kInvalidParameter = 1,
  kLimitReached = 12,
  kQueueEmpty = 18,
  kInvalidKind = 21,
  kInsufficientPrivileges = 35,
};

enum RecordKind : uint32_t {
  kCopy = 1,
  kFill = 2,
  kDriverCall = 4,
  kRuntimeCall = 5,
  kKernel = 10,  // kernels that may run at the same time
  kPeerCopy = 22,
  kExternal = 39,
};
// Whose numbers a thread pushes: any of the kinds that are free for use.
enum ExternalKind : uint32_t { kCustom2 = 5 };

struct Record {
  RecordKind kind;
};
// A kernel; CUpti_ActivityKernel10.
struct KernelRecord {
  RecordKind kind;
  uint8_t settings[12];
  uint64_t begin, end, completed;  // by the clock of `timestamp`; 0: unknown
  uint32_t device, context, stream;
  int32_t grid[3], block[3], static_shared, dynamic_shared;
  uint32_t local_of_thread, local;
  uint32_t correlation;  // of the call that launched it
  int64_t grid_number;
  const char *name;  // lives as long as the library
};
static_assert(offsetof(KernelRecord, begin) == 16 && offsetof(KernelRecord, end) == 24);
static_assert(offsetof(KernelRecord, device) == 40 && offsetof(KernelRecord, stream) == 48);
static_assert(offsetof(KernelRecord, correlation) == 92 && offsetof(KernelRecord, name) == 104);

// A copy or fill; CUpti_ActivityMemcpy6 and CUpti_ActivityMemset4.
struct MemoryRecord {
  RecordKind kind;
  uint32_t details;
  uint64_t bytes, begin, end;
  uint32_t device, context, stream, correlation;
};
static_assert(offsetof(MemoryRecord, bytes) == 8 && offsetof(MemoryRecord, begin) == 16);
static_assert(offsetof(MemoryRecord, end) == 24 && offsetof(MemoryRecord, device) == 32);
static_assert(offsetof(MemoryRecord, stream) == 40 && offsetof(MemoryRecord, correlation) == 44);

// A copy between devices; CUpti_ActivityMemcpyPtoP4.
struct PeerCopyRecord {
  RecordKind kind;
  uint32_t details;
  uint64_t bytes, begin, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, target_device, target_context;
  uint32_t correlation;
};
static_assert(offsetof(PeerCopyRecord, bytes) == 8 && offsetof(PeerCopyRecord, begin) == 16);
static_assert(offsetof(PeerCopyRecord, end) == 24 && offsetof(PeerCopyRecord, device) == 32);
static_assert(offsetof(PeerCopyRecord, stream) == 40);
static_assert(offsetof(PeerCopyRecord, correlation) == 60);

// The number that a thread had pushed when it made a call; CUpti_ActivityExternalCorrelation.
struct ExternalRecord {
  RecordKind kind;
  ExternalKind whose;
  uint64_t number;
  uint32_t correlation, reserved;
};
static_assert(offsetof(ExternalRecord, whose) == 4 && offsetof(ExternalRecord, number) == 8);
static_assert(offsetof(ExternalRecord, correlation) == 16 && sizeof(ExternalRecord) == 24);

// Gives the library an empty buffer, and takes back one with records.
using BufferRequest = void (*)(uint8_t **buffer, size_t *bytes, size_t *most_records);
using BufferComplete = void (*)(driver::Context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                size_t valid_bytes);

}  // namespace plait::cuda::cupti
