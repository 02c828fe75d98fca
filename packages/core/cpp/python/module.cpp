// plait_core._core. The Tensor class uses CPython's API directly; functions that are rarely called
// go through pybind11.
#include <dlfcn.h>
#include <pybind11/pybind11.h>

#include <iterator>

#include "convolution/winograd_mode.h"
#include "kernel/settings.h"
#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace py = pybind11;

namespace plait::core {

State state;

void add_autocast(py::module_ &m);          // autocast.cpp
void add_checkpoint_files(py::module_ &m);  // checkpoints/checkpoint_files.cpp
void add_attribute_lookup(py::module_ &m);  // cpython/attribute_lookup.cpp

namespace {

void throw_if(bool failed) {
  if (failed) throw py::error_already_set();
}

struct Memory {
  const plait_allocator *allocator;  // or nullptr
  DLDevice device;
};

// The device that an argument names, of which there is the allocator.
Memory memory_of(const char *caller, const py::object &device) {
  DLDevice d = state.runtime->thread()->device;
  const int done = device.is_none() ? int(PLAIT_CONVERTED) : state.python->device(device.ptr(), &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    throw py::type_error(std::string(caller) + ": `device` must be a device or None, got " +
                         std::string(py::repr(device)));
  throw_if(done == PLAIT_CONVERSION_FAILED);
  throw_if(!is_there(d, caller));
  return {role<plait_allocator>(state.runtime, int32_t(d.device_type)), d};
}

py::dict counters_of(const plait_memory_counters &m) {
  const auto of = [](const plait_counter &c) { return py::make_tuple(c.current, c.peak, c.added); };
  py::dict out;
  out["blocks"] = of(m.blocks);
  out["block_bytes"] = of(m.block_bytes);
  out["request_bytes"] = of(m.request_bytes);
  out["active"] = of(m.active);
  out["active_bytes"] = of(m.active_bytes);
  out["split"] = of(m.split);
  out["split_bytes"] = of(m.split_bytes);
  out["segments"] = of(m.segments);
  out["segment_bytes"] = of(m.segment_bytes);
  return out;
}

py::dict memory_stats(const py::object &device) {
  const auto [a, d] = memory_of("memory_stats", device);
  plait_alloc_stats s{};
  s.size = sizeof s;
  if (a && !a->stats)
    throw std::runtime_error("memory_stats: the allocator `" + std::string(a->name) +
                             "` counts nothing");
  if (a) a->stats(a->ctx, d, &s);
  py::dict out;
  out["allocator"] = a ? py::object(py::str(a->name)) : py::none();
  out["live_bytes"] = s.live_bytes;
  out["live_blocks"] = s.live_blocks;
  out["cached_bytes"] = s.cached_bytes;
  out["peak_bytes"] = s.peak_bytes;
  out["allocations"] = s.allocations;
  out["system_allocations"] = s.system_allocations;
  out["largest_cached"] = s.largest_cached;
  out["retries"] = s.retries;
  out["failures"] = s.failures;
  out["waits"] = s.waits;
  out["all"] = counters_of(s.all);
  out["small"] = counters_of(s.small);
  out["large"] = counters_of(s.large);
  return out;
}

void empty_cache(const py::object &device) {
  const auto [a, d] = memory_of("empty_cache", device);
  if (a && PLAIT_HAS(plait_allocator, a, trim_device))
    a->trim_device(a->ctx, d);
  else if (a && a->trim)
    a->trim(a->ctx);
}

void reset_peak_memory_stats(const py::object &device) {
  const auto [a, d] = memory_of("reset_peak_memory_stats", device);
  if (a && !a->reset_peak)
    throw std::runtime_error("reset_peak_memory_stats: the allocator `" + std::string(a->name) +
                             "` keeps the peak of the process alone");
  if (a) a->reset_peak(a->ctx, d);
}

uint32_t get_num_threads() {
  const plait_executor *e = role<plait_executor>(state.runtime);
  return e ? e->width(e->ctx) : 1;
}
void set_num_threads(int64_t n) {
  if (n < 1 || n > 4096)
    throw py::value_error("set_num_threads: `n` must be in [1, 4096]; got " + std::to_string(n));
  const plait_executor *e = role<plait_executor>(state.runtime);
  if (e && e->set_width) e->set_width(e->ctx, uint32_t(n));
}

// Other threads may change other bits at the same time; kernels read at any time.
template <class F>
void change_settings(F &&changed) {
  uint64_t now = __atomic_load_n(state.runtime->settings, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(state.runtime->settings, &now, changed(now), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
void change_setting(uint64_t bit, bool on) {
  change_settings([=](uint64_t now) { return on ? now | bit : now & ~bit; });
}
void set_batch_invariant(bool mode) { change_setting(PLAIT_SETTING_BATCH_INVARIANT, mode); }
bool is_batch_invariant() {
  constexpr uint64_t bits = PLAIT_SETTING_BATCH_INVARIANT | kReproducible;
  return (*state.runtime->settings & bits) != 0;
}

void set_reproducible(bool mode) { change_setting(kReproducible, mode); }
bool is_reproducible() { return (*state.runtime->settings & kReproducible) != 0; }

// The settings of accelerators' kernels; those of the CPU always compute in full and the same bits.
struct Setting {
  const char *name;
  uint64_t bit;
};
constexpr Setting device_settings[] = {{"tf32_products", PLAIT_SETTING_TF32_PRODUCTS},
                                       {"exact_convolutions", PLAIT_SETTING_EXACT_CONVOLUTIONS},
                                       {"deterministic", PLAIT_SETTING_DETERMINISTIC}};
uint64_t setting_named(const std::string &name) {
  for (const Setting &each : device_settings)
    if (name == each.name) return each.bit;
  throw py::value_error("there is no setting `" + name + "`");
}
void set_device_setting(const std::string &name, bool mode) {
  change_setting(setting_named(name), mode);
}
bool has_device_setting(const std::string &name) {
  return (__atomic_load_n(state.runtime->settings, __ATOMIC_RELAXED) & setting_named(name)) != 0;
}

void set_weight_cache(bool mode) { change_setting(kPackWeightsAnew, !mode); }
bool is_weight_cache_enabled() {
  return !(*state.runtime->settings & plait::core::kPackWeightsAnew);
}

// Whether a layer sees every call of this thread and must see what caches would spare, such as one
// that records them.
bool calls_are_watched() {
  const uint64_t caches = __atomic_load_n(&batched.layers_of_caches, __ATOMIC_RELAXED);
  return (state.runtime->thread()->included & ~caches) != 0;
}

// Where each tensor's elements lie, and the version of their storage; zeros for None. None where
// nothing may be kept of one of them.
py::object weights_state(const py::tuple &tensors) {
  plait_thread *thread = state.runtime->thread();
  const plait_engine *e = role<plait_engine>(state.runtime);
  const bool recorded = e && !(thread->excluded >> e->layer & 1);
  if (!is_weight_cache_enabled() || recorded || thread->slot[1]) return py::none();
  constexpr uint64_t foreign = PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_SHARED |
                               PLAIT_STORAGE_MAPPED | PLAIT_STORAGE_EXPORTED | PLAIT_STORAGE_PINNED;
  py::tuple states(2 * tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    PyObject *o = PyTuple_GET_ITEM(tensors.ptr(), Py_ssize_t(i));
    uint64_t data = 0, version = 0;
    if (o != Py_None) {
      if (!PyObject_TypeCheck(o, state.tensor_type)) return py::none();
      const plait_tensor *t = handle_of(o);
      const uint64_t flags = __atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED);
      if (t->dl.device.device_type != kDLCPU || flags & foreign) return py::none();
      data = reinterpret_cast<uintptr_t>(t->dl.data);
      version = __atomic_load_n(&t->storage->version, __ATOMIC_ACQUIRE);
    }
    states[2 * i] = data;
    states[2 * i + 1] = version;
  }
  return std::move(states);
}

constexpr const char *kWinogradModes[] = {"auto", "off", "F2",
                                          "F4",   "F5",  "F6"};  // by WinogradMode

void set_winograd(const std::string &mode) {
  for (uint64_t i = 0; i < std::size(kWinogradModes); i++)
    if (mode == kWinogradModes[i])
      return change_settings(
          [i](uint64_t now) { return core::with_winograd_mode(now, core::WinogradMode(i)); });
  throw py::value_error(
      "set_winograd: `mode` must be 'auto', 'off', 'F2', 'F4', 'F5' or 'F6'; got '" + mode + "'");
}
std::string get_winograd() {
  return kWinogradModes[uint64_t(core::winograd_mode_of(*state.runtime->settings))];
}

void set_default_dtype(const py::object &o) {
  DLDataType d;
  const int done = state.python->dtype(o.ptr(), &d);
  throw_if(done == PLAIT_CONVERSION_FAILED);
  if (done == PLAIT_NOT_CONVERTIBLE || (d.code != kDLFloat && d.code != kDLBfloat))
    throw py::type_error("set_default_dtype: a floating-point dtype is required, got " +
                         std::string(py::repr(o)));
  *state.python->default_dtype = d;
}
py::object get_default_dtype() {
  return py::reinterpret_steal<py::object>(
      state.python->dtype_object(*state.python->default_dtype));
}

void start() { throw_if(!start_operators()); }

py::object make(const py::object &data, const py::object &dtype, const py::object &device,
                bool requires_grad) {
  DLDataType d;
  DLDevice at;
  int done = dtype.is_none() ? int(PLAIT_CONVERTED) : state.python->dtype(dtype.ptr(), &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    throw py::type_error("tensor: `dtype` must be a dtype or None, got " +
                         std::string(py::repr(dtype)));
  throw_if(done == PLAIT_CONVERSION_FAILED);
  done = device.is_none() ? int(PLAIT_CONVERTED) : state.python->device(device.ptr(), &at);
  if (done == PLAIT_NOT_CONVERTIBLE)
    throw py::type_error("tensor: `device` must be a device or None, got " +
                         std::string(py::repr(device)));
  throw_if(done == PLAIT_CONVERSION_FAILED || (!device.is_none() && !is_there(at, "tensor")));
  plait_tensor *t = from_data(data.ptr(), dtype.is_none() ? nullptr : &d);
  throw_if(!t);
  if (device.is_none())  // what comes from a device stays there
    at = is_tensor(data.ptr()) || t->dl.device.device_type != kDLCPU
             ? t->dl.device
             : state.runtime->thread()->device;
  t = moved(t, at);
  throw_if(!t);
  auto out = py::reinterpret_steal<py::object>(wrap(t));
  throw_if(!out.ptr());
  if (requires_grad) out.attr("requires_grad") = true;
  return out;
}

bool cpu_supports_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

// Give a loaded kernel library the path of the packaged BLAS; returns None, or why it cannot use
// the library that the user names.
py::object use_blas(const std::string &library, const std::string &packaged) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return py::none();
  const auto use =
      reinterpret_cast<const char *(*)(const char *)>(dlsym(handle, "plait_core_use_blas"));
  const char *reason = use ? use(packaged.c_str()) : nullptr;
  py::object refusal = reason ? py::object(py::str(reason)) : py::object(py::none());
  dlclose(handle);
  return refusal;
}

py::object from_bytes(const py::bytes &data, const py::object &dtype, const py::tuple &shape) {
  DLDataType d;
  const int done = state.python->dtype(dtype.ptr(), &d);
  throw_if(done == PLAIT_CONVERSION_FAILED);
  if (done == PLAIT_NOT_CONVERTIBLE) throw py::type_error("_from_bytes: `dtype` must be a dtype");
  if (shape.size() > PLAIT_MAX_DIMS) throw py::value_error("_from_bytes: too many dimensions");
  int64_t sizes[PLAIT_MAX_DIMS];
  for (size_t i = 0; i < shape.size(); i++) sizes[i] = shape[i].cast<int64_t>();
  char *bytes;
  Py_ssize_t n;
  throw_if(PyBytes_AsStringAndSize(data.ptr(), &bytes, &n) < 0);
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  const plait_status s =
      state.runtime->tensor_new(thread, d, int32_t(shape.size()), sizes, nullptr, {kDLCPU, 0}, &t);
  if (s < 0) raise(thread, s);
  throw_if(s < 0);
  if (numel(t) * itemsize(d) != n) {
    plait_release(t);
    throw py::value_error("_from_bytes: the bytes do not fit shape " +
                          text(sizes, int64_t(shape.size())));
  }
  if (n) memcpy(t->dl.data, bytes, size_t(n));
  return py::reinterpret_steal<py::object>(wrap(t));
}

bool is_tensor_object(const py::object &o) { return is_tensor(o.ptr()); }

void add_functions(py::module_ &m) {
  py::options options;
  options.disable_function_signatures();  // the texts begin with what inspect.signature reads
  m.def("tensor", make, py::arg("data"), py::pos_only(), py::kw_only(),
        py::arg("dtype") = py::none(), py::arg("device") = py::none(),
        py::arg("requires_grad") = false);
  m.def(
      "memory_stats", memory_stats, py::arg("device") = py::none(),
      "memory_stats(device=None)\n--\n\n"
      "The counters of a device's allocator: live, cached and peak bytes, live blocks, "
      "allocations and those that went to the system; the allocator of an accelerator counts "
      "more, which `plait.accelerator.memory_stats` shows under PyTorch's names."
      "\n\n`reset_peak_memory_stats` lets the peak begin anew."
      "\n\nArgs:\n"
      "    device: The device; None is the default one."
      "\n\nReturns:\n"
      "    A dict with the allocator's name, None where there is none, and the counters, in bytes "
      "or as numbers of blocks; one that the allocator does not keep is 0."
      "\n\nRaises:\n"
      "    RuntimeError: if the allocator counts nothing.\n"
      "    ValueError: if there is no such device."
      "\n\nExample:\n"
      "    >>> import plait_core as pc\n"
      "    >>> stats = pc.memory_stats()\n"
      "    >>> stats[\"live_bytes\"] <= stats[\"peak_bytes\"]\n"
      "    True");
  m.def("reset_peak_memory_stats", reset_peak_memory_stats, py::arg("device") = py::none(),
        "reset_peak_memory_stats(device=None)\n--\n\n"
        "Let `peak_bytes` of `memory_stats` begin at what is live on a device now."
        "\n\nArgs:\n"
        "    device: The device; None is the default one."
        "\n\nRaises:\n"
        "    RuntimeError: if the allocator keeps the peak of the process alone.\n"
        "    ValueError: if there is no device with this number.\n"
        "    NotImplementedError: if no component for the device is installed."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.reset_peak_memory_stats()\n"
        "    >>> stats = pc.memory_stats()\n"
        "    >>> stats[\"peak_bytes\"] >= stats[\"live_bytes\"]\n"
        "    True");
  m.def("empty_cache", empty_cache, py::arg("device") = py::none(),
        "empty_cache(device=None)\n--\n\n"
        "Give cached memory of a device's type back to the system."
        "\n\nArgs:\n"
        "    device: The device; None is the default one."
        "\n\nRaises:\n"
        "    ValueError: if there is no device with this number.\n"
        "    NotImplementedError: if no component for the device is installed."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> before = pc.memory_stats()[\"cached_bytes\"]\n"
        "    >>> pc.empty_cache()\n"
        "    >>> pc.memory_stats()[\"cached_bytes\"] <= before\n"
        "    True");
  m.def("set_batch_invariant", set_batch_invariant, py::arg("mode"),
        "set_batch_invariant(mode)\n--\n\n"
        "Let matrix products give each row the same bits whatever other rows there are.\n\n"
        "    A product is cut by its sizes, so row i of a batch of 7 may differ in the last bit\n"
        "    from row i of a batch of 8. In this mode it doesn't; the products take longer\n"
        "    (docs/benchmarks/operators.md has figures). All else is invariant anyway.\n\n"
        "    Args:\n"
        "        mode: Whether they do. One setting for the whole process.\n\n"
        "    Example:\n"
        "        >>> import plait_core as pc\n"
        "        >>> pc.set_batch_invariant(True)\n"
        "        >>> x, w = pc.randn(8, 300), pc.randn(300, 50)\n"
        "        >>> pc.equal((x @ w)[:3], x[:3] @ w)\n"
        "        True\n"
        "        >>> pc.set_batch_invariant(False)\n");
  m.def("is_batch_invariant", is_batch_invariant,
        "is_batch_invariant()\n--\n\n"
        "Whether `set_batch_invariant` is in force, or `set_reproducible`, which implies it."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.is_batch_invariant()\n"
        "    False");
  m.def(
      "_set_pytorch_keys", set_pytorch_keys, py::arg("mode"),
      "Set whether keys mean what they mean in PyTorch: uint8 tensors are masks, and lists with a "
      "key that is no number are tuples. Return what was set before.");
  m.def("_set_reproducible", set_reproducible, py::arg("mode"));
  m.def("is_reproducible", is_reproducible,
        "is_reproducible()\n--\n\n"
        "Whether `set_reproducible` is in force."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.is_reproducible()\n"
        "    False");
  m.def("_set_device_setting", set_device_setting, py::arg("name"), py::arg("mode"));
  m.def("_has_device_setting", has_device_setting, py::arg("name"));
  m.def(
      "set_weight_cache", set_weight_cache, py::arg("mode"),
      "set_weight_cache(mode)\n--\n\n"
      "Let kernels keep what they make of weights in calls without gradients.\n\n"
      "    Linear layers and convolutions pack their weights. Without gradients, under `no_grad`\n"
      "    or `inference_mode`, packed weights are kept from the second call on, up to 256 MB in\n"
      "    all, until the weights change or go. That takes memory for time; it is on at the\n"
      "    start. Results differ by rounding at most. Off, what is kept is freed at the next\n"
      "    call of such a layer.\n\n"
      "    Args:\n"
      "        mode: Whether they are kept. One setting for the whole process.\n\n"
      "    Example:\n"
      "        >>> import plait_core as pc\n"
      "        >>> pc.set_weight_cache(False)\n"
      "        >>> pc.is_weight_cache_enabled()\n"
      "        False\n"
      "        >>> pc.set_weight_cache(True)\n");
  m.def("is_weight_cache_enabled", is_weight_cache_enabled,
        "is_weight_cache_enabled()\n--\n\n"
        "Whether `set_weight_cache` is on."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.is_weight_cache_enabled()\n"
        "    True");
  m.def("_calls_are_watched", calls_are_watched);
  m.def("_weights_state", weights_state, py::arg("tensors"));
  m.def(
      "set_winograd", set_winograd, py::arg("mode"),
      "set_winograd(mode)\n--\n\n"
      "Choose which convolutions are computed by Winograd's algorithm, in this process.\n\n"
      "    It computes tiles of m x m results from (m + 2)^2 products a channel instead of\n"
      "    9 m^2, and rounds a little more; docs/benchmarks/convolution_errors.md has errors.\n"
      "    It is for windows of 3 x 3 elements, stride 1 and dilation 1, and for both\n"
      "    derivatives; and for windows of 5 x 5, with tiles two less a side.\n\n"
      "    Args:\n"
      "        mode: `auto`: tiles of 2, 4 or 5 a side for float32 where they are faster, which\n"
      "            depends on the sizes alone. `off`: never. `F2`, `F4`, `F5`, `F6`: always, with\n"
      "            tiles of this size, for float64 too; `F2` has none for 5 x 5.\n\n"
      "    Raises:\n"
      "        ValueError: if `mode` is something else.\n\n"
      "    Example:\n"
      "        >>> import plait_core as pc\n"
      "        >>> pc.set_winograd(\"off\")\n"
      "        >>> pc.get_winograd()\n"
      "        'off'\n"
      "        >>> pc.set_winograd(\"auto\")\n\n"
      "    References:\n"
      "        A. Lavin and S. Gray, \"Fast Algorithms for Convolutional Neural Networks\",\n"
      "        2016.\n");
  m.def("get_winograd", get_winograd,
        "get_winograd()\n--\n\n"
        "The mode that `set_winograd` set, `auto` at first."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.get_winograd()\n"
        "    'auto'");
  m.def("get_num_threads", get_num_threads,
        "get_num_threads()\n--\n\n"
        "How many threads an operator may use."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.get_num_threads() >= 1\n"
        "    True");
  m.def("set_num_threads", set_num_threads, py::arg("n"),
        "set_num_threads(n)\n--\n\n"
        "Let operators use at most `n` threads."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> before = pc.get_num_threads()\n"
        "    >>> pc.set_num_threads(1)\n"
        "    >>> pc.get_num_threads()\n"
        "    1\n"
        "    >>> pc.set_num_threads(before)");
  m.def("get_default_dtype", get_default_dtype,
        "get_default_dtype()\n--\n\n"
        "The dtype of Python's floats in new tensors."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.get_default_dtype()\n"
        "    plait.float32");
  m.def("set_default_dtype", set_default_dtype, py::arg("dtype"),
        "set_default_dtype(dtype)\n--\n\n"
        "Set `dtype` as the dtype of Python's floats in new tensors."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.set_default_dtype(pc.float64)\n"
        "    >>> pc.tensor(1.5).dtype\n"
        "    plait.float64\n"
        "    >>> pc.set_default_dtype(pc.float32)");
  m.def("is_tensor", is_tensor_object, py::arg("obj"),
        "is_tensor(obj)\n--\n\n"
        "Whether `obj` is a Tensor."
        "\n\nExample:\n"
        "    >>> import plait_core as pc\n"
        "    >>> pc.is_tensor(pc.zeros(1)), pc.is_tensor([0.0])\n"
        "    (True, False)");
  m.def("_from_bytes", from_bytes);
  m.def("_start", start);
  m.def("_cpu_supports_avx2", cpu_supports_avx2);
  m.def("_use_blas", use_blas);
}

}  // namespace
}  // namespace plait::core

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
  using namespace plait::core;
  m.doc() = "Tensor: plait's array on the Python side.";
  state.python = plait_python_import();
  throw_if(!state.python);
  state.runtime = state.python->runtime;
  throw_if(!add_overriding(m.ptr()) || !add_batched(m.ptr()) || !add_size(m.ptr()) ||
           !add_node(m.ptr()) || !add_tensor(m.ptr()) || !add_sparse(m.ptr()) ||
           PyModule_AddFunctions(m.ptr(), exchange_functions) < 0 ||
           PyModule_AddFunctions(m.ptr(), key_functions) < 0);
  add_functions(m);
  add_autocast(m);
  add_checkpoint_files(m);
  add_attribute_lookup(m);
}
