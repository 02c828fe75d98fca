// Operators for the tests of the binding, one for each feature of schemas, for float64 and int64
// only.
#include <sys/wait.h>
#include <unistd.h>
#include <plait/plait.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using plait::Dims;
const plait_runtime *runtime;

double number(const plait_value &v) { return v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i); }
DLDataType dtype_of(const plait_call *c) {
  for (int i = 0; i < c->n_in; i++)
    if (c->in[i].tag == PLAIT_TENSOR) return c->in[i].u.t->dl.dtype;
  return plait::dtype::float64;
}

// add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1)

plait_status add_shape(plait_call *c) {
  const plait_tensor *a = c->in[0].tag == PLAIT_TENSOR ? c->in[0].u.t : nullptr;
  const plait_tensor *b = c->in[1].tag == PLAIT_TENSOR ? c->in[1].u.t : nullptr;
  if (a && b && (a->dl.ndim != b->dl.ndim || plait::numel(a) != plait::numel(b)))
    return runtime->fail(c, PLAIT_SHAPE_ERROR,
                         "`self` and `other` must have one shape, got %s and %s",
                         plait::shape_text(a).c_str(), plait::shape_text(b).c_str());
  const plait_tensor *t = a ? a : b;
  for (uint32_t i = 0; i < 2; i++)
    if (const plait_status s = runtime->cast(c, i, dtype_of(c)); s < 0) return s;
  return runtime->result(c, 0, dtype_of(c), t ? t->dl.ndim : 0, t ? t->dl.shape : nullptr);
}
double element(const plait_value &v, int64_t i) {
  if (v.tag != PLAIT_TENSOR) return number(v);
  const DLTensor &t = v.u.t->dl;
  int64_t offset = 0;
  for (int d = t.ndim - 1; d >= 0; d--) {
    offset += i % t.shape[d] * t.strides[d];
    i /= t.shape[d];
  }
  if (plait::same(t.dtype, plait::dtype::int64))
    return double(static_cast<int64_t *>(t.data)[offset]);
  return static_cast<double *>(t.data)[offset];
}
void put(plait_tensor *t, int64_t i, double x) {
  int64_t offset = 0;
  for (int d = t->dl.ndim - 1; d >= 0; d--) {
    offset += i % t->dl.shape[d] * t->dl.strides[d];
    i /= t->dl.shape[d];
  }
  if (plait::same(t->dl.dtype, plait::dtype::int64))
    static_cast<int64_t *>(t->dl.data)[offset] = int64_t(x);
  else
    static_cast<double *>(t->dl.data)[offset] = x;
}
plait_status add_kernel(plait_call *c) {
  plait_tensor *out = c->out[0].u.t;
  for (int64_t i = 0; i < plait::numel(out); i++)
    put(out, i, element(c->in[0], i) + number(c->in[2]) * element(c->in[1], i));
  return PLAIT_OK;
}

// Copies: copy_, clone, cast.

plait_status copy_shape(plait_call *c) {
  plait_retain(c->in[0].u.t);
  c->out[0] = c->in[0];
  return PLAIT_OK;
}
plait_status copy_kernel(plait_call *c) {
  for (int64_t i = 0; i < plait::numel(c->in[0].u.t); i++)
    put(c->in[0].u.t, i, element(c->in[1], i));
  return PLAIT_OK;
}
plait_status clone_shape(plait_call *c) {
  const plait_tensor *t = c->in[0].u.t;
  const DLDataType d = c->n_in > 1 ? c->in[1].u.dtype : t->dl.dtype;
  return runtime->result(c, 0, d, t->dl.ndim, t->dl.shape);
}
plait_status clone_kernel(plait_call *c) {
  for (int64_t i = 0; i < plait::numel(c->in[0].u.t); i++)
    put(c->out[0].u.t, i, element(c->in[0], i));
  return PLAIT_OK;
}

// peak(Tensor self) and peak.dim(Tensor self, int dim, ...): overloads; max.dim has named
// results
plait_status whole_shape(plait_call *c) { return runtime->result(c, 0, dtype_of(c), 0, nullptr); }
plait_status whole_kernel(plait_call *c) {
  double best = -1e300;
  for (int64_t i = 0; i < plait::numel(c->in[0].u.t); i++)
    best = std::max(best, element(c->in[0], i));
  put(c->out[0].u.t, 0, best);
  return PLAIT_OK;
}
plait_status dim_shape(plait_call *c) {
  if (const plait_status s = runtime->result(c, 0, dtype_of(c), 0, nullptr); s < 0) return s;
  return runtime->result(c, 1, plait::dtype::int64, 0, nullptr);
}
plait_status dim_kernel(plait_call *c) {
  whole_kernel(c);
  put(c->out[1].u.t, 0, double(c->in[1].u.i));
  return PLAIT_OK;
}

// view(Tensor(a) self, int[]* size) -> Tensor(a)

plait_status view_shape(plait_call *c) {
  const plait_value &v = c->in[1];
  Dims strides;
  int64_t step = 1;
  for (uint32_t i = 0; i < v.n; i++) strides.push(0);
  for (int64_t i = int64_t(v.n) - 1; i >= 0; i--) {
    strides[i] = step;
    step *= v.u.is[i];
  }
  return runtime->view(c, 0, c->in[0].u.t, int32_t(v.n), v.u.is, strides.data(), 0);
}
// halves(Tensor(a) self) -> Tensor(a)[]

plait_status halves_shape(plait_call *c) {
  const int64_t n = c->in[0].u.t->dl.shape[0] / 2;
  for (int64_t i = 0; i < 2; i++)
    if (const plait_status s =
            runtime->view(c, 0, c->in[0].u.t, 1, &n, c->in[0].u.t->dl.strides, i * n);
        s < 0)
      return s;
  return PLAIT_OK;
}

// step(Tensor[]! params, Tensor[] grads, float rate): an optimizer

plait_status nothing(plait_call *) { return PLAIT_OK; }
plait_status step_kernel(plait_call *c) {
  for (uint32_t k = 0; k < c->in[0].n; k++)
    for (int64_t i = 0; i < plait::numel(c->in[0].u.ts[k]); i++)
      put(c->in[0].u.ts[k], i,
          element(plait::value(c->in[0].u.ts[k]), i) -
              c->in[2].u.f * element(plait::value(c->in[1].u.ts[k]), i));
  return PLAIT_OK;
}

// echo(...): arguments of every kind; each result is (tag of the argument) * 1000 + its value
plait_status echo_shape(plait_call *c) {
  const int64_t n = c->n_in * 2;
  return runtime->result(c, 0, plait::dtype::int64, 1, &n);
}
plait_status echo_kernel(plait_call *c) {
  auto *out = static_cast<int64_t *>(c->out[0].u.t->dl.data);
  for (int i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    int64_t held = 0;
    switch (v.tag) {
      case PLAIT_BOOL:
      case PLAIT_INT: held = v.u.i; break;
      case PLAIT_FLOAT: held = int64_t(v.u.f * 2); break;
      case PLAIT_COMPLEX: held = int64_t(v.u.fs[0] + 10 * v.u.fs[1]); break;
      case PLAIT_INTS:
        for (uint32_t k = 0; k < v.n; k++) held = held * 10 + v.u.is[k];
        break;
      case PLAIT_FLOATS:
        for (uint32_t k = 0; k < v.n; k++) held = held * 10 + int64_t(v.u.fs[k] * 2);
        break;
      case PLAIT_STRING: held = v.n; break;
      case PLAIT_DTYPE: held = v.u.dtype.code * 1000 + v.u.dtype.bits; break;
      case PLAIT_DEVICE: held = v.u.device.device_type * 100 + v.u.device.device_id; break;
      case PLAIT_OBJECT: held = int64_t(reinterpret_cast<plait_generator *>(v.u.o)->seed); break;
      case PLAIT_TENSORS:
        for (uint32_t k = 0; k < v.n; k++) held += v.u.ts[k] != nullptr;
        break;
      default: break;
    }
    out[2 * i] = v.tag;
    out[2 * i + 1] = held;
  }
  return PLAIT_OK;
}

// keep(Tensor self) and kept(): a handle that only C++ holds

plait_tensor *in_hand;
plait_status keep_kernel(plait_call *c) {
  plait_release(in_hand);
  in_hand = c->in[0].tag == PLAIT_TENSOR ? c->in[0].u.t : nullptr;
  if (in_hand) plait_retain(in_hand);
  return PLAIT_OK;
}
plait_status kept_shape(plait_call *c) {
  if (!in_hand) return runtime->fail(c, PLAIT_VALUE_ERROR, "nothing is kept");
  plait_retain(in_hand);
  c->out[0] = plait::value(in_hand);
  return PLAIT_OK;
}

struct Definition {
  plait_op_def def;
  plait_kernel kernel;
};
plait_op_def define(const char *schema, uint64_t flags, plait_kernel shape, const char *doc = "") {
  return {PLAIT_HEADER(plait_op_def),
          schema,
          doc,
          flags,
          shape,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}
const Definition definitions[] = {
    {define(
         "probe_add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
         PLAIT_OP_POINTWISE | PLAIT_OP_INPLACE | PLAIT_OP_OUT | PLAIT_OP_FUNCTION | PLAIT_OP_METHOD,
         add_shape, "self + alpha * other"),
     add_kernel},
    {define("copy_(Tensor(a)! self, Tensor src) -> Tensor(a)!", 0, copy_shape), copy_kernel},
    {define("clone(Tensor self) -> Tensor", 0, clone_shape), clone_kernel},
    {define("cast(Tensor self, dtype dtype) -> Tensor", 0, clone_shape), clone_kernel},
    {define("probe_max(Tensor self) -> Tensor", 0, whole_shape), whole_kernel},
    {define("probe_max.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False) -> (Tensor, "
            "Tensor)",
            PLAIT_OP_OUT | PLAIT_OP_FUNCTION, dim_shape),
     dim_kernel},
    {define("probe_view(Tensor(a) self, int[]* size) -> Tensor(a)", PLAIT_OP_VIEW, view_shape),
     nullptr},
    {define("probe_halves(Tensor(a) self) -> Tensor(a)[]", PLAIT_OP_VIEW, halves_shape), nullptr},
    {define("probe_step(Tensor[]! params, Tensor[] grads, float rate) -> ()", 0, nothing),
     step_kernel},
    {define("probe_keep(Tensor? self) -> ()", 0, nothing), keep_kernel},
    {define("probe_kept() -> Tensor", PLAIT_OP_VIEW, kept_shape), nullptr},
    {define("probe_echo(Scalar a, int b, float c, bool d=False, *, int[2] e=0, float[]? f=None, "
            "str? g=None, dtype? h=None, "
            "device? i=None, Generator? j=None, Tensor?[] k=None, int[]? l=None) -> Tensor",
            0, echo_shape),
     echo_kernel},
};

plait_status init(const plait_runtime *r, const plait_plugin *self) {
  runtime = r;
  plait_thread *thread = r->thread();
  for (const Definition &d : definitions) {
    // the runtime needs the copying operators itself: they are defined unless they exist
    const char *schema = d.def.schema;
    bool known = false;
    for (const char *name : {"copy_", "clone", "cast"})
      known |= strncmp(schema, name, strlen(name)) == 0 && r->op(name);
    if (known) continue;
    const plait_op *op = nullptr;
    uint64_t undo = 0;
    plait_status s = r->define(thread, &d.def, &op);
    if (s >= 0 && d.kernel) s = r->implement(thread, op, kDLCPU, d.kernel, nullptr, self, &undo);
    if (s < 0) return s;
  }
  return PLAIT_OK;
}

}  // namespace

extern "C" {
extern __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin), "probe", "0.1", 0, init, nullptr};

// For tests of the host role: what an engine does with a held callable, on a thread without the
// GIL.
plait_object *probe_held;
__attribute__((visibility("default"))) void probe_hold(void *object) {
  probe_held =
      plait::role<plait_host>(runtime)->hold(plait::role<plait_host>(runtime)->ctx, object);
}
__attribute__((visibility("default"))) void probe_drop(void) {
  plait_release_object(probe_held);
  probe_held = nullptr;
}
__attribute__((visibility("default"))) int probe_apply(int64_t n, char *text, uint64_t size) {
  plait_thread *thread = runtime->thread();
  plait_tensor *in = nullptr, *out = nullptr;
  runtime->tensor_new(thread, plait::dtype::float64, 1, &n, nullptr, {kDLCPU, 0}, &in);
  for (int64_t i = 0; i < n; i++) static_cast<double *>(in->dl.data)[i] = double(i);
  const plait_host *host = plait::role<plait_host>(runtime);
  const plait_status s = host->apply(host->ctx, thread, probe_held, &in, 1, &out, 1);
  if (s < 0 && thread->error) snprintf(text, size, "%s", thread->error->message);
  const int same = out == in;
  plait_release(in);
  plait_release(out);
  runtime->clear(thread);
  return s < 0 ? s : same;
}
__attribute__((visibility("default"))) void probe_site(char *text, uint64_t size) {
  const plait_host *host = plait::role<plait_host>(runtime);
  plait_site site;
  host->site(host->ctx, &site);
  host->describe(host->ctx, &site, text, size);
  plait_release_object(site.code);
}
// Starts threads, or ends them, that enter Python again and again and are no threads of Python.
__attribute__((visibility("default"))) void probe_describe_in_threads(uint32_t n) {
  static std::vector<std::thread> threads;
  static std::atomic<bool> ends;
  const plait_host *host = plait::role<plait_host>(runtime);
  ends = true;
  for (std::thread &each : threads) each.join();
  threads.clear();
  ends = false;
  plait_site site{};
  if (n) host->site(host->ctx, &site);
  for (uint32_t i = 0; i < n; i++)
    threads.emplace_back([=] {
      char text[100];
      while (!ends) host->describe(host->ctx, &site, text, sizeof text);
    });
}
// Forks `n` times; the children end at once.
__attribute__((visibility("default"))) void probe_fork(uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, nullptr, 0);
  }
}
}
