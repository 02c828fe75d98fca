// Binding arguments to one overload by position, keyword and default, and the error text if no
// overload fits.
#include <string>

#include "binding.hpp"

namespace plait::python {
namespace {

// A second name of arguments in every operator, as in PyTorch: NumPy's names, and `input` for the
// first tensor. The others are names of ours that it stands for.
constexpr const char *kOtherNames[][4] = {
    {"input", "self", "A", "x"},
    {"x", "self", "input", "A"},
    {"a", "self", "input", "A"},
    {"x1", "self", "input", "A"},
    {"x2", "other", "other", "other"},
    {"axis", "dim", "dim", "dim"},
    {"keepdims", "keepdim", "keepdim", "keepdim"},
};

bool is_text(PyObject *keyword, const char *text) {
  return PyUnicode_CompareWithASCIIString(keyword, text) == 0;
}

int find_by_other_name(const Overload &o, PyObject *keyword) {
  for (const auto &names : kOtherNames) {
    if (!is_text(keyword, names[0])) continue;
    for (int i = 0; i < o.op->n_args; i++)
      for (int k = 1; k < 4; k++)
        if (is_text(o.name[i], names[k])) return i;
  }
  return -1;
}

// Index of the argument that a keyword names, or -1. Keywords from call sites are interned, so
// pointers are compared first.
int find(const Overload &o, PyObject *keyword) {
  const int n = o.op->n_args;
  for (int i = 0; i < n; i++)
    if (o.name[i] == keyword || o.second[i] == keyword) return i;
  for (int i = 0; i < n; i++)
    if (PyUnicode_Compare(o.name[i], keyword) == 0 ||
        (o.second[i] && PyUnicode_Compare(o.second[i], keyword) == 0))
      return i;
  return find_by_other_name(o, keyword);
}
bool is(PyObject *keyword, PyObject *name) {
  return keyword == name || PyUnicode_Compare(keyword, name) == 0;
}
bool is_one_of(PyObject *keyword, const char *a, const char *b) {
  return is_text(keyword, a) || is_text(keyword, b);
}
// pin_memory=: a bool or None
bool bind_pin_memory(PyObject *keyword, PyObject *value, Bound &b) {
  if (PyUnicode_CompareWithASCIIString(keyword, "pin_memory") != 0) return false;
  b.pin_memory = value == Py_True;
  return PyBool_Check(value) || value == Py_None;
}
// layout=strided is accepted, as all new tensors have it
bool is_standing(PyObject *keyword, PyObject *value) {
  if (PyUnicode_CompareWithASCIIString(keyword, "layout") != 0) return false;
  return value == Py_None ||
         (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "strided") == 0);
}

int mismatch(Mismatch &m, Mismatch::Reason reason, int arg, PyObject *got, Py_ssize_t count = 0) {
  m.reason = reason;
  m.arg = arg;
  m.got = got;
  m.count = count;
  return PLAIT_NOT_CONVERTIBLE;
}

// out=: a tensor, or a tuple or list of them; the call then has the form OUT
int bind_out(const Overload &o, PyObject *out, Bound &b, Mismatch &m) {
  const int n = o.op->n_results;
  if (out == Py_None) return PLAIT_CONVERTED;
  const bool list = PyTuple_Check(out) || PyList_Check(out);
  if (n > 1 && !list) return mismatch(m, Mismatch::type, -2, out);
  const Object all(n > 1 ? PySequence_Tuple(out) : nullptr);
  if (n > 1 && !all) return PLAIT_CONVERSION_FAILED;
  if (n > 1 && PyTuple_GET_SIZE(all.get()) != n) return mismatch(m, Mismatch::type, -2, out);
  for (int i = 0; i < n; i++) {
    const int done = tensor_from(n > 1 ? PyTuple_GET_ITEM(all.get(), i) : out, b, b.out + i);
    if (done == PLAIT_NOT_CONVERTIBLE) return mismatch(m, Mismatch::type, -2, out);
    if (done != PLAIT_CONVERTED) return done;
  }
  b.form = PLAIT_OUT;
  return PLAIT_CONVERTED;
}

int bind_keywords(const Overload &o, PyObject *const *values, PyObject *kwnames, uint32_t &bound,
                  Bound &b, Mismatch &m) {
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
    PyObject *keyword = PyTuple_GET_ITEM(kwnames, k);
    const int i = find(o, keyword);
    int done = PLAIT_CONVERTED;
    if (i >= 0) {
      if (bound >> i & 1) return mismatch(m, Mismatch::twice, i, keyword);
      done = convert(o.op->args[i], values[k], b, b.in + i);
      if (done != PLAIT_CONVERTED) mismatch(m, Mismatch::type, i, values[k]);
      if (done == PLAIT_NOT_CONVERTIBLE) return done;
      bound |= 1u << i;
    } else if ((o.op->flags & PLAIT_OP_OUT) && b.form == PLAIT_FUNCTION &&
               is(keyword, state.str_out)) {
      done = bind_out(o, values[k], b, m);
    } else if (o.creates && is(keyword, state.str_requires_grad)) {
      const int truth = PyObject_IsTrue(values[k]);
      if (truth < 0) done = PLAIT_CONVERSION_FAILED;
      b.requires_grad = truth > 0;
    } else if (o.creates &&
               (is_standing(keyword, values[k]) || bind_pin_memory(keyword, values[k], b))) {
      continue;
    } else {
      return mismatch(m, Mismatch::unexpected, -1, keyword);
    }
    if (done != PLAIT_CONVERTED) return done;
  }
  return PLAIT_CONVERTED;
}

// f(x, 1, 2) is f(x, (1, 2))
int bind_varargs(const Overload &o, PyObject *const *args, Py_ssize_t n, Bound &b, Mismatch &m) {
  auto *to = static_cast<int64_t *>(b.scratch.room(size_t(n) * sizeof(int64_t)));
  plait_arg one = o.op->args[o.varargs];
  one.kind = PLAIT_KIND_INT;
  for (Py_ssize_t i = 0; i < n; i++) {
    plait_value v;
    const int done = convert(one, args[i], b, &v);
    if (done != PLAIT_CONVERTED) return mismatch(m, Mismatch::type, o.varargs, args[i]), done;
    to[i] = v.u.i;
  }
  b.in[o.varargs] = ints(to, size_t(n));
  return PLAIT_CONVERTED;
}

int bind_positional(const Overload &o, PyObject *const *args, Py_ssize_t n, uint32_t &bound,
                    Bound &b, Mismatch &m) {
  for (Py_ssize_t i = 0; i < n; i++) {
    if (i == o.varargs && n - i > 1) {
      bound |= 1u << i;
      return bind_varargs(o, args + i, n - i, b, m);
    }
    if (i >= o.n_positional) return mismatch(m, Mismatch::too_many, -1, nullptr, n);
    const int done = convert(o.op->args[i], args[i], b, b.in + i);
    if (__builtin_expect(done != PLAIT_CONVERTED, 0))
      return mismatch(m, Mismatch::type, int(i), args[i]), done;
    bound |= 1u << i;
  }
  return PLAIT_CONVERTED;
}

std::string describe(PyObject *o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    std::string s = PyTuple_Check(o) ? "(" : "[";
    const Items items(o);
    const Py_ssize_t n = items.size();
    for (Py_ssize_t i = 0; i < n && i < 4; i++)
      s += (i ? ", " : "") + std::string(Py_TYPE(items[i])->tp_name);
    if (n > 4) s += ", ...";
    return std::string(PyTuple_Check(o) ? "tuple " : "list ") + s + (PyTuple_Check(o) ? ")" : "]");
  }
  std::string s = o == Py_None ? "None" : Py_TYPE(o)->tp_name;
  if (PyUnicode_Check(o)) {
    Object text(PyObject_Repr(o));
    const char *c = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (c && strlen(c) < 60) s += std::string(" ") + c;
    PyErr_Clear();
  } else if (plait_tensor *t = unwrap(o)) {
    s += " of shape " + shape_text(t) + " and dtype " + name(t->dl.dtype);
  }
  PyErr_Clear();
  return s;
}

}  // namespace

int bind(const Overload &o, uint32_t form, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
         Bound &b, Mismatch &m) {
  uint32_t bound = 0;
  b.form = form;
  int done = bind_positional(o, args, n, bound, b, m);
  if (done == PLAIT_CONVERTED && kwnames) done = bind_keywords(o, args + n, kwnames, bound, b, m);
  if (done != PLAIT_CONVERTED) return done;
  const int count = o.op->n_args;
  const uint32_t all = count == 32 ? ~0u : (1u << count) - 1;
  for (uint32_t missing = all & ~bound; missing; missing &= missing - 1) {
    const int i = __builtin_ctz(missing);
    const plait_arg &a = o.op->args[i];
    if (a.flags & PLAIT_ARG_DEFAULT)
      b.in[i] = a.value;
    else if (a.flags & PLAIT_ARG_VARARGS)
      b.in[i] = ints(nullptr, 0);
    else
      return mismatch(m, Mismatch::missing, i, nullptr);
  }
  if (form == PLAIT_INPLACE && b.in[0].tag != PLAIT_TENSOR)
    return mismatch(m, Mismatch::type, 0, n ? args[0] : Py_None);
  return PLAIT_CONVERTED;
}

void explain(const char *base, const Overload &o, const Mismatch &m) {
  char room[64];
  switch (m.reason) {
    case Mismatch::too_many:
      PyErr_Format(PyExc_TypeError, "%s: at most %d positional arguments are accepted, got %zd",
                   base, int(o.n_positional), m.count);
      return;
    case Mismatch::missing:
      PyErr_Format(PyExc_TypeError, "%s: missing argument `%s`; the form is %s", base,
                   o.op->args[m.arg].name, o.op->schema);
      return;
    case Mismatch::unexpected:
      if (o.creates && is_one_of(m.got, "layout", "pin_memory"))
        PyErr_Format(PyExc_TypeError, "%s: `%U` must be %s", base, m.got,
                     is_one_of(m.got, "layout", "layout")
                         ? "strided here; to_sparse() makes sparse tensors"
                         : "a bool or None");
      else
        PyErr_Format(PyExc_TypeError, "%s: unexpected keyword `%U`", base, m.got);
      return;
    case Mismatch::twice:
      PyErr_Format(PyExc_TypeError, "%s: `%s` was given twice", base, o.op->args[m.arg].name);
      return;
    default: break;
  }
  const std::string got = describe(m.got);
  if (m.arg == -2)
    PyErr_Format(PyExc_TypeError, "%s: `out` must be %s, got %s", base,
                 o.op->n_results > 1 ? "a tuple with one Tensor for each result" : "a Tensor",
                 got.c_str());
  else
    PyErr_Format(PyExc_TypeError, "%s: `%s` must be %s, got %s", base, o.op->args[m.arg].name,
                 kind_name(o.op->args[m.arg], room, sizeof room), got.c_str());
}

// Adds operator and argument to the error text of a conversion; the user's own exceptions are
// unchanged.
void locate(const char *base, const Overload &o, const Mismatch &m) {
  if (m.reason != Mismatch::type || m.arg < 0 || !PyErr_ExceptionMatches(PyExc_OverflowError))
    return;
  PyErr_Clear();
  PyErr_Format(PyExc_OverflowError, "%s: `%s` must fit in 64 bits, got %R", base,
               o.op->args[m.arg].name, m.got);
}

void explain_all(const char *base, const Overload *list, size_t n, PyObject *const *args,
                 Py_ssize_t n_args, PyObject *kwnames) {
  std::string s = std::string(base) + ": no form takes (";
  for (Py_ssize_t i = 0; i < n_args && i < 8; i++) s += (i ? ", " : "") + describe(args[i]);
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames) && i < 8; i++) {
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i));
    if (!name) return;
    s += (i || n_args ? ", " : "") + std::string(name) + "=" + describe(args[n_args + i]);
  }
  s += "); there are";
  for (size_t i = 0; i < n; i++) s += (i ? "; " : " ") + std::string(list[i].op->schema);
  PyErr_SetString(PyExc_TypeError, s.c_str());
}

}  // namespace plait::python
