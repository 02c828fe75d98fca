// Calls of functions by `vmap`: the calls that each thread is in, and the way of arguments and
// results (docs/design/0043). Containers other than tuples, lists and dicts, chunks and
// errors are left to Python.
#include <plait/fork.hpp>
#include <plait/layer.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "batched.hpp"

namespace plait::func {
namespace {

enum Randomness : uint8_t { randomness_error, randomness_different, randomness_same };
constexpr const char *randomness_names[] = {"error", "different", "same"};

// A call of a function: its number, which is larger than those of the calls around it, and
// whether the layer saw every operator around it.
struct Level {
  int64_t number, size;
  Randomness randomness;
  bool seen_before;
};
thread_local std::vector<Level> levels;  // from the outermost call
std::atomic<int64_t> last_number{0};
// The numbers of the calls of all threads: backward passes run on other threads, too.
ProcessLock open_lock;
std::vector<int64_t> open_calls;

int64_t new_number() { return last_number.fetch_add(1, std::memory_order_relaxed) + 1; }

// The layers see every operator: those that draw random numbers, what they make, and calls on
// handles whose storage has become batched through another handle.
void begin_level(int64_t number, int64_t size, Randomness randomness) {
  {
    const std::lock_guard<ProcessLock> lock(open_lock);
    open_calls.push_back(number);
  }
  plait_thread *thread = state.runtime->thread();
  const uint64_t layers = batching_layers();
  const bool seen = thread->included & layers;
  levels.push_back({number, size, randomness, seen});
  open_scope(number, size);
  watch_calls(thread, layers, true);
}

void end_level() {
  watch_calls(state.runtime->thread(), batching_layers(), levels.back().seen_before);
  {
    const std::lock_guard<ProcessLock> lock(open_lock);
    open_calls.erase(std::find(open_calls.begin(), open_calls.end(), levels.back().number));
  }
  close_scope();
  levels.pop_back();
}

bool is_randomness(PyObject *text, Randomness *result) {
  for (int i = 0; i < 3; i++) {
    if (!PyUnicode_Check(text) || PyUnicode_CompareWithASCIIString(text, randomness_names[i]))
      continue;
    *result = Randomness(i);
    return true;
  }
  return false;
}

PyObject *level_object(const Level &level) {
  return Py_BuildValue("LLs", static_cast<long long>(level.number),
                       static_cast<long long>(level.size), randomness_names[level.randomness]);
}

PyObject *innermost(PyObject *, PyObject *) {
  if (levels.empty()) Py_RETURN_NONE;
  return level_object(levels.back());
}

PyObject *all_levels(PyObject *, PyObject *) {
  Object result(PyList_New(0));
  for (const Level &level : levels) {
    const Object one(result ? level_object(level) : nullptr);
    if (!one || PyList_Append(result.get(), one.get()) < 0) return nullptr;
  }
  return result.release();
}

PyObject *find(PyObject *, PyObject *number) {
  const int64_t required = PyLong_AsLongLong(number);
  if (required == -1 && PyErr_Occurred()) return nullptr;
  for (const Level &level : levels)
    if (level.number == required) return level_object(level);
  Py_RETURN_NONE;
}

PyObject *check_backward(PyObject *, PyObject *) {
  if (!refuse_backward()) return nullptr;
  Py_RETURN_NONE;
}

PyObject *is_open(PyObject *, PyObject *number) {
  const int64_t required = PyLong_AsLongLong(number);
  if (required == -1 && PyErr_Occurred()) return nullptr;
  const std::lock_guard<ProcessLock> lock(open_lock);
  return PyBool_FromLong(std::find(open_calls.begin(), open_calls.end(), required) !=
                         open_calls.end());
}

// This thread is in a call for a scope.
class Inside {
 public:
  Inside(int64_t number, int64_t size, Randomness randomness) {
    begin_level(number, size, randomness);
  }
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;
  ~Inside() { end_level(); }
};

// In C++, as Python could be interrupted between the beginning of a call and a `try` around it.
PyObject *within(PyObject *, PyObject *const *args, Py_ssize_t n) {
  Randomness randomness;
  if (n != 3 || !PyLong_Check(args[0]) || !is_randomness(args[1], &randomness))
    return PyErr_Format(PyExc_TypeError, "within: (size, randomness, func) is required");
  const int64_t size = PyLong_AsLongLong(args[0]);
  if (size == -1 && PyErr_Occurred()) return nullptr;
  const Object number(PyLong_FromLongLong(new_number()));
  if (!number) return nullptr;
  const Inside inside(PyLong_AsLongLong(number.get()), size, randomness);
  return PyObject_CallOneArg(args[2], number.get());
}

// Calls a function outside of a call of vmap that this thread is in, and of those within.
class Outside {
 public:
  explicit Outside(int64_t number) : thread_(state.runtime->thread()), kept_(levels) {
    const auto first = std::find_if(levels.begin(), levels.end(),
                                    [&](const Level &level) { return level.number >= number; });
    if (first == levels.end()) return;
    const bool seen = first->seen_before;
    levels.erase(first, levels.end());
    scopes_ = leave_scopes(number);
    included_ = thread_->included;
    watch_calls(thread_, batching_layers(), seen);
    left_ = true;
  }
  Outside(const Outside &) = delete;
  Outside &operator=(const Outside &) = delete;
  ~Outside() {
    if (!left_) return;
    levels = kept_;
    thread_->included = included_;
    enter_scopes(scopes_);
  }

 private:
  plait_thread *thread_;
  std::vector<Level> kept_;
  std::vector<Scope> scopes_;
  uint64_t included_ = 0;
  bool left_ = false;
};

PyObject *outside(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "outside: (number, func) is required");
  const int64_t number = PyLong_AsLongLong(args[0]);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  const Outside scope(number);
  return PyObject_CallNoArgs(args[1]);
}

bool has_history(const plait_tensor *t) {
  const plait_engine *e = role<plait_engine>(state.runtime);
  return e && (t->layers >> e->layer & 1);
}

bool is_recording() {
  const plait_engine *e = role<plait_engine>(state.runtime);
  return e && e->enabled(e->ctx, state.runtime->thread());
}

// A dimension that counts from the end, as one that counts from the front; -1: there is none.
int dimension(PyObject *number, int ndim) {
  const long dim = PyLong_AsLong(number);
  return dim < -ndim || dim >= ndim ? -1 : int(dim < 0 ? dim + ndim : dim);
}

// `permute` of a tensor, a new handle; nullptr with an exception.
plait_tensor *permute(plait_tensor *t, const plait_value &dims) {
  static const plait_op *op = state.runtime->op("permute");
  if (!op) return PyErr_SetString(PyExc_NotImplementedError, "permute: no such operator"), nullptr;
  plait_value in[PLAIT_MAX_ARGS]{value(t), dims}, out[PLAIT_MAX_RESULTS]{};
  for (uint16_t i = 2; i < op->n_args; i++) in[i] = plait_arg_at(op, i)->value;
  plait_call c{};
  c.size = sizeof c;
  c.op = op;
  c.n_in = op->n_args;
  c.n_out = op->n_results;
  c.in = in;
  c.out = out;
  c.thread = state.runtime->thread();
  const plait_status s = state.python->call(&c);
  if (s == PLAIT_OK) return out->u.t;
  state.runtime->release_value(out);
  return state.python->raise(c.thread, s), nullptr;
}

// A new handle with one dimension in another place; nullptr with an exception.
plait_tensor *with_dimension_at(plait_tensor *t, int from, int to) {
  if (from == to) return plait_retain(t), t;
  int64_t dims[PLAIT_MAX_DIMS];
  int other = 0;
  for (int i = 0; i < t->dl.ndim; i++) {
    other += other == from;
    dims[i] = i == to ? from : other++;
  }
  plait_value list{};
  list.tag = PLAIT_INTS;
  list.n = uint32_t(t->dl.ndim);
  list.u.is = dims;
  return permute(t, list);
}

// Values that the function gets as they are, whatever `in_dims` says.
bool is_constant(PyObject *o) {
  const PyTypeObject *type = Py_TYPE(o);
  return o == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyComplex_Type || type == &PyUnicode_Type;
}

template <class Change>
PyObject *changed_dict(Object dict, PyObject *dim, Change &&change);
template <class Change>
PyObject *changed_tuple(PyObject *tuple, PyObject *dim, Change &&change);

// Changes what is in containers: tuples, lists and dicts, which are made anew. A dimension is that
// of all values in a container, or a tuple or list with one for each; dicts of dimensions, and
// other containers, are left to Python: nullptr without an exception.
template <class Change>
PyObject *changed(PyObject *value, PyObject *dim, Change &&change) {
  if (is_tensor(value) || is_constant(value)) return change(value, dim);
  const bool is_list = PyList_CheckExact(value), is_dict = PyDict_CheckExact(value);
  if (!is_list && !is_dict && !PyTuple_CheckExact(value)) return nullptr;
  if (Py_EnterRecursiveCall(" in the arguments of vmap")) return nullptr;
  Object result(is_list   ? PySequence_Tuple(value)
                : is_dict ? PyDict_Copy(value)
                          : new_reference(value));
  if (result)
    result = Object(is_dict ? changed_dict(std::move(result), dim, change)
                            : changed_tuple(result.get(), dim, change));
  Py_LeaveRecursiveCall();
  return result && is_list ? PySequence_List(result.get()) : result.release();
}

template <class Change>
PyObject *changed_dict(Object dict, PyObject *dim, Change &&change) {
  if (dim != Py_None && !PyLong_CheckExact(dim)) return nullptr;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict.get(), &at, &key, &value)) {
    const Object one(changed(value, dim, change));
    if (!one || PyDict_SetItem(dict.get(), key, one.get()) < 0) return nullptr;
  }
  return dict.release();
}

template <class Change>
PyObject *changed_tuple(PyObject *tuple, PyObject *dim, Change &&change) {
  const bool one_for_all = dim == Py_None || PyLong_CheckExact(dim);
  if (!one_for_all && !PyTuple_CheckExact(dim) && !PyList_CheckExact(dim)) return nullptr;
  const Object dims(one_for_all ? new_reference(dim) : PySequence_Tuple(dim));
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  if (!dims || (!one_for_all && PyTuple_GET_SIZE(dims.get()) != n)) return nullptr;
  Object made(PyTuple_New(n));
  for (Py_ssize_t i = 0; made && i < n; i++) {
    PyObject *its = one_for_all ? dim : PyTuple_GET_ITEM(dims.get(), i);
    PyObject *one = changed(PyTuple_GET_ITEM(tuple, i), its, change);
    if (!one) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, one);
  }
  return made.release();
}

// Arguments as the function gets them; `size` is the number of samples.
struct Entering {
  int64_t level, size = -1;

  PyObject *operator()(PyObject *value, PyObject *dim) {
    if (!is_tensor(value) || dim == Py_None) return new_reference(value);
    plait_tensor *t = handle_of(value);
    if (!PyLong_CheckExact(dim)) return nullptr;
    const int at = dimension(dim, t->dl.ndim);
    if (at < 0 || (size >= 0 && size != t->dl.shape[at])) return nullptr;
    size = t->dl.shape[at];
    plait_tensor *samples = with_dimension_at(t, at, 0), *result = nullptr;
    if (!samples) return nullptr;
    plait_thread *thread = state.runtime->thread();
    plait_status s = PLAIT_OK;
    if (has_history(samples)) {
      const Object owner(wrap(samples));
      if (!owner || is_recording()) return owner ? enter_recorded(owner.get(), level) : nullptr;
      samples = nullptr;
      s = state.runtime->tensor_alias(thread, handle_of(owner.get()), &samples);
    }
    if (s >= 0) s = make_batched(thread, samples, level, &result);
    return s < 0 ? state.python->raise(thread, s) : wrap(result);
  }
};

// Results as the caller gets them, if all are tensors of samples.
struct Leaving {
  int64_t level, size;

  PyObject *operator()(PyObject *value, PyObject *dim) {
    if (!is_tensor(value) || !PyLong_CheckExact(dim)) return nullptr;
    plait_tensor *t = handle_of(value);
    plait_tensor *own = samples_at(t, level);
    const Object owner(own ? wrap(own) : nullptr);
    const plait_tensor *samples = owner ? handle_of(owner.get()) : nullptr;
    const int at = samples ? dimension(dim, samples->dl.ndim) : -1;
    if (at < 0) return nullptr;
    Object recorded(has_history(t) ? leave_recorded(value, level, size) : nullptr);
    if (PyErr_Occurred()) return nullptr;
    plait_tensor *result = with_dimension_at(handle_of((recorded ? recorded : owner).get()), 0, at);
    return result ? wrap(result) : nullptr;
  }
};

PyObject *vmap(PyObject *, PyObject *const *a, Py_ssize_t n) {
  Randomness randomness;
  if (n != 8 || !PyTuple_CheckExact(a[1]) || !PyDict_CheckExact(a[2]) ||
      !is_randomness(a[5], &randomness))
    return PyErr_Format(PyExc_TypeError,
                        "vmap: (func, args, kwargs, in_dims, out_dims, randomness, general, "
                        "results) is required");
  PyObject *func = a[0], *args = a[1], *kwargs = a[2], *in_dims = a[3], *out_dims = a[4];
  Entering entering{new_number()};
  Object entered(batching_layers() ? changed(args, in_dims, entering) : nullptr);
  if (PyErr_Occurred()) return nullptr;
  if (!entered || entering.size < 0)
    return PyObject_CallFunctionObjArgs(a[6], func, args, kwargs, in_dims, out_dims, a[5], nullptr);
  Object results;
  {
    const Inside inside(entering.level, entering.size, randomness);
    results = Object(PyObject_Call(func, entered.get(), kwargs));
  }
  entered = Object();
  if (!results) return nullptr;
  PyObject *result = changed(results.get(), out_dims, Leaving{entering.level, entering.size});
  if (result || PyErr_Occurred()) return result;
  return PyObject_CallFunction(a[7], "OOLL", results.get(), out_dims,
                               static_cast<long long>(entering.level),
                               static_cast<long long>(entering.size));
}

PyMethodDef methods[] = {
    {"within", function(entry<within>), METH_FASTCALL,
     "within(size, randomness, func, /)\n--\n\nfunc(number) within a call of vmap of this "
     "thread, which has this number."},
    {"outside", function(entry<outside>), METH_FASTCALL,
     "outside(number, func, /)\n--\n\nfunc() outside of a call of vmap of this thread and "
     "of those within."},
    {"innermost", entry<innermost>, METH_NOARGS,
     "innermost()\n--\n\n(number, size, randomness) of the innermost call of vmap; None."},
    {"calls", entry<all_levels>, METH_NOARGS,
     "calls()\n--\n\n(number, size, randomness) of the calls that this thread is in, the "
     "outermost first."},
    {"check_backward", entry<check_backward>, METH_NOARGS,
     "check_backward()\n--\n\nRaise within a call of vmap of this thread, where no gradients can "
     "be added to leaves."},
    {"is_open", entry<is_open>, METH_O,
     "is_open(number, /)\n--\n\nWhether some thread is in this call of vmap."},
    {"find", entry<find>, METH_O,
     "find(number, /)\n--\n\n(number, size, randomness) of a call that this thread is in; "
     "None."},
    {"vmap", function(entry<vmap>), METH_FASTCALL,
     "vmap(func, args, kwargs, in_dims, out_dims, randomness, general, results, /)\n--\n\n"
     "Call a function once for all samples of tensors. general(func, args, kwargs, in_dims, "
     "out_dims, randomness) serves other containers than tuples, lists and dicts, and errors; "
     "results(made, out_dims, level, size) gives results that are not only tensors of samples."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool refuse_backward() {
  if (levels.empty()) return true;
  PyErr_SetString(PyExc_RuntimeError,
                  "backward: it was called in a function that vmap calls for all samples at once; "
                  "the `.grad` of a tensor has no room for the gradients of each sample: use "
                  "func.grad or autograd.grad there, or call backward() after vmap");
  return false;
}

bool add_vmap(PyObject *module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace plait::func
