// A stand-in for libnccl.so.2 on the emulated driver: it has the functions that plait-cuda calls.
// Tensors go through memory that the processes of a host share. Work runs in streams: a copy to the
// host, a function of the host that exchanges bytes with other ranks, and a copy back. As NCCL it
// waits for a lost rank without end, and refuses two ranks on one device.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "emulation/nccl/exchange.h"
#include "emulation/nccl/reduce.h"

namespace {

using namespace plait::cuda;  // NOLINT: a library of C functions
using namespace plait::cuda::nccl;  // NOLINT
using emulation::Exchange;
using emulation::Message;

// The functions of the driver that is loaded.
struct Driver {
  driver::Result (*context_get)(driver::Context *);
  driver::Result (*primary_retain)(driver::Context *, driver::Device);
  driver::Result (*primary_release)(driver::Device);
  driver::Result (*pinned_alloc)(void **, size_t, unsigned);
  driver::Result (*to_host)(void *, driver::Address, size_t, driver::Stream);
  driver::Result (*to_device)(driver::Address, const void *, size_t, driver::Stream);
  driver::Result (*launch_host)(driver::Stream, void (*)(void *), void *);
  Driver() {
    Dl_info info;
    std::string path = dladdr(&from_here, &info) ? info.dli_fname : "";
    path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
    void *library = dlopen(path.c_str(), RTLD_NOW);
    const auto find = [library](const char *name, auto *to) {
      void *function = dlsym(library, name);
      memcpy(to, &function, sizeof function);
    };
    find("cuCtxGetCurrent", &context_get);
    find("cuDevicePrimaryCtxRetain", &primary_retain);
    find("cuDevicePrimaryCtxRelease_v2", &primary_release);
    find("cuMemHostAlloc", &pinned_alloc);
    find("cuMemcpyDtoHAsync_v2", &to_host);
    find("cuMemcpyHtoDAsync_v2", &to_device);
    find("cuLaunchHostFunc", &launch_host);
  }
  static inline int from_here;
};
const Driver &cuda() {
  static const Driver all;
  return all;
}

thread_local std::string last_text;

// The ordinal of the device whose context is current; -1: none is.
int current_device() {
  driver::Context own = nullptr;
  if (cuda().context_get(&own) || !own) return -1;
  for (int i = 0; i < 16; i++) {
    driver::Context primary = nullptr;
    if (cuda().primary_retain(&primary, i)) break;
    cuda().primary_release(i);
    if (primary == own) return i;
  }
  return -1;
}

// Pinned memory, which serves again: freeing it would wait for the device.
class Pinned {
 public:
  explicit Pinned(size_t bytes) {
    const std::lock_guard<std::mutex> hold(lock());
    const auto found = free_ones().lower_bound(bytes);
    if (found != free_ones().end()) {
      room_ = found->first, data_ = found->second;
      free_ones().erase(found);
      return;
    }
    room_ = std::max<size_t>(bytes, 4096);
    void *data = nullptr;
    if (cuda().pinned_alloc(&data, room_, 0) == driver::kSuccess) data_ = static_cast<char *>(data);
  }
  Pinned(Pinned &&other) noexcept
      : room_(other.room_), data_(std::exchange(other.data_, nullptr)) {}
  ~Pinned() {
    if (!data_) return;
    const std::lock_guard<std::mutex> hold(lock());
    free_ones().emplace(room_, data_);
  }
  char *data() const { return data_; }

 private:
  static std::mutex &lock() {
    static auto *one = new std::mutex();
    return *one;
  }
  static std::multimap<size_t, char *> &free_ones() {
    static auto *all = new std::multimap<size_t, char *>();
    return *all;
  }
  size_t room_ = 0;
  char *data_ = nullptr;
};

using CommPtr = std::shared_ptr<Exchange>;
const CommPtr &state_of(Comm comm) { return *static_cast<CommPtr *>(comm); }

// Calls and the work that they become -------------------------------------------------------------

enum Kind : uint64_t { kAllReduce = 1, kBroadcast, kReduce, kAllGather, kReduceScatter, kMessage };

struct Call {
  Kind kind;
  const void *in;
  void *out;
  size_t count;
  int type, reduction, root;
  size_t bytes() const { return count * size_t(size_of(type)); }
  // what the ranks must agree on
  uint64_t what() const {
    return uint64_t(kind) << 32 | uint64_t(type) << 16 | uint64_t(reduction) << 8 |
           (kind == kBroadcast || kind == kReduce ? uint64_t(root) : 0);
  }
};

// What one call moves, in memory of the host.
class Step {
 public:
  Step(const Call &call, int rank, int size)
      : call_(call),
        rank_(rank),
        size_(size),
        in_(reads() ? call.bytes() * size_t(call.kind == kReduceScatter ? size : 1) : 0),
        out_(writes() ? call.bytes() * size_t(call.kind == kAllGather ? size : 1) : 0) {}

  bool has_memory() const { return in_.data() && out_.data(); }
  driver::Result read(driver::Stream stream) const {
    const size_t n = reads() ? call_.bytes() * size_t(call_.kind == kReduceScatter ? size_ : 1) : 0;
    return n ? cuda().to_host(in_.data(), driver::Address(call_.in), n, stream) : driver::kSuccess;
  }
  driver::Result write(driver::Stream stream) const {
    const size_t n = writes() ? call_.bytes() * size_t(call_.kind == kAllGather ? size_ : 1) : 0;
    return n ? cuda().to_device(driver::Address(call_.out), out_.data(), n, stream)
             : driver::kSuccess;
  }

  void add(std::vector<Message> *sends, std::vector<Message> *receives) {
    const size_t n = call_.bytes();
    const bool is_root = call_.root == rank_;
    const auto each = [&](auto &&function) {
      for (int r = 0; r < size_; r++)
        if (r != rank_) function(r, size_t(r));
    };
    const auto send = [&](int to, char *data) { sends->push_back({to, data, n, call_.what()}); };
    const auto take = [&](int from, char *data) {
      receives->push_back({from, data, n, call_.what()});
    };
    const bool all_reduce = call_.kind == kAllReduce || call_.kind == kReduceScatter;
    if (all_reduce || (call_.kind == kReduce && is_root)) {
      parts_.resize(size_t(size_) * n);
      each([&](int r, size_t at) { take(r, parts_.data() + at * n); });
    }
    switch (call_.kind) {
      case kAllReduce: each([&](int r, size_t) { send(r, in_.data()); }); break;
      case kReduceScatter: each([&](int r, size_t at) { send(r, in_.data() + at * n); }); break;
      case kReduce:
        if (!is_root) send(call_.root, in_.data());
        break;
      case kBroadcast:
        if (is_root)
          each([&](int r, size_t) { send(r, in_.data()); });
        else
          take(call_.root, out_.data());
        break;
      case kAllGather:
        each([&](int r, size_t at) {
          send(r, in_.data());
          take(r, out_.data() + at * n);
        });
        break;
      case kMessage:
        if (call_.in)
          send(call_.root, in_.data());
        else
          take(call_.root, out_.data());
    }
  }

  // When all has arrived.
  void finish() {
    const size_t n = call_.bytes();
    if (call_.kind == kBroadcast && call_.root == rank_) memcpy(out_.data(), in_.data(), n);
    if (call_.kind == kAllGather) memcpy(out_.data() + size_t(rank_) * n, in_.data(), n);
    if (parts_.empty()) return;
    std::vector<char *> from;
    for (int r = 0; r < size_; r++) from.push_back(parts_.data() + size_t(r) * n);
    from[size_t(rank_)] = in_.data() + (call_.kind == kReduceScatter ? size_t(rank_) * n : 0);
    emulation::reduce(from, out_.data(), call_.count, call_.type, call_.reduction);
  }

 private:
  bool reads() const {
    if (call_.kind == kBroadcast) return call_.root == rank_;
    return call_.kind != kMessage || call_.in;
  }
  bool writes() const {
    if (call_.kind == kReduce) return call_.root == rank_;
    return call_.kind != kMessage || call_.out;
  }
  const Call call_;
  const int rank_, size_;
  Pinned in_, out_;
  std::vector<char> parts_;
};

// The calls of a group for one communicator and stream.
struct Job {
  CommPtr comm;
  std::vector<Step> steps;

  void run() {
    std::vector<Message> sends, receives;
    for (Step &step : steps) step.add(&sends, &receives);
    if (!comm->run(sends, receives)) return;
    for (Step &step : steps) step.finish();
  }
};

Result submit(const CommPtr &comm, const std::vector<Call> &calls, driver::Stream stream) {
  auto *job = new Job{comm, {}};  // the last host function of it deletes it
  for (const Call &call : calls) job->steps.emplace_back(call, comm->rank(), comm->size());
  bool works = true;
  for (const Step &step : job->steps) works = works && step.has_memory() && !step.read(stream);
  works = works && !cuda().launch_host(stream, [](void *p) { static_cast<Job *>(p)->run(); }, job);
  for (const Step &step : job->steps) works = works && !step.write(stream);
  works = works && !cuda().launch_host(stream, [](void *p) { delete static_cast<Job *>(p); }, job);
  if (!works) last_text = "a function of the driver failed";
  return works ? kSuccess : 1;  // ncclUnhandledCudaError
}

struct Queued {
  CommPtr comm;
  driver::Stream stream;
  Call call;
};
thread_local std::vector<Queued> queued;
thread_local int depth = 0;

Result run_queued() {
  std::vector<Queued> all;
  all.swap(queued);
  while (!all.empty()) {
    const CommPtr comm = all[0].comm;
    const driver::Stream stream = all[0].stream;
    std::vector<Call> calls;
    const auto is_other = [&](const Queued &q) { return q.comm != comm || q.stream != stream; };
    for (const Queued &q : all)
      if (!is_other(q)) calls.push_back(q.call);
    all.erase(std::stable_partition(all.begin(), all.end(), is_other), all.end());
    if (const Result r = submit(comm, calls, stream)) return r;
  }
  return kSuccess;
}

Result add(Comm comm, driver::Stream stream, const Call &call) {
  if (!comm || call.type < kInt8 || call.type > kBFloat || call.reduction < kSum ||
      call.reduction > kAverage || call.root < 0 || call.root >= state_of(comm)->size()) {
    last_text = "a wrong argument";
    return kInvalidArgument;
  }
  queued.push_back({state_of(comm), stream, call});
  return depth ? Result(kSuccess) : run_queued();
}

}  // namespace

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

PLAIT_EXPORT Result ncclGetVersion(int *version) {
  *version = 22700;
  return kSuccess;
}
PLAIT_EXPORT Result ncclGetUniqueId(UniqueId *id) {
  if (Exchange::make(id)) return kSuccess;
  last_text = "no memory can be shared";
  return 2;  // ncclSystemError
}
PLAIT_EXPORT const char *ncclGetErrorString(Result result) {
  switch (result) {
    case kSuccess: return "no error";
    case 1: return "unhandled cuda error";
    case 2: return "unhandled system error";
    case kInvalidArgument: return "invalid argument";
    case kInvalidUsage: return "invalid usage";
    case kRemoteError: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}
PLAIT_EXPORT const char *ncclGetLastError(Comm) { return last_text.c_str(); }
PLAIT_EXPORT Result ncclCommInitRank(Comm *out, int size, UniqueId id, int rank) {
  const int device = current_device();
  if (device < 0) {
    last_text = "no context is current";
    return 1;
  }
  const CommPtr state = Exchange::join(id, size, rank, device, &last_text);
  if (!state) return kInvalidUsage;
  *out = new CommPtr(state);
  return kSuccess;
}
PLAIT_EXPORT Result ncclCommAbort(Comm comm) {
  state_of(comm)->stop();
  delete static_cast<CommPtr *>(comm);
  return kSuccess;
}
PLAIT_EXPORT Result ncclCommGetAsyncError(Comm comm, Result *result) {
  *result = state_of(comm)->error();
  return kSuccess;
}
PLAIT_EXPORT Result ncclGroupStart() {
  depth++;
  return kSuccess;
}
PLAIT_EXPORT Result ncclGroupEnd() {
  if (!depth) return kInvalidUsage;
  return --depth ? Result(kSuccess) : run_queued();
}
PLAIT_EXPORT Result ncclAllReduce(const void *in, void *out, size_t count, int type, int reduction,
                                  Comm comm, driver::Stream stream) {
  return add(comm, stream, {kAllReduce, in, out, count, type, reduction, 0});
}
PLAIT_EXPORT Result ncclBroadcast(const void *in, void *out, size_t count, int type, int root,
                                  Comm comm, driver::Stream stream) {
  return add(comm, stream, {kBroadcast, in, out, count, type, kSum, root});
}
PLAIT_EXPORT Result ncclReduce(const void *in, void *out, size_t count, int type, int reduction,
                               int root, Comm comm, driver::Stream stream) {
  return add(comm, stream, {kReduce, in, out, count, type, reduction, root});
}
PLAIT_EXPORT Result ncclAllGather(const void *in, void *out, size_t count, int type, Comm comm,
                                  driver::Stream stream) {
  return add(comm, stream, {kAllGather, in, out, count, type, kSum, 0});
}
PLAIT_EXPORT Result ncclReduceScatter(const void *in, void *out, size_t count, int type,
                                      int reduction, Comm comm, driver::Stream stream) {
  return add(comm, stream, {kReduceScatter, in, out, count, type, reduction, 0});
}
PLAIT_EXPORT Result ncclSend(const void *in, size_t count, int type, int peer, Comm comm,
                             driver::Stream stream) {
  return add(comm, stream, {kMessage, in, nullptr, count, type, kSum, peer});
}
PLAIT_EXPORT Result ncclRecv(void *out, size_t count, int type, int peer, Comm comm,
                             driver::Stream stream) {
  return add(comm, stream, {kMessage, nullptr, out, count, type, kSum, peer});
}
