// Functions of tvm-ffi as kernels (docs/design/0045): they are called without Python, with the
// arguments of a call and then its results.
#include <dlfcn.h>

#include <atomic>

#include "kernels.hpp"
#include "tvm_ffi.hpp"

namespace plait::tvm {

using namespace plait::python;

namespace {

constexpr const char *library_name = "libtvm_ffi.so";

template <class F>
bool find(void *from, const char *name, F *to) {
  *to = reinterpret_cast<F>(dlsym(from, name));
  if (*to) return true;
  PyErr_Format(PyExc_ImportError, "plait_abi: the library of tvm_ffi has no function %s", name);
  return false;
}

bool find_all(void *from, Library *to) {
  return find(from, "TVMFFIObjectIncRef", &to->retain) &&
         find(from, "TVMFFIObjectDecRef", &to->release) &&
         find(from, "TVMFFIFunctionCall", &to->call) &&
         find(from, "TVMFFIFunctionCreate", &to->new_function) &&
         find(from, "TVMFFIFunctionGetGlobal", &to->global_function) &&
         find(from, "TVMFFIFunctionSetGlobal", &to->set_global_function) &&
         find(from, "TVMFFIErrorMoveFromRaised", &to->take_error) &&
         find(from, "TVMFFIErrorSetRaisedFromCStr", &to->set_error) &&
         find(from, "TVMFFITensorFromDLPackVersioned", &to->tensor_from_dlpack) &&
         find(from, "TVMFFIEnvSetStream", &to->set_stream);
}

}  // namespace

const Library *library() {  // with the GIL
  static Library result;
  static std::atomic<bool> ready{false};
  if (ready) return &result;
  void *handle = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) {
    PyErr_SetString(PyExc_ImportError, "plait_abi: the library of tvm_ffi is not loaded");
    return nullptr;
  }
  Library fresh;
  if (!find_all(handle, &fresh)) return nullptr;
  result = fresh;
  ready = true;
  return &result;
}

void *array_of(const Library *lib, Any *items, size_t n) {
  static const Bytes name{"ffi.Array", 9};
  void *make = nullptr;
  Any result{};
  if (lib->global_function(&name, &make) != 0 || !make) return nullptr;
  const int code = lib->call(make, items, int32_t(n), &result);
  lib->release(make);
  return code == 0 ? result.v.p : nullptr;
}

void *tensor_of(const Library *lib, plait_thread *thread, plait_tensor *t) {
  const plait_runtime *runtime = thread->runtime;
  if (t->dl.device.device_type == PLAIT_META) {
    runtime->raise(thread, PLAIT_VALUE_ERROR, "tvm_ffi",
                   "a tensor with bytes is required, got one on the device meta");
    return nullptr;
  }
  DLManagedTensorVersioned *managed = new_managed(t, 0);
  void *result = nullptr;
  if (managed && lib->tensor_from_dlpack(managed, 0, 0, &result) == 0) return result;
  if (managed) managed->deleter(managed);
  runtime->raise(thread, PLAIT_MEMORY_ERROR, "tvm_ffi", "the tensor cannot be handed over");
  return nullptr;
}

namespace {

// A function of tvm-ffi as a kernel. It is called without the GIL, so that a call may still run
// when the kernel is closed: the last user releases the function.
class TvmKernel : public Registered {
 public:
  TvmKernel(const Library *lib, void *function) : lib(lib), function_(function) {
    lib->retain(function);
  }
  ~TvmKernel() override { close(); }
  void close() override {
    closed_ = true;
    if (users_ == 0) release();
  }

  class Use {
   public:
    explicit Use(TvmKernel *k) : kernel_(k) { k->users_++; }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    ~Use() {
      if (--kernel_->users_ == 0 && kernel_->closed_) kernel_->release();
    }
    void *function() const { return kernel_->closed_ ? nullptr : kernel_->function_.load(); }

   private:
    TvmKernel *kernel_;
  };

  const Library *const lib;

 private:
  void release() {
    if (void *f = function_.exchange(nullptr)) lib->release(f);
  }

  std::atomic<void *> function_;
  std::atomic<int64_t> users_{0};
  std::atomic<bool> closed_{false};
};

// The arguments of a function, from the values of a call.
class Arguments {
 public:
  Arguments(const Library *lib, plait_call *c) : lib_(lib), call_(c), owned_(lib) {}

  plait_status add(const plait_value &v) {
    Any *a = &all[n++];
    *a = {};
    switch (v.tag) {
      case PLAIT_NONE: return PLAIT_OK;
      case PLAIT_TENSOR: return tensor(a, v.u.t);
      case PLAIT_STRING:
        a->type = type_raw_string;
        a->v.s = v.u.s;
        return PLAIT_OK;
      case PLAIT_DTYPE:
        a->type = type_dtype;
        a->v.dtype = v.u.dtype;
        return PLAIT_OK;
      case PLAIT_DEVICE:
        a->type = type_device;
        a->v.device = v.u.device;
        return PLAIT_OK;
      case PLAIT_INTS: return list(a, v.n, [&](uint32_t i) { return integer(v.u.is[i]); });
      case PLAIT_FLOATS: return list(a, v.n, [&](uint32_t i) { return number(v.u.fs[i]); });
      case PLAIT_TENSORS: return tensors(a, v);
      case PLAIT_BOOL:
        *a = integer(v.u.i);
        a->type = type_bool;
        return PLAIT_OK;
      case PLAIT_INT: *a = integer(v.u.i); return PLAIT_OK;
      case PLAIT_FLOAT: *a = number(v.u.f); return PLAIT_OK;
      default:
        return call_->thread->runtime->fail(
            call_, PLAIT_TYPE_ERROR, "tvm-ffi has no %s, which its kernel was to be called with",
            v.tag == PLAIT_COMPLEX ? "complex numbers" : "generators");
    }
  }

  Any all[PLAIT_MAX_ARGS + PLAIT_MAX_RESULTS];
  int32_t n = 0;

 private:
  static Any integer(int64_t i) {
    Any a{};
    a.type = type_int;
    a.v.i = i;
    return a;
  }
  static Any number(double f) {
    Any a{};
    a.type = type_float;
    a.v.f = f;
    return a;
  }
  template <class F>
  plait_status list(Any *to, uint32_t count, F &&item) {
    std::vector<Any> items(count);
    for (uint32_t i = 0; i < count; i++) items[i] = item(i);
    void *result = array_of(lib_, items.data(), count);
    if (!result) return call_->thread->runtime->fail(call_, PLAIT_MEMORY_ERROR, "out of memory");
    to->type = type_array;
    to->v.p = owned_.keep(result);
    return PLAIT_OK;
  }
  // a Tensor, and no borrowed DLTensor: functions keep them, and Python's crash over the others
  plait_status tensor(Any *to, plait_tensor *t) {
    void *result = tensor_of(lib_, call_->thread, t);
    if (!result) return call_->thread->error->code;
    to->type = type_tensor;
    to->v.p = owned_.keep(result);
    return PLAIT_OK;
  }
  plait_status tensors(Any *to, const plait_value &v) {
    std::vector<Any> items(v.n);
    for (uint32_t i = 0; i < v.n; i++)
      if (v.u.ts[i])
        if (const plait_status s = tensor(&items[i], v.u.ts[i]); s < 0) return s;
    return list(to, v.n, [&](uint32_t i) { return items[i]; });
  }

  const Library *lib_;
  plait_call *call_;
  Owned owned_;
};

// The stream of a call is that of the functions which it calls.
class InStream {
 public:
  InStream(const Library *lib, const plait_call *c) : lib_(lib), device_(c->device) {
    if (device_.device_type != kDLCPU)
      lib_->set_stream(device_.device_type, device_.device_id,
                       c->stream ? c->stream->native : nullptr, &before_);
  }
  ~InStream() {
    if (device_.device_type != kDLCPU)
      lib_->set_stream(device_.device_type, device_.device_id, before_, nullptr);
  }
  InStream(const InStream &) = delete;
  InStream &operator=(const InStream &) = delete;

 private:
  const Library *lib_;
  DLDevice device_;
  void *before_ = nullptr;
};

plait_status status_of(const Bytes &kind) {
  static const struct {
    const char *kind;
    plait_status status;
  } known[] = {{"ValueError", PLAIT_VALUE_ERROR},     {"TypeError", PLAIT_TYPE_ERROR},
               {"IndexError", PLAIT_INDEX_ERROR},     {"MemoryError", PLAIT_MEMORY_ERROR},
               {"TimeoutError", PLAIT_TIMEOUT_ERROR}, {"NotImplementedError", PLAIT_DECLINE}};
  for (const auto &each : known)
    if (strlen(each.kind) == kind.size && memcmp(each.kind, kind.data, kind.size) == 0)
      return each.status;
  return PLAIT_ERROR;
}

plait_status failure(const Library *lib, plait_call *c, int code) {
  if (code == -2) {  // an exception of Python is set
    const Gil gil;
    return keep(c->thread);
  }
  void *error = nullptr;
  lib->take_error(&error);
  if (!error) return c->thread->runtime->fail(c, PLAIT_ERROR, "its kernel failed with %d", code);
  const auto *e = static_cast<const Error *>(error);
  plait_status s = status_of(e->kind);
  if (s != PLAIT_DECLINE)
    s = c->thread->runtime->fail(c, s, "%.*s", int(e->message.size), e->message.data);
  lib->release(error);
  return s;
}

plait_status run(plait_call *c) {
  auto *kernel = static_cast<TvmKernel *>(static_cast<Registered *>(c->self->ctx));
  const TvmKernel::Use use(kernel);
  void *function = use.function();
  if (!function) return PLAIT_DECLINE;  // the kernel was closed since the call began
  const Library *lib = kernel->lib;
  Arguments args(lib, c);
  plait_status s = PLAIT_OK;
  for (uint32_t i = 0; s >= 0 && i < c->n_in; i++) s = args.add(c->in[i]);
  for (uint32_t i = 0; s >= 0 && i < c->n_out; i++) s = args.add(c->out[i]);
  if (s < 0) return s;
  const BelowLayers below(c->thread);
  const InStream stream(lib, c);
  Any result{};
  const int code = lib->call(function, args.all, args.n, &result);
  if (code != 0) return failure(lib, c, code);
  if (result.type >= type_objects) lib->release(result.v.p);
  if (result.type == type_none) return PLAIT_OK;
  return c->thread->runtime->fail(
      c, PLAIT_TYPE_ERROR,
      "a kernel of tvm-ffi fills in its results, which come behind its arguments, and returns "
      "nothing");
}

PyObject *implement(PyObject *, PyObject *args) {
  const char *name;
  unsigned long long function;
  PyObject *where;
  if (!PyArg_ParseTuple(args, "sKO", &name, &function, &where)) return nullptr;
  const Library *lib = library();
  if (!lib) return nullptr;
  auto result =
      std::make_unique<TvmKernel>(lib, reinterpret_cast<void *>(static_cast<uintptr_t>(function)));
  return register_kernel(name, where, "tvm_ffi", run, std::move(result));
}

PyMethodDef functions[] = {
    {"implement_tvm", entry<implement>, METH_VARARGS,
     "implement_tvm(name, function, device, /)\n--\n\nRegister a function of tvm-ffi, by its "
     "address, as the kernel of an operator; what is returned goes to `retract`."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace
}  // namespace plait::tvm

namespace plait::python {

bool add_tvm(PyObject *module) {
  return PyModule_AddFunctions(module, tvm::functions) == 0 &&
         PyModule_AddFunctions(module, tvm_functions) == 0;
}

}  // namespace plait::python
