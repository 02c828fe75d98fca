// A stand-in for libcudnn.so.9 on the emulated driver: it has the functions that plait-cuda calls,
// checks what it is given as the library does, and computes convolutions by loops of the host. It
// recommends several engines, of which most must be refused.
#include <atomic>
#include <cstring>
#include <memory>

#include "emulation/cudnn/convolution.h"
#include "emulation/stand_in.h"

namespace {

using namespace plait::cuda;             // NOLINT: a library of C functions
using namespace plait::cuda::cudnn;      // NOLINT
using namespace plait::cuda::emulation;  // NOLINT

std::atomic<int64_t> calls{0}, choices{0}, failing_graphs{0}, failing_calls{0}, last_notes{-1};
thread_local const char *last_text = "";

Status fail(Status status, const char *text) { return last_text = text, status; }

bool is_due(std::atomic<int64_t> &count) {
  int64_t left = count;
  while (left > 0)
    if (count.compare_exchange_weak(left, left - 1)) return true;
  return false;
}

struct HandleState {
  driver::Stream stream = nullptr;
};

CudnnDescriptor *as_descriptor(RawDescriptor raw) { return static_cast<CudnnDescriptor *>(raw); }

int64_t size_of(int type) {
  switch (type) {
    case kHandleValue:
    case kInt64Value:
    case kDoubleValue:
    case kPointerValue:
    case kDescriptorValue: return 8;
    default: return 4;
  }
}

// Attributes that must be set before a descriptor of a type is finished.
std::vector<int> required(int type) {
  const auto operation = [](int first) {
    return std::vector<int>{first, first + 1, first + 2, first + 3, first + 4, first + 5};
  };
  switch (type) {
    case kTensor: return {kTensorType, kTensorSizes, kTensorStrides, kTensorId, kTensorAlignment};
    case kConvolution:
      return {kConvolutionCompute, kConvolutionMode,         kConvolutionDilations,
              kConvolutionStrides, kConvolutionPaddingAfter, kConvolutionPaddingBefore,
              kConvolutionDims};
    case kForward: return operation(kForwardFirst);
    case kBackwardData: return operation(kBackwardDataFirst);
    case kBackwardFilter: return operation(kBackwardFilterFirst);
    case kGraph: return {kGraphHandle, kGraphOperations};
    case kHeuristic: return {kHeuristicGraph, kHeuristicMode};
    case kPlan: return {kPlanHandle, kPlanConfig};
    case kVariantPack: return {kPackIds, kPackPointers, kPackWorkspace};
    default: return {};
  }
}

// What the heuristic recommends for a graph, best ones first.
std::vector<Engine> engines(const ConvolutionProblem &problem, int mode) {
  if (mode == kModeFallback) return {{0, 1024}};
  const uint32_t fast = 1u << kTensorCore;
  std::vector<Engine> all = {{0, int64_t(1) << 50},
                             {fast | 1u << kNondeterministic, 0},
                             {fast | 1u << kReducedReduction, 0}};
  if (problem.image.type == kFloat) all.push_back({fast | 1u << kDownConvert, 0});
  if (problem.image.type != kDouble) all.push_back({fast, 4096});
  return all;
}

// Takes the problem and the engine over from a finished descriptor.
bool take_over(CudnnDescriptor &d, int attribute, int type) {
  const CudnnDescriptor *const from = d.inner(attribute, type);
  if (from) d.problem = from->problem, d.engine = from->engine;
  return from != nullptr;
}

Status finish(CudnnDescriptor &d) {
  for (const int attribute : required(d.type))
    if (!d.attributes.count(attribute)) return fail(kBadParameter, "an attribute is missing");
  bool fits = true;
  switch (d.type) {
    case kTensor: fits = d.count<int64_t>(kTensorSizes) == d.count<int64_t>(kTensorStrides); break;
    case kForward:
    case kBackwardData:
    case kBackwardFilter: {
      const auto problem = std::make_shared<ConvolutionProblem>();
      fits = problem->read(d);
      d.problem = problem;
      break;
    }
    case kGraph:
      if (is_due(failing_graphs)) return fail(kNotSupported, "the graph was told to be refused");
      fits = take_over(d, kGraphOperations, kForward) ||
             take_over(d, kGraphOperations, kBackwardData) ||
             take_over(d, kGraphOperations, kBackwardFilter);
      break;
    case kHeuristic:
      choices++;
      fits = take_over(d, kHeuristicGraph, kGraph);
      break;
    case kPlan: fits = take_over(d, kPlanConfig, kEngineConfig); break;
    case kVariantPack: fits = d.count<int64_t>(kPackIds) == d.count<void *>(kPackPointers); break;
    default: break;
  }
  if (!fits) return fail(kBadParameter, "attributes do not fit one another");
  d.is_finished = true;
  return kSuccess;
}

template <class T>
Status give(const std::vector<T> &all, int64_t most, int64_t *n, void *to) {
  *n = int64_t(all.size());
  if (!to) return kSuccess;
  if (*n > most) *n = most;
  memcpy(to, all.data(), size_t(*n) * sizeof(T));
  return kSuccess;
}

// The descriptors of results exist already and are filled.
Status give_results(const CudnnDescriptor &d, int64_t most, int64_t *n, void *to) {
  const std::vector<Engine> all = engines(*d.problem, *d.values<int>(kHeuristicMode));
  *n = int64_t(all.size());
  if (!to) return kSuccess;
  if (*n > most) *n = most;
  for (int64_t i = 0; i < *n; i++) {
    CudnnDescriptor &config = *static_cast<CudnnDescriptor **>(to)[i];
    if (config.type != kEngineConfig) return kBadParameter;
    config.engine = all[size_t(i)], config.problem = d.problem, config.is_finished = true;
  }
  return kSuccess;
}

// The work of one call.
struct Task {
  std::shared_ptr<const ConvolutionProblem> problem;
  const void *weight = nullptr, *image = nullptr, *result = nullptr, *workspace = nullptr;
  size_t workspace_bytes;
  bool rounds;

  const void **pointer_of(int64_t id) {
    return id == problem->weight.id   ? &weight
           : id == problem->image.id  ? &image
           : id == problem->result.id ? &result
                                      : nullptr;
  }
  // Whether an operand lies in memory of the device, as its descriptor promises.
  static bool lies_well(const ConvolutionTensor &t, const void *data) {
    return reinterpret_cast<uintptr_t>(data) % uintptr_t(t.alignment) == 0 &&
           memory_at(data, size_t(t.bytes()));
  }
  bool lies_well() const {
    return lies_well(problem->weight, weight) && lies_well(problem->image, image) &&
           lies_well(problem->result, result) &&
           (!workspace_bytes || memory_at(workspace, workspace_bytes));
  }
  void run() const {
    if (!lies_well()) return;  // it was freed; the results stay as they are
    if (workspace_bytes) memset(memory_at(workspace, workspace_bytes), 0x5a, workspace_bytes);
    problem->compute(memory_at(weight, size_t(problem->weight.bytes())),
                     memory_at(image, size_t(problem->image.bytes())),
                     memory_at(result, size_t(problem->result.bytes())), rounds);
  }
};

}  // namespace

#define PLAIT_EXPORT extern "C" __attribute__((visibility("default")))

// What tests ask: how many convolutions were run, how often the heuristic was asked, the notes of
// the last engine; and that the next graphs are refused, or the next calls fail.
PLAIT_EXPORT int64_t plait_cudnn_calls() { return calls; }
PLAIT_EXPORT int64_t plait_cudnn_choices() { return choices; }
PLAIT_EXPORT int64_t plait_cudnn_last_notes() { return last_notes; }
PLAIT_EXPORT void plait_cudnn_refuse_graphs(int64_t n) { failing_graphs = n; }
PLAIT_EXPORT void plait_cudnn_fail_calls(int64_t n) { failing_calls = n; }

PLAIT_EXPORT size_t cudnnGetVersion() { return 91300; }
PLAIT_EXPORT size_t cudnnGetCudartVersion() { return 13000; }
PLAIT_EXPORT const char *cudnnGetErrorString(Status status) {
  switch (status) {
    case kSuccess: return "CUDNN_STATUS_SUCCESS";
    case kBadParameter: return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported: return "CUDNN_STATUS_NOT_SUPPORTED";
    default: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
PLAIT_EXPORT void cudnnGetLastErrorString(char *text, size_t bytes) {
  strncpy(text, last_text, bytes - 1);
  text[bytes - 1] = 0;
  last_text = "";
}

PLAIT_EXPORT Status cudnnCreate(Handle *to) {
  *to = new HandleState();
  return kSuccess;
}
PLAIT_EXPORT Status cudnnSetStream(Handle handle, driver::Stream stream) {
  static_cast<HandleState *>(handle)->stream = stream;
  return kSuccess;
}

PLAIT_EXPORT Status cudnnBackendCreateDescriptor(int type, RawDescriptor *to) {
  auto *const d = new CudnnDescriptor();
  d->type = type;
  *to = d;
  return kSuccess;
}
PLAIT_EXPORT Status cudnnBackendDestroyDescriptor(RawDescriptor raw) {
  delete as_descriptor(raw);
  return kSuccess;
}
PLAIT_EXPORT Status cudnnBackendSetAttribute(RawDescriptor raw, int attribute, int type, int64_t n,
                                             const void *values) {
  CudnnDescriptor &d = *as_descriptor(raw);
  if (d.is_finished) return fail(kBadParameter, "the descriptor is finished");
  const auto *const bytes = static_cast<const char *>(values);
  d.attributes[attribute] = {type, {bytes, bytes + n * size_of(type)}};
  return kSuccess;
}
PLAIT_EXPORT Status cudnnBackendFinalize(RawDescriptor raw) { return finish(*as_descriptor(raw)); }
PLAIT_EXPORT Status cudnnBackendGetAttribute(RawDescriptor raw, int attribute, int, int64_t most,
                                             int64_t *n, void *to) {
  const CudnnDescriptor &d = *as_descriptor(raw);
  if (!d.is_finished) return fail(kBadParameter, "the descriptor is not finished");
  switch (attribute) {
    case kHeuristicResults: return give_results(d, most, n, to);
    case kConfigEngine: {
      CudnnDescriptor &engine = **static_cast<CudnnDescriptor **>(to);
      engine.engine = d.engine, engine.is_finished = true;
      return *n = 1, kSuccess;
    }
    case kEngineNotes: {
      std::vector<int> notes;
      for (int i = 0; i < kNotes; i++)
        if (d.engine.notes >> i & 1) notes.push_back(i);
      return give(notes, most, n, to);
    }
    case kPlanWorkspace: return give(std::vector<int64_t>{d.engine.workspace}, most, n, to);
    default: return fail(kNotSupported, "the attribute has no value");
  }
}

PLAIT_EXPORT Status cudnnBackendExecute(Handle handle, RawDescriptor raw_plan,
                                        RawDescriptor raw_pack) {
  const CudnnDescriptor &plan = *as_descriptor(raw_plan), &pack = *as_descriptor(raw_pack);
  if (is_due(failing_calls)) return fail(kExecutionFailed, "the call was told to fail");
  if (!plan.is_finished || !pack.is_finished || plan.type != kPlan || pack.type != kVariantPack)
    return fail(kBadParameter, "a descriptor is not finished");
  Task task;
  task.problem = plan.problem;
  task.rounds = plan.engine.notes >> kTensorCore & 1;
  task.workspace = *pack.values<void *>(kPackWorkspace);
  task.workspace_bytes = size_t(plan.engine.workspace);
  for (int64_t i = 0; i < pack.count<int64_t>(kPackIds); i++) {
    const void **const to = task.pointer_of(pack.values<int64_t>(kPackIds)[i]);
    if (!to) return fail(kBadParameter, "no tensor has this number");
    *to = pack.values<void *>(kPackPointers)[i];
  }
  if (!task.lies_well()) return fail(kBadParameter, "an operand is not in memory as described");
  calls++, last_notes = plan.engine.notes;
  if (!put(static_cast<HandleState *>(handle)->stream, "cudnnBackendExecute",
           [task] { task.run(); }))
    return fail(kExecutionFailed, "the stream does not take work");
  return kSuccess;
}
