// A layer that casts what operators read, in regions of a thread (PyTorch's autocast): matrix
// products and their kin to a short dtype, what needs a wide range to float32. Operators are in one
// of two lists; others compute in the dtypes that they get. It lies above the layers that record
// derivatives, so gradients have the dtypes of what was cast.
#include <plait/layer.hpp>

#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tensor/tensor.hpp"

namespace py = pybind11;

namespace plait::core {

void add_autocast(py::module_ &m);

namespace {

constexpr const char *to_short[] = {"mm",
                                    "bmm",
                                    "mv",
                                    "addmm",
                                    "addmv",
                                    "addbmm",
                                    "baddbmm",
                                    "linear",
                                    "matmul",
                                    "conv2d",
                                    "bilinear",
                                    "linalg_vecdot",
                                    "tensordot",
                                    "prelu",
                                    "scaled_dot_product_attention",
                                    "attention_forward",
                                    "lstm_sequence",
                                    "lstm_forward",
                                    "conv2d_activation"};
constexpr const char *to_float32[] = {"acos",
                                      "asin",
                                      "cosh",
                                      "erfinv",
                                      "exp",
                                      "expm1",
                                      "log",
                                      "log10",
                                      "log2",
                                      "log1p",
                                      "reciprocal",
                                      "rsqrt",
                                      "sinh",
                                      "tan",
                                      "pow",
                                      "softplus",
                                      "layer_norm",
                                      "native_layer_norm",
                                      "cosine_similarity",
                                      "nll_loss",
                                      "l1_loss",
                                      "smooth_l1_loss",
                                      "huber_loss",
                                      "mse_loss",
                                      "binary_cross_entropy_with_logits",
                                      "cross_entropy",
                                      "cross_entropy_forward",
                                      "cross_entropy_smooth",
                                      "cross_entropy_soft",
                                      "dist",
                                      "pdist",
                                      "cdist",
                                      "renorm",
                                      "logsumexp",
                                      "prod",
                                      "softmax",
                                      "log_softmax",
                                      "softmin",
                                      "cumprod",
                                      "cumsum",
                                      "sum",
                                      "norm",
                                      "linalg_vector_norm",
                                      "linalg_matrix_norm"};

constexpr uint32_t position = 48;  // above "autograd"
constexpr DLDataType float32{kDLFloat, 32, 1};
uint64_t layer_bit;  // 0: there is no layer yet
const plait_op *cast_operator;
thread_local DLDataType chosen[PLAIT_MAX_DEVICE_TYPES];  // by device type; bits 0: no region

bool is_float(DLDataType d) {
  return (d.code == kDLFloat && (d.bits == 16 || d.bits == 32)) || d.code == kDLBfloat;
}
bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits; }

// The tensors that stand for arguments of a call, until it is done.
struct Casts {
  plait_value in[PLAIT_MAX_ARGS];
  plait_tensor *made[PLAIT_MAX_ARGS];
  int n = 0;
  Casts() = default;
  Casts(const Casts &) = delete;
  ~Casts() {
    for (int i = 0; i < n; i++) plait_release(made[i]);
  }
};

plait_status cast(plait_thread *thread, plait_tensor *t, DLDataType to, Casts *casts, int i) {
  plait_value in[2]{}, out{};
  in[0].tag = PLAIT_TENSOR, in[0].u.t = t;
  in[1].tag = PLAIT_DTYPE, in[1].u.dtype = to;
  plait_call c{};
  c.size = sizeof c;
  c.n_in = 2, c.n_out = 1;
  c.op = cast_operator, c.in = in, c.out = &out, c.thread = thread;
  const plait_status s = state.runtime->call(&c);
  if (s < 0) return s;
  casts->made[casts->n++] = out.u.t;
  casts->in[i].tag = PLAIT_TENSOR;
  casts->in[i].u.t = out.u.t;
  return PLAIT_OK;
}

DLDataType region_of(const plait_call *c) {
  const auto type = uint32_t(c->device.device_type);
  return type < PLAIT_MAX_DEVICE_TYPES ? chosen[type] : DLDataType{};
}

// What is below this layer; for a composite its parts, which are calls of their own.
plait_status below(plait_call *c) {
  if (!(c->op->flags & PLAIT_OP_COMPOSITE)) return state.runtime->call_below(c);
  const InsideLayer inside(c->thread, layer_bit);
  return state.runtime->call(c);
}

// Calls what is below with its tensors cast. Forms that write to given tensors go on as they
// are.
plait_status run(plait_call *c, bool is_short) {
  const DLDataType region = region_of(c);
  if (!region.bits || c->form != PLAIT_FUNCTION) return below(c);
  const DLDataType to = is_short ? region : float32;
  Casts casts;
  plait_call inner = *c;
  inner.in = casts.in;
  const InsideLayer inside(c->thread, layer_bit);
  for (int i = 0; i < c->n_in; i++) {
    casts.in[i] = c->in[i];
    plait_tensor *t = c->in[i].tag == PLAIT_TENSOR ? c->in[i].u.t : nullptr;
    if (!t || t->dl.device.device_type != c->device.device_type || !is_float(t->dl.dtype) ||
        same_dtype(t->dl.dtype, to))
      continue;
    if (const plait_status s = cast(c->thread, t, to, &casts, i); s < 0) return s;
  }
  const plait_status s = below(&inner);
  c->self = inner.self;
  return s;
}
plait_status run_short(plait_call *c) { return run(c, true); }
plait_status run_float32(plait_call *c) { return run(c, false); }

// Probabilities that were rounded to a short dtype can be 0 and 1, where the loss has no slope; as
// in PyTorch, regions of the CPU compute it in float32.
plait_status run_or_refuse(plait_call *c) {
  if (c->device.device_type == kDLCPU || !region_of(c).bits) return run_float32(c);
  return state.runtime->raise(c->thread, PLAIT_ERROR, c->op->name,
                              "it is unsafe in a region of autocast; apply "
                              "binary_cross_entropy_with_logits without the sigmoid, or end the "
                              "region before it");
}

const plait_plugin plugin{
    PLAIT_HEADER(plait_plugin), "plait_core.autocast", "1", 0, nullptr, nullptr};

// Registers the layer when the first region begins.
plait_status register_layer(plait_thread *thread) {
  uint32_t bit = 0;
  plait_status s = state.runtime->attach(thread, &plugin);
  if (s >= 0) s = state.runtime->layer(thread, "autocast", position, &bit);
  std::vector<const plait_op *> operators(state.runtime->ops(nullptr, 0));
  operators.resize(
      std::min<size_t>(operators.size(), state.runtime->ops(operators.data(), operators.size())));
  const auto implement = [&](const std::string &name, plait_kernel function) {
    for (const plait_op *op : operators) {  // with its overloads
      const std::string own = op->name;
      if (s >= 0 && own.substr(0, own.find('.')) == name)
        s = state.runtime->implement(thread, op, PLAIT_SLOT_LAYER + bit, function, nullptr, &plugin,
                                     nullptr);
    }
  };
  for (const char *name : to_short) implement(name, run_short);
  for (const char *name : to_float32) implement(name, run_float32);
  implement("binary_cross_entropy", run_or_refuse);
  cast_operator = state.runtime->op("cast");
  if (s >= 0) layer_bit = uint64_t(1) << bit;
  return s;
}

void raise_if(bool failed) {
  if (failed) throw py::error_already_set();
}

// Begins or changes the region of a device type in this thread; None ends it. Returns the dtype
// before, or None.
py::object set_autocast(const py::object &device, const py::object &dtype) {
  plait_thread *thread = state.runtime->thread();
  DLDevice d;
  const int done = state.python->device(device.ptr(), &d);
  if (done == PLAIT_NOT_CONVERTIBLE) throw py::type_error("set_autocast: a device is required");
  raise_if(done == PLAIT_CONVERSION_FAILED);
  if (uint32_t(d.device_type) >= PLAIT_MAX_DEVICE_TYPES)
    throw py::value_error("set_autocast: there are no tensors on this device");
  DLDataType next{};
  if (!dtype.is_none()) {
    raise_if(state.python->dtype(dtype.ptr(), &next) != PLAIT_CONVERTED);
    if (!is_float(next))
      throw py::value_error("set_autocast: `dtype` must be float16, bfloat16 or float32, got " +
                            std::string(py::str(dtype)));
    if (!layer_bit)
      if (const plait_status s = register_layer(thread); s < 0) raise(thread, s), raise_if(true);
  }
  DLDataType &now = chosen[d.device_type];
  const DLDataType before = now;
  now = next;
  bool is_on = false;
  for (const DLDataType &each : chosen) is_on |= each.bits != 0;
  if (layer_bit) watch_calls(thread, layer_bit, is_on);
  if (!before.bits) return py::none();
  return py::reinterpret_steal<py::object>(state.python->dtype_object(before));
}

// The dtype of the region of a device type in this thread, or None.
py::object autocast_dtype(const py::object &device) {
  DLDevice d;
  const int done = state.python->device(device.ptr(), &d);
  if (done == PLAIT_NOT_CONVERTIBLE) throw py::type_error("autocast_dtype: a device is required");
  raise_if(done == PLAIT_CONVERSION_FAILED);
  const auto type = uint32_t(d.device_type);
  const DLDataType region = type < PLAIT_MAX_DEVICE_TYPES ? chosen[type] : DLDataType{};
  if (!region.bits) return py::none();
  return py::reinterpret_steal<py::object>(state.python->dtype_object(region));
}

}  // namespace

void add_autocast(py::module_ &m) {
  m.def("set_autocast", set_autocast, py::arg("device"), py::arg("dtype"),
        "Let operators of this thread cast what they read on a type of device, until it is called "
        "with None; returns the dtype of before. Matrix products compute in `dtype`, what needs a "
        "wide range in float32.");
  m.def("autocast_dtype", autocast_dtype, py::arg("device"),
        "Return the dtype of this thread's region of a type of device, or None.");
}

}  // namespace plait::core
