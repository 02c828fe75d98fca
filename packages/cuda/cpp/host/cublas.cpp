#include "host/cublas.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "host/activity.h"
#include "host/cublas_types.h"
#include "host/device.h"
#include "host/library.h"

namespace plait::cuda {
namespace {

using namespace cublas;  // NOLINT: the names of its functions

struct Functions {
#define PLAIT_CUBLAS_FUNCTION(name, exported, parameters) Status(*name) parameters;
#include "host/cublas_functions.h"
#undef PLAIT_CUBLAS_FUNCTION
};

std::mutex &lock() {
  static auto *mutex = new std::mutex();  // used until the process ends
  return *mutex;
}

// NULL: it is not installed, or PLAIT_CUDA_CUBLAS=0 in the environment refuses it.
Functions *library() {
  static Functions functions;
  static Functions *const chosen = [] {
    void *const opened =
        open_library({{"cu13/lib", "libcublasLt.so.13"}, {"cublas/lib", "libcublasLt.so.12"}},
                     getenv("PLAIT_CUDA_CUBLAS"));
    const bool works = opened && look_up(opened, {
#define PLAIT_CUBLAS_FUNCTION(name, exported, parameters) {&functions.name, exported},
#include "host/cublas_functions.h"
#undef PLAIT_CUBLAS_FUNCTION
                                                 });
    return works ? &functions : nullptr;
  }();
  return chosen;
}

// What one product is for the library: its matrices lie by columns, so that it computes the
// transposed product of the exchanged operands. All bytes of it are a key.
struct Request {
  int64_t m, n, k, batch;
  int64_t a_stride, b_stride, c_stride, addend_stride;  // between columns
  int64_t a_batch, b_batch, c_batch, addend_batch;
  int32_t type, compute, scale, epilogue, device;
  int32_t a_transposed, b_transposed, has_addend;
  uint32_t alignment[4];  // of b, a, the addend and c: the library's A, B, C and D
};

struct Plan {
  bool works;
  Layout a, b, addend, c;
  Algorithm algorithm;
  size_t workspace;
};

std::unordered_map<std::string, Plan> &plans() {
  static auto *all = new std::unordered_map<std::string, Plan>();  // under the lock
  return *all;
}

// Whether the library reads an operand of rows x columns as it lies, or transposed.
bool layout_of(const MatrixOperand &t, int64_t rows, int64_t columns, int64_t *stride,
               int32_t *transposed) {
  const int64_t row = rows == 1 ? columns : t.row, column = columns == 1 ? 1 : t.column;
  if (column == 1 && row >= columns) return *stride = row, *transposed = 0, true;
  const int64_t other = columns == 1 ? rows : t.column;
  if ((rows == 1 || t.row == 1) && other >= rows) return *stride = other, *transposed = 1, true;
  return false;
}

uint32_t alignment_of(const void *data) {
  const uintptr_t low = reinterpret_cast<uintptr_t>(data) | 256;
  return uint32_t(low & (~low + 1));
}

bool request_of(const plait_call *c, const MatrixProduct &p, Request *r) {
  switch (p.kind) {
    case F32: r->type = kFloat, r->compute = kComputeFloat, r->scale = kFloat; break;
    case F64: r->type = kDouble, r->compute = kComputeDouble, r->scale = kDouble; break;
    case F16: r->type = kHalf, r->compute = kComputeFloat, r->scale = kFloat; break;
    case BF16: r->type = kBFloat, r->compute = kComputeFloat, r->scale = kFloat; break;
    case C64: r->type = r->scale = kComplexFloat, r->compute = kComputeFloat; break;
    case C128: r->type = r->scale = kComplexDouble, r->compute = kComputeDouble; break;
    default: return false;
  }
  if ((p.kind == F32 || p.kind == C64) && has_setting(PLAIT_SETTING_TF32_PRODUCTS))
    r->compute = kComputeTf32;
  r->m = p.m, r->n = p.n, r->k = p.k, r->batch = p.batch, r->device = c->device.device_id;
  if (!layout_of(p.a, p.m, p.k, &r->a_stride, &r->a_transposed) ||
      !layout_of(p.b, p.k, p.n, &r->b_stride, &r->b_transposed))
    return false;
  r->c_stride = p.m == 1 ? p.n : p.c_row;
  if (p.batch > 1) r->a_batch = p.a.batch, r->b_batch = p.b.batch, r->c_batch = p.c_batch;
  r->epilogue = kNoEpilogue;
  r->alignment[0] = alignment_of(p.b.data), r->alignment[1] = alignment_of(p.a.data);
  r->alignment[3] = alignment_of(p.c);
  r->alignment[2] = r->alignment[3];
  if (!p.addend.data) return true;
  const bool is_bias = p.addend.row == 0 && p.addend.column == 1 && p.addend.batch == 0 &&
                       p.beta.tag == PLAIT_INT && p.beta.u.i == 1 && p.m > 1;
  if (is_bias && p.kind != C64 && p.kind != C128) return r->epilogue = kAddBias, true;
  int32_t transposed = 0;
  if (!layout_of(p.addend, p.m, p.n, &r->addend_stride, &transposed) || transposed) return false;
  r->has_addend = 1, r->addend_batch = p.batch > 1 ? p.addend.batch : 0;
  r->alignment[2] = alignment_of(p.addend.data);
  return true;
}

bool make_layout(const Functions &f, const Request &r, int64_t rows, int64_t columns,
                 int64_t stride, int64_t batch, Layout *to) {
  if (f.layout_create(to, r.type, uint64_t(rows), uint64_t(columns), stride)) return false;
  const auto count = int32_t(r.batch);
  return !f.layout_set(*to, kBatchCount, &count, sizeof count) &&
         !f.layout_set(*to, kBatchStride, &batch, sizeof batch);
}

// The description of a product; its user destroys it.
bool describe(const Functions &f, const Request &r, const void *bias, Description *to) {
  if (f.description_create(to, r.compute, r.scale)) return false;
  const int32_t a = r.b_transposed ? kTransposed : kPlain,
                b = r.a_transposed ? kTransposed : kPlain;
  return !f.description_set(*to, kTransposeA, &a, sizeof a) &&
         !f.description_set(*to, kTransposeB, &b, sizeof b) &&
         !f.description_set(*to, kEpilogue, &r.epilogue, sizeof r.epilogue) &&
         (r.epilogue == kNoEpilogue || !f.description_set(*to, kBiasPointer, &bias, sizeof bias));
}

// Asks the library how it computes a product of these sizes.
bool choose(const Functions &f, Handle handle, const Request &r, const void *bias, Plan *plan) {
  const int64_t addend_stride = r.has_addend ? r.addend_stride : r.c_stride;
  const int64_t addend_batch = r.has_addend ? r.addend_batch : r.c_batch;
  if (!make_layout(f, r, r.b_transposed ? r.k : r.n, r.b_transposed ? r.n : r.k, r.b_stride,
                   r.b_batch, &plan->b) ||
      !make_layout(f, r, r.a_transposed ? r.m : r.k, r.a_transposed ? r.k : r.m, r.a_stride,
                   r.a_batch, &plan->a) ||
      !make_layout(f, r, r.n, r.m, addend_stride, addend_batch, &plan->addend) ||
      !make_layout(f, r, r.n, r.m, r.c_stride, r.c_batch, &plan->c))
    return false;
  Description description = nullptr;
  Preference preference = nullptr;
  const uint64_t most = uint64_t(32) << 20;
  const uint32_t reductions = kReductionInWorkspace;
  Choice choice;
  int found = 0;
  bool works = describe(f, r, bias, &description) && !f.preference_create(&preference) &&
               !f.preference_set(preference, kMostWorkspace, &most, sizeof most) &&
               !f.preference_set(preference, kReductions, &reductions, sizeof reductions);
  for (int i = 0; i < 4 && works; i++)
    works = !f.preference_set(preference, kAlignmentA + i, &r.alignment[i], sizeof(uint32_t));
  works = works &&
          !f.heuristic(handle, description, plan->b, plan->a, plan->addend, plan->c, preference, 1,
                       &choice, &found) &&
          found == 1 && choice.state == kSuccess;
  if (preference) f.preference_destroy(preference);
  if (description) f.description_destroy(description);
  if (!works) return false;
  plan->algorithm = choice.algorithm, plan->workspace = choice.workspace;
  return true;
}

// The handle of a device. None is made while a stream records a graph, as that takes memory.
Handle handle_of(const plait_call *c, const Functions &f) {
  static Handle handles[kMaxDevices];  // under the lock
  Handle &handle = handles[c->device.device_id];
  if (handle) return handle;
  int capturing = 0;
  if (driver::api.capture_status(stream_of(c), &capturing) != driver::kSuccess || capturing)
    return nullptr;
  if (f.create(&handle) != kSuccess) handle = nullptr;
  return handle;
}

// A factor in the type that the library scales with.
struct Factor {
  double at[2];
  Factor(const plait_value &v, int scale) {
    const bool is_complex = v.tag == PLAIT_COMPLEX;
    const double x = is_complex ? v.u.fs[0] : v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i);
    const double y = is_complex ? v.u.fs[1] : 0;
    if (scale == kDouble || scale == kComplexDouble) {
      at[0] = x, at[1] = y;
    } else {
      const float pair[2] = {float(x), float(y)};
      memcpy(at, pair, sizeof pair);
    }
  }
};

}  // namespace

plait_status product_by_library(const plait_call *c, const MatrixProduct &p) {
  Functions *const f = library();
  if (!f) return PLAIT_DECLINE;
  Request r{};
  if (!request_of(c, p, &r)) return PLAIT_DECLINE;
  PLAIT_TRY(use(c->thread, c->device));
  Plan plan;
  Handle handle;
  {
    const std::lock_guard<std::mutex> hold(lock());
    handle = handle_of(c, *f);
    if (!handle) return PLAIT_DECLINE;
    const std::string key(reinterpret_cast<const char *>(&r), sizeof r);
    const auto found = plans().find(key);
    if (found != plans().end()) {
      plan = found->second;
    } else {
      plan = Plan{};
      plan.works = choose(*f, handle, r, p.addend.data, &plan);
      plans()[key] = plan;
    }
  }
  if (!plan.works) return PLAIT_DECLINE;
  DeviceWorkspace space;
  PLAIT_TRY(space.take(c, int64_t(plan.workspace)));
  plait_value none{PLAIT_INT, 0, {0}};
  const Factor alpha(p.alpha, r.scale), beta(r.has_addend ? p.beta : none, r.scale);
  Description description = nullptr;
  Status status = kNotSupported;
  const Activity measure(c->device, stream_of(c), PLAIT_ACTIVITY_KERNEL, "cublasLtMatmul",
                         c->launch);
  if (describe(*f, r, p.addend.data, &description))
    status = f->multiply(handle, description, alpha.at, p.b.data, plan.b, p.a.data, plan.a, beta.at,
                         r.has_addend ? p.addend.data : p.c, plan.addend, p.c, plan.c,
                         &plan.algorithm, space.data(), plan.workspace, stream_of(c));
  if (description) f->description_destroy(description);
  if (status == kSuccess) return PLAIT_OK;
  return PLAIT_FAIL(c, PLAIT_ERROR,
                    "cuBLASLt failed (status %d) for a %lld x %lld x %lld product; "
                    "PLAIT_CUDA_CUBLAS=0 in the environment does without it",
                    status, (long long)p.m, (long long)p.n, (long long)p.k);
}

}  // namespace plait::cuda
