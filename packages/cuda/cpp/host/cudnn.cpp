#include "host/cudnn.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "host/activity.h"
#include "host/device.h"
#include "host/library.h"

namespace plait::cuda::cudnn {
namespace {

struct Functions {
#define PLAIT_CUDNN_FUNCTION(result, name, exported, parameters) result(*name) parameters;
#include "host/cudnn_functions.h"
#undef PLAIT_CUDNN_FUNCTION
};

std::atomic<bool> is_enabled{true};

// NULL: it is not installed, or PLAIT_CUDA_CUDNN=0 in the environment refuses it.
Functions *library() {
  static Functions functions;
  static Functions *const chosen = []() -> Functions * {
    void *const opened = open_library({{"cudnn/lib", "libcudnn.so.9"}}, getenv("PLAIT_CUDA_CUDNN"));
    const bool has_all = opened && look_up(opened, {
#define PLAIT_CUDNN_FUNCTION(result, name, exported, parameters) {&functions.name, exported},
#include "host/cudnn_functions.h"
#undef PLAIT_CUDNN_FUNCTION
                                                   });
    if (!has_all) return nullptr;
    // cuDNN ends the process where it looks for cuBLASLt and finds none
    const bool is_newer = functions.runtime_version() >= 13000;
    void *const products = is_newer ? open_library({{"cu13/lib", "libcublasLt.so.13"}})
                                    : open_library({{"cublas/lib", "libcublasLt.so.12"}});
    return products ? &functions : nullptr;
  }();
  return chosen;
}

}  // namespace

bool is_usable() { return is_enabled.load(std::memory_order_relaxed) && library(); }

Descriptor::Descriptor(DescriptorType type) {
  if (library()->descriptor_create(type, &raw_) != kSuccess) raw_ = nullptr;
}
Descriptor::~Descriptor() { drop(); }

void Descriptor::drop() {
  if (raw_) library()->descriptor_destroy(raw_);
  raw_ = nullptr;
}

Descriptor &Descriptor::set(int attribute, ValueType type, int64_t n, const void *values) {
  if (raw_ && library()->descriptor_set(raw_, attribute, type, n, values) != kSuccess) drop();
  return *this;
}
Descriptor &Descriptor::set(int attribute, const Descriptor &value) {
  if (!value.works()) drop();
  return set(attribute, kDescriptorValue, value.raw_);
}
Descriptor &Descriptor::finish() {
  if (raw_ && library()->descriptor_finish(raw_) != kSuccess) drop();
  return *this;
}

int64_t Descriptor::get(int attribute, ValueType type, int64_t most, void *values) const {
  int64_t n = 0;
  if (!raw_ || library()->descriptor_get(raw_, attribute, type, most, &n, values) != kSuccess)
    return -1;
  return n;
}

ForkMutex &lock() {
  static auto *mutex = new ForkMutex();  // used until the process ends
  return *mutex;
}

// None is made while a stream records a graph, as that takes memory and may wait.
Handle handle_of(const plait_call *c) {
  static struct {
    Handle handle;
    bool failed;
  } handles[kMaxDevices];
  auto &own = handles[c->device.device_id];
  if (own.handle || own.failed) return own.handle;
  int capturing = 0;
  if (driver::api.capture_status(stream_of(c), &capturing) != driver::kSuccess || capturing)
    return nullptr;
  own.failed = library()->create(&own.handle) != kSuccess;
  if (own.failed) own.handle = nullptr;
  return own.handle;
}

namespace {

bool has_refused_note(const Descriptor &config, const Limits &limits) {
  Descriptor engine(kEngine);
  RawDescriptor raw = engine.raw();
  int notes[kNotes];
  if (config.get(kConfigEngine, kDescriptorValue, 1, &raw) != 1) return true;
  const int64_t n = engine.get(kEngineNotes, kNoteValue, kNotes, notes);
  for (int64_t i = 0; i < n; i++)
    if (limits.refused_notes >> notes[i] & 1) return true;
  return n < 0;
}

// The ways that the library recommends, best ones first.
std::vector<Descriptor> recommended(const Descriptor &graph, Mode mode) {
  Descriptor heuristic(kHeuristic);
  heuristic.set(kHeuristicGraph, graph).set(kHeuristicMode, kHeuristicModeValue, mode).finish();
  std::vector<Descriptor> all;
  const int64_t most = heuristic.get(kHeuristicResults, kDescriptorValue, 0, nullptr);
  for (int64_t i = 0; i < most; i++) {
    all.emplace_back(kEngineConfig);
    if (!all.back().works()) return {};
  }
  if (all.empty()) return all;
  std::vector<RawDescriptor> raw;
  for (const Descriptor &each : all) raw.push_back(each.raw());
  const int64_t n = heuristic.get(kHeuristicResults, kDescriptorValue, most, raw.data());
  while (int64_t(all.size()) > (n < 0 ? 0 : n)) all.pop_back();
  return all;
}

}  // namespace

Plan choose_plan(Handle handle, const Descriptor &operation, const Limits &limits) {
  Descriptor graph(kGraph);
  graph.set(kGraphHandle, kHandleValue, handle).set(kGraphOperations, operation).finish();
  for (const Mode mode : {kModeA, kModeFallback})
    for (const Descriptor &config : recommended(graph, mode)) {
      if (has_refused_note(config, limits)) continue;
      Plan plan;
      plan.descriptor.set(kPlanHandle, kHandleValue, handle).set(kPlanConfig, config).finish();
      if (plan.descriptor.get(kPlanWorkspace, kInt64Value, 1, &plan.workspace) != 1) continue;
      plan.works = plan.workspace <= limits.most_workspace;
      if (plan.works) return plan;
    }
  return Plan{};
}

plait_status run_plan(const plait_call *c, Handle handle, const Plan &plan, const char *name,
                      std::initializer_list<Pointer> tensors, bool *done, char (&text)[512]) {
  DeviceWorkspace space;
  PLAIT_TRY(space.take(c, plan.workspace));
  std::vector<int64_t> ids;
  std::vector<const void *> pointers;
  for (const Pointer &each : tensors) ids.push_back(each.id), pointers.push_back(each.data);
  const auto n = int64_t(ids.size());
  Descriptor pack(kVariantPack);
  pack.set(kPackIds, kInt64Value, n, ids.data())
      .set(kPackPointers, kPointerValue, n, pointers.data())
      .set(kPackWorkspace, kPointerValue, space.data())
      .finish();
  const Functions &f = *library();
  Status status = kBadParameter;
  const std::lock_guard<ForkMutex> hold(lock());  // the handle has one stream at a time
  const Activity measure(c->device, stream_of(c), PLAIT_ACTIVITY_KERNEL, name, c->launch);
  if (pack.works()) status = f.set_stream(handle, stream_of(c));
  if (pack.works() && status == kSuccess)
    status = f.execute(handle, plan.descriptor.raw(), pack.raw());
  *done = status == kSuccess;
  if (*done) return PLAIT_OK;
  char last[256] = "";
  f.last_error(last, sizeof last);
  snprintf(text, sizeof text, "%s%s%s", f.status_text(status), *last ? ": " : "", last);
  return PLAIT_OK;
}

}  // namespace plait::cuda::cudnn

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// What the Python module plait_cuda.cudnn asks: the library's version, such as 91300, or 0 where
// it is not used; and whether it may be used.
PLAIT_EXPORT int64_t plait_cuda_cudnn_version() {
  using namespace plait::cuda::cudnn;
  const auto *const found = library();
  return found ? int64_t(found->version()) : 0;
}
PLAIT_EXPORT int plait_cuda_cudnn_enabled() { return plait::cuda::cudnn::is_enabled; }
PLAIT_EXPORT void plait_cuda_enable_cudnn(int mode) { plait::cuda::cudnn::is_enabled = mode != 0; }
