// Declarations that the files of plait_abi.binding share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/gil.hpp>
#include <plait/plait.hpp>

#include <cstdlib>

namespace plait::python {

// Filled while the module is initialised; afterwards `tensor_type` and `tensor` change once.
struct State {
  const plait_runtime *runtime;
  PyObject *module;
  PyObject *argument_error, *shape_error, *range_error, *dtype_error, *memory_error, *plait_error,
      *linalg_error;
  PyTypeObject *operator_type, *method_type, *dtype_type, *device_type, *generator_type,
      *handle_type;
  // the first tensor type that was registered; its instances are recognised by their type
  PyTypeObject *tensor_type;
  const plait_tensor_type *tensor;
  PyObject *str_tensor, *str_function, *str_dlpack, *str_out, *str_requires_grad, *str_max_version,
      *str_plait_abi, *str_stream, *str_dl_device, *str_dlpack_device, *str_copy;
  PyObject *max_version;  // (1, 0)
  unsigned long main_thread;
  PyObject *(*node_object)(plait_object *);  // set by the engine's package
  int (*traverse)(plait_tensor *, visitproc, void *);  // set by the engine's package
  void (*untie)(plait_tensor *);
  uint64_t unlocked;  // calls that run without the GIL
  uint64_t modes;  // number of modes, of all threads, that see calls
};
extern State state;

// Releases the GIL for a scope; counts itself first, for the garbage collector
// (plait_python::unlocked).
class Unlocked {
 public:
  Unlocked() {
    __atomic_fetch_add(&state.unlocked, 1, __ATOMIC_RELAXED);
    saved_ = PyEval_SaveThread();
  }
  ~Unlocked() {
    __atomic_fetch_sub(&state.unlocked, 1, __ATOMIC_RELEASE);
    wait_for_lock([this] { PyEval_RestoreThread(saved_); });
  }
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;

 private:
  PyThreadState *saved_;
};

// From errors.cpp.
bool add_errors(PyObject *module);
PyObject *raise(plait_thread *, plait_status);
plait_status keep(plait_thread *);

// From host.cpp.
bool add_host(PyObject *module);
plait_object *hold(PyObject *);
PyObject *held(plait_object *);

// From frames.cpp.
bool is_own_file(PyObject *path);  // whether it is a file of plait's own packages
// Finds where this thread runs the program's code, innermost first; else its innermost code.
void find_user_code(plait_site *);

// From kernels.cpp: kernels written in Python.
bool add_kernels(PyObject *module);

// From tvm_kernels.cpp and tvm_functions.cpp: functions of tvm-ffi as kernels, and operators as
// functions of tvm-ffi.
bool add_tvm(PyObject *module);
extern PyMethodDef tvm_functions[];

// From layers.cpp: a layer written in Python, which sees calls below the one for derivatives.
bool add_layers(PyObject *module);
// Lets a function of Python, if there is one, serve a call for a layer: see plait_python::serve.
plait_status serve(plait_call *, PyObject *(*function)(), uint64_t bit);

// From probes.cpp: what registered kernels do with calls.
bool add_probes(PyObject *module);

// From communicators.cpp: the role "communicator".
bool add_communicators(PyObject *module);

// From engine.cpp: the role "engine".
bool add_engine(PyObject *module);

// From releases.cpp: references that C++ drops on any thread wait in this list for the GIL.
struct Release {
  Release *next;
  void (*run)(Release *);
};
void release_later(Release *);  // any thread, any lock held
bool release_now();  // the GIL is held and the interpreter is alive: no need to wait
bool interpreter_gone();  // the interpreter is shutting down: references are leaked
extern Release *waiting;  // atomic
void drain_waiting();
inline void drain() {
  if (__builtin_expect(__atomic_load_n(&waiting, __ATOMIC_RELAXED) != nullptr, 0)) drain_waiting();
}
bool add_releases(PyObject *module);

// From dtypes.cpp, devices.cpp, streams.cpp and generators.cpp.
bool add_dtypes(PyObject *module);
int dtype_from(PyObject *, DLDataType *);
PyObject *dtype_object(DLDataType);
bool add_devices(PyObject *module);
int device_from(PyObject *, DLDevice *);
PyObject *device_object(DLDevice);
// Whether a device is there; `caller`, which is to use it, raises an exception if not.
bool is_there(DLDevice, const char *caller);
// Imports the installed package that offers a device type which no plug-in brings yet, once. False
// with an exception.
bool load_component(DLDevice);
// What an argument names that means an accelerator: a device, a number of the current accelerator,
// or None, which is the current one, or the CPU if there is none. False with an exception.
bool accelerator_from(PyObject *, const char *caller, DLDevice *);
bool add_ranges(PyObject *module);   // ranges.cpp
bool add_streams(PyObject *module);  // streams.cpp
// The device and the stream of a Stream; false with an exception.
bool stream_from(PyObject *, const char *caller, DLDevice *, plait_stream **);
plait_device_event *event_from(PyObject *, const char *caller);  // nullptr with an exception
PyObject *event_object(DLDevice, plait_device_event *);  // takes the event over
bool add_accelerators(PyObject *module);  // accelerators.cpp
bool add_generators(PyObject *module);
PyObject *generator_object(plait_generator *);
plait_generator *generator_from(PyObject *);

// From tensor_types.cpp: what an argument's type can do, looked up once for each type.
struct TypeFacts {
  PyTypeObject *type;
  unsigned version;
  int asks;  // asks_by_function, asks_by_protocol or 0
  bool array;  // supports DLPack: can be wrapped for the duration of a call
  const plait_tensor_type *tensor;  // has __plait_tensor__
};
const TypeFacts *facts(PyTypeObject *);  // nullptr with an exception
int set_tensor_type(PyTypeObject *, const plait_tensor_type *);
plait_tensor *unwrap(PyObject *);
PyObject *wrap(plait_tensor *);
inline plait_tensor *handle_of(PyObject *o, const plait_tensor_type *type) {
  if (type->handle_offset)
    return *reinterpret_cast<plait_tensor **>(reinterpret_cast<char *>(o) + type->handle_offset);
  return type->unwrap(o);
}
void forget_facts();
int overrides(PyObject *);  // the protocol by which its class sees calls; -1 with an exception

// From asking.cpp: classes and modes that handle calls in the place of plait.
enum { asks_by_function = 1, asks_by_protocol = 2 };  // by `__plait_function__`, or by set_protocol
enum { everybody_asked = 0, modes_asked = 1, nobody_asked = 2 };
int asks_by(PyTypeObject *);  // asks_by_protocol or 0; -1 with an exception
bool protocol_is_off();  // in this thread
inline bool any_mode() { return __atomic_load_n(&state.modes, __ATOMIC_RELAXED) != 0; }
PyObject *ask_overrides(PyObject *function, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
bool add_asking(PyObject *module);

// From foreign.cpp, export.cpp and handle_type.cpp.
// A handle on foreign bytes; takes `block` over, also on failure. Needs no GIL.
plait_status foreign_tensor(plait_thread *, const DLTensor &, bool readonly,
                            void (*release)(void *block), void *block, plait_tensor **out);
plait_tensor *import_array(plait_thread *, PyObject *);
plait_tensor *import_dlpack(plait_thread *, PyObject *capsule);
// takes the struct over, also on failure
plait_tensor *import_managed(plait_thread *, DLManagedTensorVersioned *);
PyObject *ask_dlpack(PyObject *array, const DLDevice *required, PyObject *copy);
PyObject *export_dlpack(plait_tensor *, int versioned, uint64_t flags);
DLManagedTensorVersioned *export_managed(plait_tensor *, uint64_t flags);
// the same without the GIL and without an exception; nullptr if there is no memory. The tensor is
// not on the device meta.
DLManagedTensorVersioned *new_managed(plait_tensor *, uint64_t flags);
int hand_over(plait_tensor *, PyObject *stream);
void exported(plait_storage *, int out);  // exported by other means than DLPack, or the end of that
// the live storage that these bytes were exported from, as a new reference, or nullptr
plait_storage *exported_storage(const void *begin, const void *end);
bool add_handle_type(PyObject *module);
PyObject *wrap_handle(plait_tensor *);

// Memory and references that live as long as one call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  ~Scratch() {
    if (nodes_) clean();
  }
  void *room(size_t bytes) {
    bytes = (bytes + 15) & ~size_t(15);
    if (used_ + bytes > sizeof buffer_) return far_room(bytes);
    used_ += bytes;
    return buffer_ + used_ - bytes;
  }
  void at_end(void (*run)(void *), void *p);
  void keep(plait_tensor *t) {
    at_end([](void *p) { plait_release(static_cast<plait_tensor *>(p)); }, t);
  }
  void keep(PyObject *o) {
    at_end([](void *p) { Py_DECREF(static_cast<PyObject *>(p)); }, o);
  }

 private:
  struct Node {
    Node *next;
    void (*run)(void *);
    void *p;
  };
  void *far_room(size_t);
  void clean();
  Node *nodes_ = nullptr;
  size_t used_ = 0;
  alignas(16) char buffer_[512];
};

// From convert.cpp.
struct Foreign {  // an array that is an argument by way of a temporary handle
  Foreign *next;
  plait_tensor *handle;
  PyObject *object;
};
struct Bound {  // the arguments of one call, while they are converted
  plait_thread *thread;
  const plait_tensor_type *type =
      nullptr;  // of the first tensor argument: its wrap makes the results
  Foreign *foreign = nullptr;
  bool overridden = false, requires_grad = false, pin_memory = false;
  uint32_t form;
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  Scratch scratch;
};
int convert(const plait_arg &, PyObject *, Bound &, plait_value *);  // plait_conversion
int tensor_from(PyObject *, Bound &, plait_value *);
int number_from(PyObject *, Scratch *, plait_value *);
int operand(plait_thread *, PyObject *, plait_value *);
const char *kind_name(const plait_arg &, char *room, size_t size);

// From operators.cpp, overloads.cpp and results.cpp.
struct Overload {
  const plait_op *op;
  PyObject *name[PLAIT_MAX_ARGS], *second[PLAIT_MAX_ARGS];  // interned
  uint16_t n_positional;
  int16_t varargs;  // index, or -1
  bool creates;  // has a `device`: takes requires_grad=, pin_memory= and layout= as well
  PyTypeObject *result_type;  // named results, or nullptr
};
struct Mismatch {
  enum Reason { none, too_many, missing, unexpected, twice, type } reason = none;
  int arg = -1;
  PyObject *got = nullptr;  // borrowed: the object, or the keyword
  Py_ssize_t count = 0;
};
// fills in what was given and the defaults; a plait_conversion
int bind(const Overload &, uint32_t form, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
         Bound &, Mismatch &);
void explain(const char *base, const Overload &, const Mismatch &);
void locate(const char *base, const Overload &, const Mismatch &);
void explain_all(const char *base, const Overload *, size_t n, PyObject *const *args,
                 Py_ssize_t n_args, PyObject *kwnames);
bool add_operators(PyObject *module);
bool add_functions(PyObject *module);
PyObject *new_operator(const char *name, uint32_t form);
plait_status call(plait_call *);
// Warns about the line of the program that called plait; false with an exception.
bool warn(const std::string &text);
PyObject *results(plait_call *);
PyObject *results_of(plait_call *, const Bound *, PyTypeObject *result_type);
std::string &shown_module();  // the module that texts and classes name
bool show_named_results(const char *module);  // false with a Python error
PyTypeObject *named_results(
    const plait_op *);  // borrowed; nullptr without an exception if they have no names
const plait_engine *engine();

}  // namespace plait::python
