// plait_abi.binding: opens the runtime and hands out what Python extensions need (plait/python.h).
#include <dlfcn.h>
#include <plait/free_threads.h>

#include <string>
#include <vector>

#include "binding.hpp"

namespace plait::python {

State state;
const plait_python *publish();

namespace {

std::string library_path() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<void *>(&library_path), &here) || !here.dli_fname) return "";
  char *real = realpath(here.dli_fname, nullptr);
  std::string path = real ? real : here.dli_fname;
  std::free(real);
  return path.substr(0, path.rfind('/')) + "/lib/libplait_abi.so";
}

bool open_runtime() {
  const std::string path = library_path();
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    PyErr_Format(PyExc_ImportError, "plait_abi: the runtime could not be opened: %s", dlerror());
    return false;
  }
  auto *get = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"));
  auto *refusal = reinterpret_cast<const char *(*)()>(dlsym(library, "plait_runtime_refusal"));
  state.runtime = get ? get() : nullptr;
  if (!state.runtime) {
    const char *reason = refusal ? refusal() : nullptr;
    PyErr_Format(PyExc_ImportError, "plait_abi: %s",
                 reason ? reason : "the library is not plait's runtime");
    return false;
  }
  if (state.runtime->h.major == PLAIT_ABI_MAJOR && state.runtime->h.minor == PLAIT_ABI_MINOR)
    return true;
  PyErr_Format(PyExc_ImportError, "plait_abi: the runtime %s has version %d.%d; %d.%d is required",
               path.c_str(), state.runtime->h.major, state.runtime->h.minor, PLAIT_ABI_MAJOR,
               PLAIT_ABI_MINOR);
  return false;
}

bool add_names() {
  const struct {
    PyObject **to;
    const char *text;
  } names[] = {{&state.str_tensor, "__plait_tensor__"},
               {&state.str_function, "__plait_function__"},
               {&state.str_dlpack, "__dlpack__"},
               {&state.str_out, "out"},
               {&state.str_requires_grad, "requires_grad"},
               {&state.str_max_version, "max_version"},
               {&state.str_plait_abi, "plait_abi"},
               {&state.str_stream, "stream"},
               {&state.str_dl_device, "dl_device"},
               {&state.str_copy, "copy"},
               {&state.str_dlpack_device, "__dlpack_device__"}};
  for (const auto &n : names)
    if (!(*n.to = PyUnicode_InternFromString(n.text))) return false;
  state.max_version = Py_BuildValue("ii", 1, 0);
  state.main_thread = PyThread_get_thread_ident();
  Object threading(PyImport_ImportModule("threading"));
  Object main(threading ? PyObject_CallMethod(threading.get(), "main_thread", nullptr) : nullptr);
  Object ident(main ? PyObject_GetAttrString(main.get(), "ident") : nullptr);
  if (!ident || !state.max_version) return false;
  state.main_thread = PyLong_AsUnsignedLong(ident.get());
  return !PyErr_Occurred();
}

PyObject *load(PyObject *, PyObject *path) {
  Object bytes;
  PyObject *converted = nullptr;
  if (!PyUnicode_FSConverter(path, &converted)) return nullptr;
  bytes = Object(converted);
  plait_thread *thread = state.runtime->thread();
  plait_status s = PLAIT_OK;
  {
#ifdef Py_GIL_DISABLED
    const Unlocked others;  // it waits for another thread that loads the same component
#endif
    s = state.runtime->load(thread, PyBytes_AS_STRING(bytes.get()));
  }
  if (s < 0) return raise(thread, s);
  Py_RETURN_NONE;
}

PyObject *detach(PyObject *, PyObject *name) {
  const char *s = PyUnicode_AsUTF8(name);
  if (!s) return nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status failed = state.runtime->detach(thread, s);
  if (failed < 0) return raise(thread, failed);
  Py_RETURN_NONE;
}

bool is_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  const bool found = library && dlsym(library, "plait_plugin_v1");
  if (library) dlclose(library);
  return found;
}

// The plug-ins that hold the tables of devices.
PyObject *device_libraries(PyObject *, PyObject *) {
  Object out(PyList_New(0));
  for (int32_t type = kDLCPU + 1; out && type < PLAIT_MAX_DEVICE_TYPES; type++) {
    const auto *table = role<plait_device>(state.runtime, type);
    Dl_info here;
    if (!table || !dladdr(table, &here) || !here.dli_fname || !is_plugin(here.dli_fname)) continue;
    Object path(PyUnicode_DecodeFSDefault(here.dli_fname));
    if (!path || PyList_Append(out.get(), path.get()) < 0) return nullptr;
  }
  return out.release();
}

PyObject *records(PyObject *, PyObject *) {
  constexpr uint64_t size = sizeof(plait_record);
  std::vector<plait_record> list(state.runtime->report(nullptr, 0, size));
  const uint64_t now = state.runtime->report(list.data(), list.size(), size);
  list.resize(std::min<uint64_t>(list.size(), now));
  Object out(PyList_New(0));
  for (const plait_record &r : list) {
    const char *device =
        r.device_type ? device_name(state.runtime, int32_t(r.device_type)) : nullptr;
    Object line(Py_BuildValue("zzzzOsK", r.kind, r.name, r.provider, r.version,
                              r.active ? Py_True : Py_False, device ? device : "",
                              static_cast<unsigned long long>(r.count)));
    if (!out || !line || PyList_Append(out.get(), line.get()) < 0) return nullptr;
  }
  return out.release();
}

// How the table of every role begins.
struct NamedTable {
  plait_header h;
  const char *name;
};

PyObject *provided(PyObject *, PyObject *role) {
  const char *s = PyUnicode_AsUTF8(role);
  if (!s) return nullptr;
  const auto *table = PLAIT_ROLE(NamedTable, state.runtime->role(s, kDLCPU));
  const char *result = table ? table->name : nullptr;
  return result ? PyUnicode_FromString(result) : new_reference(Py_None);
}

PyObject *set_type(PyObject *, PyObject *type) {
  if (!PyType_Check(type))
    return PyErr_Format(PyExc_TypeError, "set_tensor_type: a class is required, got %R", type);
  const TypeFacts *f = facts(reinterpret_cast<PyTypeObject *>(type));
  if (f && !f->tensor)
    PyErr_Format(PyExc_TypeError,
                 "set_tensor_type: a class with `__plait_tensor__` is required, got %R", type);
  if (!f || !f->tensor || set_tensor_type(f->type, f->tensor) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject *own_file(PyObject *, PyObject *path) {
  if (!PyUnicode_Check(path))
    return PyErr_Format(PyExc_TypeError, "is_own_file: a str is required, got %s",
                        Py_TYPE(path)->tp_name);
  return PyBool_FromLong(is_own_file(path));
}

PyObject *in_main_interpreter(PyObject *, PyObject *) {
  return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

PyMethodDef functions[] = {
    {"in_main_interpreter", entry<in_main_interpreter>, METH_NOARGS,
     "Whether the caller runs in the process's first interpreter."},
    {"is_own_file", entry<own_file>, METH_O,
     "Whether a path is of a file of plait's own packages, so that its frames are not the user's."},
    {"load", entry<load>, METH_O,
     "load(path, /)\n--\n\nLoad a component's shared library. A second call for the same file does "
     "nothing.\n\n"
     "Example:\n"
     "    >>> import plait_abi, plait_core\n"
     "    >>> plait_abi.load(plait_abi.paths('plait_core')['libplait_core.so'])"},
    {"detach", entry<detach>, METH_O,
     "detach(plugin, /)\n--\n\nTake back all that a plug-in registered; what it lent stays "
     "valid.\n\n"
     "Example:\n"
     "    >>> import plait_abi, plait_core as pc\n"
     "    >>> def nothing(x, out):\n"
     "    ...     return NotImplemented\n"
     "    >>> kernel = plait_abi.kernel('exp', nothing)\n"
     "    >>> plait_abi.detach(nothing.__module__)"},
    {"device_libraries", entry<device_libraries>, METH_NOARGS,
     "device_libraries()\n--\n\nThe libraries that brought devices, for another process to load."},
    {"records", entry<records>, METH_NOARGS,
     "records()\n--\n\n(kind, name, provider, version, active, device, calls) of all that is "
     "registered."},
    {"provided", entry<provided>, METH_O,
     "provided(role, /)\n--\n\nThe name of what fills a role, or None."},
    {"set_tensor_type", entry<set_type>, METH_O,
     "set_tensor_type(type, /)\n--\n\nWrap results in this class; the first call counts."},
    {nullptr, nullptr, 0, nullptr}};

bool add_capsules(PyObject *module) {
  Object runtime(
      PyCapsule_New(const_cast<plait_runtime *>(state.runtime), "plait.runtime", nullptr));
  Object python(
      PyCapsule_New(const_cast<plait_python *>(publish()), "plait_abi.binding.python", nullptr));
  return runtime && python && PyModule_AddObjectRef(module, "runtime", runtime.get()) == 0 &&
         PyModule_AddObjectRef(module, "python", python.get()) == 0 &&
         PyModule_AddStringConstant(module, "library", state.runtime->path) == 0;
}

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "plait_abi.binding",
                       "plait's runtime, seen from Python.",
                       -1,
                       functions,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

const plait_python *publish() {
  static plait_python t{PLAIT_HEADER(plait_python),
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        raise,
                        keep,
                        unwrap,
                        wrap,
                        set_tensor_type,
                        new_operator,
                        call,
                        results,
                        operand,
                        overrides,
                        hold,
                        held,
                        drain_waiting,
                        dtype_from,
                        dtype_object,
                        device_from,
                        device_object,
                        generator_object,
                        generator_from,
                        import_array,
                        import_dlpack,
                        export_dlpack,
                        engine,
                        &state.node_object,
                        exported,
                        state.runtime->default_dtype,
                        &state.traverse,
                        &state.untie,
                        &state.unlocked,
                        ask_dlpack,
                        hand_over,
                        import_managed,
                        export_managed,
                        serve};
  t.runtime = state.runtime;
  t.operator_type = state.operator_type;
  t.dtype_type = state.dtype_type;
  t.device_type = state.device_type;
  t.generator_type = state.generator_type;
  return &t;
}

bool add_all(PyObject *module) {
  state.module = module;
  return add_names() && add_errors(module) && add_releases(module) && add_dtypes(module) &&
         add_devices(module) && add_streams(module) && add_accelerators(module) &&
         add_generators(module) && add_handle_type(module) && add_asking(module) &&
         add_operators(module) && add_functions(module) && add_ranges(module) && add_host(module) &&
         add_kernels(module) && add_tvm(module) && add_layers(module) && add_probes(module) &&
         add_communicators(module) && add_engine(module) && add_capsules(module);
}

// Plug-ins that the environment names: PLAIT_PLUGINS, paths with ":" between them. One behind a "?"
// is left out if it cannot be loaded.
bool load_named_plugins() {
  const char *names = std::getenv("PLAIT_PLUGINS");
  plait_thread *thread = state.runtime->thread();
  for (std::string rest = names ? names : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = rest.substr(0, end);
    rest.erase(0, end + 1);
    if (path.empty()) continue;
    const bool is_optional = path[0] == '?';
    const plait_status s = state.runtime->load(thread, path.c_str() + is_optional);
    if (s < 0 && is_optional) state.runtime->clear(thread);
    if (s >= 0 || is_optional) continue;
    PyErr_Format(PyExc_ImportError, "plait_abi: PLAIT_PLUGINS: %s",
                 thread->error ? thread->error->message : path.c_str());
    return false;
  }
  return true;
}

PyObject *initialise() {
  if (!open_runtime()) return nullptr;
#ifdef Py_GIL_DISABLED
  __atomic_fetch_or(state.runtime->settings, PLAIT_SETTING_FREE_THREADS, __ATOMIC_RELAXED);
#endif
  Object module(PyModule_Create(&definition));
  if (!module || plait_needs_no_lock(module.get()) < 0 || !add_all(module.get()) ||
      !load_named_plugins())
    return nullptr;
  return module.release();
}

}  // namespace plait::python

PyMODINIT_FUNC PyInit_binding(void) { return plait::python::initialise(); }
