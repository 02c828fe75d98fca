// How the host launches kernels: what functions of operators are written with, beside those of
// core's kernels ("kernel/kernel.h" has `tensor`, `result`, `integer`, `PLAIT_TRY`,
// `PLAIT_KERNEL`).
//
//     plait_status scale(plait_call *c) {
//       const DLTensor *y = result(c);
//       ScaleArgs a{tensor(c, 0)->data, y->data, numel(y), real(c, 1)};
//       return launch(c, scale_kernel, kind(y->dtype), a, blocks_for(c, a.n, 256), 256);
//     }
//     PLAIT_KERNEL("scale", scale);
//
// A kernel that has no instance for the kind declines the call.
#pragma once
#include <plait/abi.h>

#include <atomic>

#include "block/block.h"
#include "driver/driver.h"
#include "kernel/kernel.h"
#include "kernel/plan.h"

namespace plait::cuda {

using namespace core;  // NOLINT: the vocabulary of kernels

constexpr int kMaxDevices = 16;

// The kernel of that name: `scale_kernel` for PLAIT_DEVICE_KERNEL(scale, ...). `instance` chooses
// an entry of the list of kinds by its suffix.
class DeviceKernel {
 public:
  constexpr DeviceKernel(const char *name, const char *file, const char *suffixes, int max_threads)
      : name_(name), file_(file), suffixes_(suffixes), max_threads_(max_threads) {}
  // The driver's function, loaded at the first use on a device; PLAIT_DECLINE if there is no
  // instance.
  plait_status function(plait_thread *, int device, int instance, driver::Function *) const;
  const char *name() const { return name_; }
  int max_threads() const { return max_threads_; }

 private:
  const char *name_, *file_, *suffixes_;
  int max_threads_;
  // [device][instance]; filled once
  mutable std::atomic<driver::Function> functions_[kMaxDevices][kKinds]{};
};

#define PLAIT_SUFFIX(suffix, T, ...) " " #suffix
#define PLAIT_DEVICE_KERNEL(name, Args, max_threads, kinds)                   \
  const ::plait::cuda::DeviceKernel name##_kernel{                            \
      #name, __FILE__, PLAIT_EACH_##kinds(PLAIT_SUFFIX, 0) " ", max_threads}; \
  static_assert(sizeof(Args) <= 4096, "arguments of a kernel have at most 4 KB")

struct Grid {
  int64_t x = 1;
  int y = 1, z = 1;
  Grid(int64_t x_, int y_ = 1, int z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT: a number is a grid
};

// Instances of lists of SIZES.
constexpr int instance_of_size(int bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : bytes == 16 ? 4 : -1;
}

plait_status launch_bytes(const plait_call *c, const DeviceKernel &kernel, int instance,
                          const void *args, Grid grid, int threads, int64_t shared);

// Puts a kernel into the stream of the call. `instance`: the Kind of the element type, or
// instance_of_size. `shared`: bytes of dynamic shared memory. An empty grid launches nothing.
template <class Args>
plait_status launch(const plait_call *c, const DeviceKernel &kernel, int instance, const Args &args,
                    Grid grid, int threads, int64_t shared = 0) {
  return launch_bytes(c, kernel, instance, &args, grid, threads, shared);
}

// The fault of kernels of this call, for their arguments. `argument` is the number of the one that
// can be wrong; without it, the one that holds indices is named.
Fault fault_of(const plait_call *c, int argument = -1);

// What a device can do.
struct Facts {
  int units;  // multiprocessors
  int threads_per_unit;
  int major, minor;  // compute capability
  int64_t shared_memory;  // bytes that a block can have
  int64_t l2;  // bytes of its second-level cache
};
const Facts &facts(int device);

// Number of blocks for `n` threads' worth of work in a loop with a stride: at most some waves of
// the whole device.
inline int64_t blocks_for(const plait_call *c, int64_t n, int threads, int waves = 8) {
  const Facts &f = facts(c->device.device_id);
  const int64_t most = int64_t(f.units) * (f.threads_per_unit / threads) * waves;
  const int64_t blocks = ceil_div(n, threads);
  return blocks < most ? blocks : most;
}

// Memory of the device for the kernels of one call. It is freed when the object ends, before the
// kernels have run: later work in the stream comes behind them.
class DeviceWorkspace {
 public:
  DeviceWorkspace() = default;
  DeviceWorkspace(const DeviceWorkspace &) = delete;
  DeviceWorkspace &operator=(const DeviceWorkspace &) = delete;
  ~DeviceWorkspace();
  plait_status take(const plait_call *c, int64_t nbytes);
  template <class T = void>
  T *data() const {
    return static_cast<T *>(data_);
  }

 private:
  const plait_allocator *from_ = nullptr;
  void *data_ = nullptr, *block_ = nullptr;
  uint64_t nbytes_ = 0;
};

// Fills bytes, and copies bytes on the device, in the stream of the call.
plait_status fill_bytes(const plait_call *c, void *to, int value, int64_t nbytes);
plait_status copy_bytes(const plait_call *c, void *to, const void *from, int64_t nbytes);

// Waits for the stream of the call and copies a few bytes to the host: for results whose size
// depends on values. Reports the faults of kernels before.
plait_status read_bytes(const plait_call *c, void *to, const void *from, int64_t nbytes);

// Whether the user asks for something: one of PLAIT_SETTING_*.
bool has_setting(uint64_t setting);

// The driver's stream of a call.
driver::Stream stream_of(const plait_call *c);

}  // namespace plait::cuda
