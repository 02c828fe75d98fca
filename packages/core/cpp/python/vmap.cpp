// Calls of functions by `vmap`: the calls that each thread is in, and the way of arguments and
// results that are plain tensors (docs/design/0043). Containers, history, chunks and errors are
// left to Python.
#include <atomic>
#include <vector>

#include "batching.hpp"

namespace plait::core {
namespace {

enum Randomness : uint8_t { randomness_error, randomness_different, randomness_same };
constexpr const char *randomness_names[] = {"error", "different", "same"};

// A call of a function: its number, which is larger than those of the calls around it.
struct Level {
  int64_t number, size;
  Randomness randomness;
  uint64_t
      seen_before;  // the layer's bit if operators that draw random numbers were seen around it
};
thread_local std::vector<Level> levels;  // from the outermost call
std::atomic<int64_t> last_number{0};

int64_t begin_level(int64_t size, Randomness randomness) {
  const int64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t layer = batching_layer();
  plait_thread *thread = state.runtime->thread();
  levels.push_back({number, size, randomness, thread->included & layer});
  if (randomness != randomness_same) thread->included |= layer;
  return number;
}

void end_level() {
  const uint64_t layer = batching_layer();
  plait_thread *thread = state.runtime->thread();
  thread->included = (thread->included & ~layer) | levels.back().seen_before;
  levels.pop_back();
}

bool is_randomness(PyObject *text, Randomness *found) {
  for (int i = 0; i < 3; i++) {
    if (!PyUnicode_Check(text) || PyUnicode_CompareWithASCIIString(text, randomness_names[i]))
      continue;
    *found = Randomness(i);
    return true;
  }
  return false;
}

PyObject *level_object(const Level &level) {
  return Py_BuildValue("LLs", static_cast<long long>(level.number),
                       static_cast<long long>(level.size), randomness_names[level.randomness]);
}

PyObject *begin(PyObject *, PyObject *const *args, Py_ssize_t n) {
  Randomness randomness;
  if (n != 2 || !PyLong_Check(args[0]) || !is_randomness(args[1], &randomness))
    return PyErr_Format(PyExc_TypeError, "_begin_vmap: (size, randomness) is required");
  const int64_t size = PyLong_AsLongLong(args[0]);
  if (size == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLongLong(begin_level(size, randomness));
}

PyObject *end(PyObject *, PyObject *) {
  if (!levels.empty()) end_level();
  Py_RETURN_NONE;
}

PyObject *innermost(PyObject *, PyObject *) {
  if (levels.empty()) Py_RETURN_NONE;
  return level_object(levels.back());
}

PyObject *find(PyObject *, PyObject *number) {
  const int64_t wanted = PyLong_AsLongLong(number);
  if (wanted == -1 && PyErr_Occurred()) return nullptr;
  for (const Level &level : levels)
    if (level.number == wanted) return level_object(level);
  Py_RETURN_NONE;
}

// This thread is in a call for a scope.
class Inside {
 public:
  Inside(int64_t size, Randomness randomness) : number_(begin_level(size, randomness)) {}
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;
  ~Inside() { end_level(); }
  int64_t number() const { return number_; }

 private:
  int64_t number_;
};

bool has_history(const plait_tensor *t) {
  const plait_engine *e = role<plait_engine>(state.runtime);
  return e && (t->layers >> e->layer & 1);
}

// A dimension that counts from the end, as one that counts from the front; -1: there is none.
int dimension(PyObject *number, int ndim) {
  const long dim = PyLong_AsLong(number);
  return dim < -ndim || dim >= ndim ? -1 : int(dim < 0 ? dim + ndim : dim);
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
  return call(op_permute, {value(t), list});
}

constexpr Py_ssize_t max_arguments = 16;

// A call that needs no more than its arguments say: tensors without history, each with a dimension
// or None.
class PlainCall {
 public:
  PlainCall() = default;
  PlainCall(const PlainCall &) = delete;
  PlainCall &operator=(const PlainCall &) = delete;
  ~PlainCall() {
    for (Py_ssize_t i = 0; i < n_; i++) Py_XDECREF(leaves_[i + 1]);
  }

  // false: it is another kind of call, or one with an error
  bool is_plain(PyObject *args, PyObject *in_dims) {
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    const bool each = PyTuple_CheckExact(in_dims);
    if (n > max_arguments || (each && PyTuple_GET_SIZE(in_dims) != n)) return false;
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject *dim = each ? PyTuple_GET_ITEM(in_dims, i) : in_dims;
      PyObject *leaf = PyTuple_GET_ITEM(args, i);
      if (!is_tensor(leaf)) return false;
      dims_[i] = -1;
      if (dim == Py_None) continue;
      const plait_tensor *t = handle_of(leaf);
      if (!PyLong_CheckExact(dim) || has_history(t)) return false;
      dims_[i] = dimension(dim, t->dl.ndim);
      if (dims_[i] < 0 || (size_ >= 0 && size_ != t->dl.shape[dims_[i]])) return false;
      size_ = t->dl.shape[dims_[i]];
    }
    return size_ > 0;
  }
  int64_t size() const { return size_; }

  // The result of the function; nullptr with an exception.
  PyObject *run(PyObject *function, PyObject *args, int64_t level) {
    for (n_ = 0; n_ < PyTuple_GET_SIZE(args); n_++) {
      PyObject *leaf = PyTuple_GET_ITEM(args, n_);
      leaves_[n_ + 1] = dims_[n_] < 0 ? new_reference(leaf) : entered(leaf, dims_[n_], level);
      if (!leaves_[n_ + 1]) return nullptr;
    }
    return PyObject_Vectorcall(function, leaves_ + 1, size_t(n_) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               nullptr);
  }

 private:
  static PyObject *entered(PyObject *leaf, int dim, int64_t level) {
    plait_tensor *samples = with_dimension_at(handle_of(leaf), dim, 0), *made = nullptr;
    if (!samples) return nullptr;
    plait_thread *thread = state.runtime->thread();
    const plait_status s = make_batched(thread, samples, level, &made);
    return s < 0 ? state.python->raise(thread, s) : wrap(made);
  }

  PyObject *leaves_[max_arguments + 1]{};  // the first place is for those who are called
  Py_ssize_t n_ = 0;
  int dims_[max_arguments];
  int64_t size_ = -1;
};

bool is_plain_result(PyObject *result, int64_t level, PyObject *dim) {
  if (!is_tensor(result) || has_history(handle_of(result))) return false;
  const plait_tensor *samples = samples_at(handle_of(result), level);
  return samples && dimension(dim, samples->dl.ndim) >= 0;
}

PyObject *left(PyObject *result, int64_t level, PyObject *dim) {
  plait_tensor *samples = samples_at(handle_of(result), level);
  plait_tensor *made = with_dimension_at(samples, 0, dimension(dim, samples->dl.ndim));
  return made ? wrap(made) : nullptr;
}

// A tensor, or a tuple of them, of samples; nullptr without an exception: it is something else.
PyObject *plain_results(PyObject *results, int64_t level, PyObject *dim) {
  if (!PyLong_CheckExact(dim)) return nullptr;
  if (is_plain_result(results, level, dim)) return left(results, level, dim);
  if (!PyTuple_CheckExact(results)) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(results);
  for (Py_ssize_t i = 0; i < n; i++)
    if (!is_plain_result(PyTuple_GET_ITEM(results, i), level, dim)) return nullptr;
  Object made(PyTuple_New(n));
  for (Py_ssize_t i = 0; made && i < n; i++) {
    PyObject *one = left(PyTuple_GET_ITEM(results, i), level, dim);
    if (!one) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, one);
  }
  return made.release();
}

PyObject *vmap(PyObject *, PyObject *const *a, Py_ssize_t n) {
  Randomness randomness;
  if (n != 7 || !PyTuple_CheckExact(a[1]) || !is_randomness(a[4], &randomness))
    return PyErr_Format(PyExc_TypeError,
                        "_vmap: (func, args, in_dims, out_dims, randomness, general, results) is "
                        "required");
  PyObject *func = a[0], *args = a[1], *out_dims = a[3];
  PlainCall plain;
  if (!batching_layer() || !plain.is_plain(args, a[2])) {
    const Object no_keywords(PyDict_New());
    return no_keywords ? PyObject_CallFunctionObjArgs(a[5], func, args, no_keywords.get(), a[2],
                                                      out_dims, a[4], nullptr)
                       : nullptr;
  }
  Object results;
  int64_t level;
  {
    const Inside inside(plain.size(), randomness);
    level = inside.number();
    results = Object(plain.run(func, args, level));
  }
  if (!results) return nullptr;
  PyObject *made = plain_results(results.get(), level, out_dims);
  if (made || PyErr_Occurred()) return made;
  return PyObject_CallFunction(a[6], "OOLL", results.get(), out_dims, static_cast<long long>(level),
                               static_cast<long long>(plain.size()));
}

PyMethodDef functions[] = {
    {"_begin_vmap", function(entry<begin>), METH_FASTCALL,
     "_begin_vmap(size, randomness, /)\n--\n\nBegin a call of vmap in this thread; its number."},
    {"_end_vmap", entry<end>, METH_NOARGS,
     "_end_vmap()\n--\n\nEnd the innermost call of vmap of this thread."},
    {"_innermost_vmap", entry<innermost>, METH_NOARGS,
     "_innermost_vmap()\n--\n\n(number, size, randomness) of the innermost call of vmap; None."},
    {"_find_vmap", entry<find>, METH_O,
     "_find_vmap(number, /)\n--\n\n(number, size, randomness) of a call that this thread is in; "
     "None."},
    {"_vmap", function(entry<vmap>), METH_FASTCALL,
     "_vmap(func, args, in_dims, out_dims, randomness, general, results, /)\n--\n\nCall a function "
     "once for all samples of tensors. general(func, args, kwargs, in_dims, out_dims, randomness) "
     "serves what is not only tensors without history; results(made, out_dims, level, size) gives "
     "results that are not only tensors of samples."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_vmap(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::core
