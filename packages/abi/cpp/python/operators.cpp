// Operator: one callable for each base name and form, which binds arguments by the schema. A
// function does not bind to an instance whose class has it as an attribute, as functions written in
// C do not; what is to be called with the instance is an OperatorMethod.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "binding.hpp"

#include <structmember.h>

namespace plait::python {
namespace {

struct OperatorObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Overload *overloads;
  size_t n;
  uint32_t form;
  PyObject *name, *module;
  PyObject *qualname;  // what `__qualname__` says if it is not the name, or null
  PyObject *attributes;  // what programs set on it: a dict, or null
};
OperatorObject *self_of(PyObject *o) { return reinterpret_cast<OperatorObject *>(o); }
const char *base_name(const OperatorObject *o) { return PyUnicode_AsUTF8(o->name); }

bool releases(const plait_status s, plait_call &c) {
  for (int i = 0; i < c.n_out; i++) state.runtime->release_value(c.out + i);
  raise(c.thread, s);
  return false;
}

bool require_grad(plait_call &c) {
  const plait_engine *e = engine();
  const plait_status s =
      e ? e->set_requires_grad(e->ctx, c.thread, c.out[0].u.t, 1) : plait_status(PLAIT_OK);
  if (!e) state.runtime->release_value(c.out);
  return e && (s >= 0 || releases(s, c));
}

// The new tensor `output`, which is taken over, in pinned memory: what its method `pin_memory`
// gives.
PyObject *pinned(PyObject *output, bool requires_grad) {
  Object owned(output);
  Object result(output ? PyObject_CallMethod(output, "pin_memory", nullptr) : nullptr);
  if (result && requires_grad &&
      PyObject_SetAttr(result.get(), state.str_requires_grad, Py_True) < 0)
    return nullptr;
  return result.release();
}

PyObject *run(const Overload &o, Bound &b) {
  if (b.pin_memory && b.form == PLAIT_OUT)
    return PyErr_Format(PyExc_TypeError, "%s: `pin_memory` and `out` exclude each other",
                        o.op->name);
  plait_call c{};
  c.size = sizeof c;
  c.n_in = o.op->n_args;
  c.n_out = o.op->n_results;
  c.op = o.op;
  c.in = b.in;
  c.out = b.out;
  c.thread = b.thread;
  c.form = b.form;
  if (b.form == PLAIT_FUNCTION) {
    for (int i = 0; i < c.n_out; i++) b.out[i] = none();
  } else {
    if (b.form == PLAIT_INPLACE) b.out[0] = b.in[0];
    for (int i = 1; b.form == PLAIT_INPLACE && i < c.n_out; i++) b.out[i] = none();
    for (int i = 0; i < (b.form == PLAIT_INPLACE ? 1 : c.n_out); i++) plait_retain(b.out[i].u.t);
  }
  const plait_status s = call(&c);
  if (__builtin_expect(s != PLAIT_OK, 0)) return releases(s, c), nullptr;
  if (b.pin_memory) return pinned(results_of(&c, &b, o.result_type), b.requires_grad);
  if (b.requires_grad && !require_grad(c)) return nullptr;
  return results_of(&c, &b, o.result_type);
}

// out=: a target with elements takes on another shape, with a warning unless the operator creates a
// tensor.
PyObject *run_into(const Overload &o, Bound &b) {
  const int n = o.op->n_results;
  plait_tensor *target[PLAIT_MAX_RESULTS];
  std::vector<int64_t> before[PLAIT_MAX_RESULTS];
  bool some[PLAIT_MAX_RESULTS];
  for (int i = 0; i < n; i++) {
    target[i] = b.out[i].u.t;
    const DLTensor &t = target[i]->dl;
    before[i].assign(t.shape, t.shape + t.ndim);
    some[i] = numel(target[i]) > 0;
  }
  Object result(run(o, b));
  for (int i = 0; result && !o.creates && i < n; i++) {
    const DLTensor &t = target[i]->dl;
    if (!some[i] || std::equal(before[i].begin(), before[i].end(), t.shape, t.shape + t.ndim))
      continue;
    if (!warn("An output with one or more elements was resized since it had shape " +
              text(before[i].data(), int64_t(before[i].size())) +
              ", which does not match the shape of the result, " + shape_text(target[i]) + " (" +
              o.op->name + ": give `out` that shape, or no elements)"))
      return nullptr;
  }
  return result.release();
}

// Functions in Python that make the calls of an operator with a keyword that its schema has not:
// {(name, keyword): function}.
PyObject *extensions;

// The function for a call, a new reference; NULL if there is none, perhaps with an exception.
PyObject *extension_for(const OperatorObject *op, const Mismatch &m) {
  if (m.reason != Mismatch::unexpected || op->form != PLAIT_FUNCTION) return nullptr;
  const Object key(Py_BuildValue("(sO)", base_name(op), m.got));
  return key ? value_in(extensions, key.get()) : nullptr;
}

PyObject *call_operator(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                        bool plain) {
  const OperatorObject *op = self_of(self);
  drain();
  if (__builtin_expect(any_mode(), 0) && !plain) {
    PyObject *answer = ask_overrides(self, args, n, kwnames);
    if (answer || PyErr_Occurred()) return answer;
  }
  Mismatch first;
  for (size_t i = 0; i < op->n; i++) {
    Bound b;
    b.thread = state.runtime->thread();
    Mismatch m;
    const int done = bind(op->overloads[i], op->form, args, n, kwnames, b, m);
    if (done == PLAIT_CONVERSION_FAILED) return locate(base_name(op), op->overloads[i], m), nullptr;
    if (done == PLAIT_NOT_CONVERTIBLE) {
      if (i == 0) first = m;
      continue;
    }
    if (__builtin_expect(b.overridden, 0) && !plain) {
      PyObject *answer = ask_overrides(self, args, n, kwnames);
      if (answer || PyErr_Occurred()) return answer;
    }
    if (__builtin_expect(b.form == PLAIT_OUT, 0)) return run_into(op->overloads[i], b);
    return run(op->overloads[i], b);
  }
  if (!plain) {  // an argument that is no tensor may have `__plait_function__` too, as sparse
                 // tensors do
    PyObject *answer = ask_overrides(self, args, n, kwnames);
    if (answer || PyErr_Occurred()) return answer;
  }
  const Object extension(extension_for(op, first));
  if (extension) return PyObject_Vectorcall(extension.get(), args, size_t(n), kwnames);
  if (PyErr_Occurred()) return nullptr;
  if (op->n == 1)
    explain(base_name(op), op->overloads[0], first);
  else
    explain_all(base_name(op), op->overloads, op->n, args, n, kwnames);
  return nullptr;
}

PyObject *vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  return call_operator(self, args, PyVectorcall_NARGS(nargsf), kwnames, false);
}
PyObject *plain(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  return call_operator(self, args, n, kwnames, true);
}

PyObject *bind_method(PyObject *self, PyObject *object, PyObject *) {
  return object && object != Py_None ? PyMethod_New(self, object) : new_reference(self);
}
void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  for (size_t i = 0; i < self_of(self)->n; i++)
    Py_XDECREF(reinterpret_cast<PyObject *>(self_of(self)->overloads[i].result_type));
  delete[] self_of(self)->overloads;
  Py_XDECREF(self_of(self)->name);
  Py_XDECREF(self_of(self)->module);
  Py_XDECREF(self_of(self)->qualname);
  Py_XDECREF(self_of(self)->attributes);
  PyObject_Free(self);
  Py_DECREF(type);
}
PyObject *repr(PyObject *self) {
  return PyUnicode_FromFormat("<plait operator %U>", self_of(self)->name);
}
PyObject *reduce(PyObject *self, PyObject *) {
  Object abi(PyImport_Import(state.str_plait_abi));
  const bool method = Py_TYPE(self) == state.method_type;
  Object make(abi ? PyObject_GetAttrString(abi.get(), method ? "operator_method" : "operator")
                  : nullptr);
  return make ? Py_BuildValue("O(O)", make.get(), self_of(self)->name) : nullptr;
}

// A copy is the operator itself, as of Python's functions: tables have operators as keys.
PyObject *copy(PyObject *self, PyObject *) {
  Py_INCREF(self);
  return self;
}

PyObject *operator_named(PyTypeObject *type, const char *caller, PyObject *name);

std::string default_text(const plait_arg &a) {
  const plait_value &v = a.value;
  switch (v.tag) {
    case PLAIT_BOOL: return v.u.i ? "True" : "False";
    case PLAIT_INT: return std::to_string(v.u.i);
    case PLAIT_FLOAT: {
      Object f(PyFloat_FromDouble(v.u.f));
      Object text(f ? PyObject_Repr(f.get()) : nullptr);
      return text ? PyUnicode_AsUTF8(text.get()) : "0.0";
    }
    case PLAIT_STRING: return "'" + std::string(v.u.s) + "'";
    case PLAIT_INTS: return text(v.u.is, v.n);
    default: return "None";
  }
}
PyObject *get_signature(PyObject *self, void *) {
  const Overload &o = self_of(self)->overloads[0];
  if (self_of(self)->n > 1) return PyUnicode_FromString("(*args, **kwargs)");
  std::string s = "(";
  bool keyword_only = false;
  for (int i = 0; i < o.op->n_args; i++) {
    const plait_arg &a = o.op->args[i];
    if (i) s += ", ";
    if (a.flags & PLAIT_ARG_VARARGS) {
      s += std::string("*") + a.name;
      keyword_only = true;
      continue;
    }
    if ((a.flags & PLAIT_ARG_KEYWORD_ONLY) && !keyword_only) s += "*, ";
    keyword_only |= a.flags & PLAIT_ARG_KEYWORD_ONLY;
    s += a.name;
    if (a.flags & PLAIT_ARG_DEFAULT) s += "=" + default_text(a);
  }
  return PyUnicode_FromString((s + ")").c_str());
}

std::string in_form(const std::string &name, uint32_t form) {
  const size_t dot = std::min(name.find('.'), name.size());
  return form == PLAIT_INPLACE ? name.substr(0, dot) + "_" + name.substr(dot) : name;
}
// Rewrites the examples of a function for its in-place form: `pc.add(x, y)` becomes `x.add_(y)`, or
// `pc.add_(x, y)` if that is not a method. A text that has the in-place form itself is unchanged.
std::string examples_in_place(std::string doc, const std::string &name, uint32_t flags) {
  const std::string function = "pc." + name + "(", method = "." + name + "_(";
  const bool is_method = flags & PLAIT_OP_METHOD;
  if (doc.find(method) != std::string::npos) return doc;
  if (!is_method && !(flags & PLAIT_OP_FUNCTION_INPLACE)) return doc;
  for (size_t at = doc.find(function); at != std::string::npos; at = doc.find(function, at + 1)) {
    const size_t first = at + function.size();
    if (!is_method) {
      doc.insert(first - 1, "_");
      continue;
    }
    size_t end = first;
    for (int depth = 0; end < doc.size(); end++) {
      const char c = doc[end];
      if (!depth && (c == ',' || c == ')')) break;
      depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    }
    const size_t rest = doc.compare(end, 2, ", ") == 0 ? end + 2 : end;
    doc.replace(at, rest - at, doc.substr(first, end - first) + method);
  }
  return doc;
}
// The type of an argument as stubs have it: `Tensor | Number`.
std::string type_text(const plait_arg &a) {
  static const char *const names[] = {"Any",
                                      "Tensor",
                                      "Tensor | Number",
                                      "Sequence[Tensor]",
                                      "Number",
                                      "int",
                                      "Sequence[int] | int",
                                      "float",
                                      "Sequence[float]",
                                      "bool",
                                      "str",
                                      "DTypeLike",
                                      "DeviceLike",
                                      "Generator"};
  const std::string name = a.kind < std::size(names) ? names[a.kind] : names[0];
  return a.flags & PLAIT_ARG_OPTIONAL ? name + " | None" : name;
}
std::string parameter_text(const plait_arg &a) {
  const bool is_input = a.second && !strcmp(a.name, "self") && !strcmp(a.second, "input");
  std::string s = std::string(is_input ? a.second : a.name) + ": " + type_text(a);
  if (!(a.flags & PLAIT_ARG_DEFAULT)) return s;
  const bool plain = a.value.tag != PLAIT_DTYPE && a.value.tag != PLAIT_COMPLEX;
  return s + " = " + (plain ? default_text(a) : "...");
}
// A line of Python for one overload: `add(input: Tensor | Number, ...) -> Tensor`.
std::string signature_text(const Overload &o, uint32_t form) {
  const plait_op &op = *o.op;
  std::string name = op.name, s;
  name = name.substr(0, name.find('.'));
  bool keyword_only = false;
  const auto keyword = [&](const std::string &text) {
    s += std::string(s.empty() ? "" : ", ") + (keyword_only ? "" : "*, ") + text;
    keyword_only = true;
  };
  for (int i = 0; i < op.n_args; i++) {
    const std::string text = parameter_text(op.args[i]);
    if (op.args[i].flags & PLAIT_ARG_KEYWORD_ONLY)
      keyword(text);
    else
      s += (s.empty() ? "" : ", ") + text;
  }
  if (o.creates && form == PLAIT_FUNCTION)
    for (const char *text :
         {"layout: Any = None", "pin_memory: bool = False", "requires_grad: bool = False"})
      keyword(text);
  const bool several = op.n_results > 1;
  if ((op.flags & PLAIT_OP_OUT) && form == PLAIT_FUNCTION)
    keyword(several ? "out: tuple[Tensor, ...] | None = None" : "out: Tensor | None = None");
  std::string result = "None";
  for (int i = 0; i < op.n_results; i++) {
    const char *kind = op.results[i].kind == PLAIT_KIND_TENSORS ? "tuple[Tensor, ...]" : "Tensor";
    result = i ? result + ", " + kind : std::string(several ? "tuple[" : "") + kind;
  }
  return in_form(name, form) + "(" + s + ") -> " + result + (several ? "]" : "");
}
PyObject *get_doc(PyObject *self, void *) {
  const OperatorObject *o = self_of(self);
  std::string s, name = o->overloads[0].op->name;
  for (size_t i = 0; i < o->n; i++) s += signature_text(o->overloads[i], o->form) + "\n";
  name = name.substr(0, name.find('.'));
  const char *text = o->overloads[0].op->doc;
  std::string doc = text ? text : "";
  if (o->form == PLAIT_INPLACE) {
    s += "\n`" + name + "` in place: the result is written into the tensor, which is returned.\n";
    doc = examples_in_place(doc, name, o->overloads[0].op->flags);
    const size_t out = doc.find("\n    out: ");  // the form has no such argument
    if (out != std::string::npos) doc.erase(out, doc.find('\n', out + 1) - out);
  }
  return PyUnicode_FromString(doc.empty() ? s.c_str() : (s + "\n" + doc).c_str());
}
PyObject *get_schemas(PyObject *self, void *) {
  PyObject *list = PyTuple_New(Py_ssize_t(self_of(self)->n));
  for (size_t i = 0; list && i < self_of(self)->n; i++)
    PyTuple_SET_ITEM(list, Py_ssize_t(i),
                     PyUnicode_FromString(self_of(self)->overloads[i].op->schema));
  return list;
}
// What the definition of each overload says in a rule that is data: a text, or None.
template <class F>
PyObject *rule_texts(PyObject *self, F &&text_of) {
  PyObject *list = PyTuple_New(Py_ssize_t(self_of(self)->n));
  for (size_t i = 0; list && i < self_of(self)->n; i++) {
    const char *text = text_of(self_of(self)->overloads[i].op->def);
    PyTuple_SET_ITEM(list, Py_ssize_t(i),
                     text ? PyUnicode_FromString(text) : new_reference(Py_None));
  }
  return list;
}
PyObject *get_batching(PyObject *self, void *) {
  return rule_texts(self, [](const plait_op_def *def) -> const char * {
    return PLAIT_HAS(plait_op_def, def, batching) ? def->batching : nullptr;
  });
}
PyObject *get_sharding(PyObject *self, void *) {
  return rule_texts(self, [](const plait_op_def *def) -> const char * {
    return PLAIT_HAS(plait_op_def, def, sharding) ? def->sharding : nullptr;
  });
}
// `inspect` reads the text of methods alone, as of functions it knows only Python's own types.
PyObject *get_signature_object(PyObject *self, void *) {
  if (Py_TYPE(self) == state.method_type)
    return PyErr_SetString(PyExc_AttributeError, "__signature__"), nullptr;
  const Object method(operator_named(state.method_type, "operator_method", self_of(self)->name));
  const Object inspect(method ? PyImport_ImportModule("inspect") : nullptr);
  return inspect ? PyObject_CallMethod(inspect.get(), "signature", "O", method.get()) : nullptr;
}
PyObject *get_name(PyObject *self, void *) { return new_reference(self_of(self)->name); }
PyObject *get_module(PyObject *self, void *) { return new_reference(self_of(self)->module); }
PyObject *get_qualname(PyObject *self, void *) {
  PyObject *other = self_of(self)->qualname;
  return new_reference(other ? other : self_of(self)->name);
}
// Both may be set, as those of Python's functions may.
int set_text(PyObject *&field, PyObject *value, const char *attribute) {
  if (!value || !PyUnicode_Check(value))
    return PyErr_Format(PyExc_TypeError, "%s of an operator must be a str", attribute), -1;
  PyObject *before = field;
  field = new_reference(value);
  Py_XDECREF(before);
  return 0;
}
int set_module(PyObject *self, PyObject *value, void *) {
  return set_text(self_of(self)->module, value, "__module__");
}
int set_qualname(PyObject *self, PyObject *value, void *) {
  return set_text(self_of(self)->qualname, value, "__qualname__");
}

PyGetSetDef getters[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__name__", entry<get_name>, nullptr, nullptr, nullptr},
    {"__qualname__", entry<get_qualname>, entry<set_qualname>, nullptr, nullptr},
    {"__module__", entry<get_module>, entry<set_module>, nullptr, nullptr},
    {"__doc__", entry<get_doc>, nullptr, nullptr, nullptr},
    {"__text_signature__", entry<get_signature>, nullptr, nullptr, nullptr},
    {"__signature__", entry<get_signature_object>, nullptr, nullptr, nullptr},
    {"schemas", entry<get_schemas>, nullptr, "the schema of each overload", nullptr},
    {"batching", entry<get_batching>, nullptr,
     "the rule of vmap of each overload, as plait_op_def has it, or None", nullptr},
    {"sharding", entry<get_sharding>, nullptr,
     "the rule for parts of tensors of each overload, as plait_op_def has it, or None", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {
    {"plain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry<plain>)),
     METH_FASTCALL | METH_KEYWORDS,
     "Call the operator without asking modes or classes of arguments."},
    {"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
    {"__copy__", entry<copy>, METH_NOARGS, nullptr},
    {"__deepcopy__", entry<copy>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OperatorObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                       {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
                       {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                       {Py_tp_getset, getters},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
constexpr unsigned int flags =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec spec{"plait_abi.Operator", sizeof(OperatorObject), 0, flags | Py_TPFLAGS_BASETYPE,
                 slots};
// a type of its own has a `__doc__` and a `__module__`, which would hide those of the base
PyType_Slot method_slots[] = {{Py_tp_descr_get, reinterpret_cast<void *>(entry<bind_method>)},
                              {Py_tp_getset, getters},
                              {0, nullptr}};
PyType_Spec method_spec{"plait_abi.OperatorMethod", sizeof(OperatorObject), 0,
                        flags | Py_TPFLAGS_METHOD_DESCRIPTOR, method_slots};

bool fill(Overload &o, const plait_op *op) {
  o = {};
  o.op = op;
  o.varargs = -1;
  for (int i = 0; i < op->n_args; i++) {
    const plait_arg &a = op->args[i];
    o.name[i] = PyUnicode_InternFromString(a.name);
    o.second[i] = a.second ? PyUnicode_InternFromString(a.second) : nullptr;
    if (!o.name[i] || (a.second && !o.second[i])) return false;
    if (!(a.flags & PLAIT_ARG_KEYWORD_ONLY)) o.n_positional = uint16_t(i + 1);
    if (a.flags & PLAIT_ARG_VARARGS) o.varargs = int16_t(i);
    o.creates |= a.kind == PLAIT_KIND_DEVICE;
  }
  o.creates &= op->n_results == 1;
  o.result_type = named_results(op);
  return !PyErr_Occurred();
}

PyObject *make_operator(PyTypeObject *type, const char *name, uint32_t form) {
  const plait_op *op = state.runtime->op(name);
  const bool one = strchr(name, '.') != nullptr;
  std::vector<const plait_op *> chosen;
  for (; op; op = one ? nullptr : op->next)
    if (form != PLAIT_INPLACE || (op->flags & PLAIT_OP_INPLACE)) chosen.push_back(op);
  if (chosen.empty()) {
    PyErr_Format(PyExc_AttributeError, "operator: no operator named %s is defined",
                 in_form(name, form).c_str());
    return nullptr;
  }
  auto *list = new Overload[chosen.size()];
  for (size_t i = 0; i < chosen.size(); i++)
    if (!fill(list[i], chosen[i])) return nullptr;
  auto *o = PyObject_New(OperatorObject, type);
  if (!o) return nullptr;
  o->vectorcall = entry<vectorcall>;
  o->overloads = list;
  o->n = chosen.size();
  o->form = form;
  o->qualname = o->attributes = nullptr;
  o->module = PyUnicode_InternFromString("plait_core");
  o->name = PyUnicode_FromString(in_form(name, form).c_str());
  return reinterpret_cast<PyObject *>(o);
}

// The operator of a name in Python, which says the in-place form by `_` at its end.
PyObject *operator_named(PyTypeObject *type, const char *caller, PyObject *name) {
  const char *s = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!s)
    return PyErr_Format(PyExc_TypeError, "%s: `name` must be a str, got %s", caller,
                        Py_TYPE(name)->tp_name);
  PyObject *o = make_operator(type, s, PLAIT_FUNCTION);
  if (o || !PyErr_ExceptionMatches(PyExc_AttributeError)) return o;
  const char *dot = strchr(s, '.');
  const std::string base(s, dot ? size_t(dot - s) : strlen(s));
  if (base.size() < 2 || base.back() != '_') return nullptr;
  PyErr_Clear();
  return make_operator(type, (base.substr(0, base.size() - 1) + (dot ? dot : "")).c_str(),
                       PLAIT_INPLACE);
}
PyObject *operator_function(PyObject *, PyObject *name) {
  return operator_named(state.operator_type, "operator", name);
}
PyObject *operator_method(PyObject *, PyObject *name) {
  return operator_named(state.method_type, "operator_method", name);
}

// "function method": how an operator, or its form in place, is called.
const char *variants_of(uint64_t flags, uint64_t function) {
  const char *words[] = {"", "function", "method", "function method"};
  return words[(flags & function ? 1 : 0) + (flags & PLAIT_OP_METHOD ? 2 : 0)];
}

// (name, variants) of every base name and form; overloads share a name, and each may add a variant
PyObject *operator_names(PyObject *, PyObject *) {
  const uint64_t n = state.runtime->ops(nullptr, 0);
  std::vector<const plait_op *> ops(n);
  state.runtime->ops(ops.data(), n);
  std::vector<std::string> names;
  std::unordered_map<std::string, uint32_t> variants;  // PLAIT_OP_FUNCTION and PLAIT_OP_METHOD
  for (const plait_op *op : ops) {
    const std::string name = op->name, base = name.substr(0, name.find('.'));
    for (const bool in_place : {false, true}) {
      if (in_place && !(op->flags & PLAIT_OP_INPLACE)) continue;
      const uint32_t function = in_place ? PLAIT_OP_FUNCTION_INPLACE : PLAIT_OP_FUNCTION;
      const auto [entry, added] = variants.emplace(base + (in_place ? "_" : ""), 0);
      if (added) names.push_back(entry->first);
      entry->second |= op->flags & function ? PLAIT_OP_FUNCTION : 0;
      entry->second |= op->flags & PLAIT_OP_METHOD;
    }
  }
  Object list(PyList_New(Py_ssize_t(names.size())));
  for (size_t i = 0; list && i < names.size(); i++) {
    const char *words = variants_of(variants[names[i]], PLAIT_OP_FUNCTION);
    PyObject *item = Py_BuildValue("ss", names[i].c_str(), words);
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), item);
  }
  return list.release();
}

constexpr std::pair<const char *, uint64_t> named_flags[] = {
    {"view", PLAIT_OP_VIEW},
    {"pointwise", PLAIT_OP_POINTWISE},
    {"composite", PLAIT_OP_COMPOSITE},
    {"random", PLAIT_OP_RANDOM},
    {"zero_preserving", PLAIT_OP_ZERO_PRESERVING},
};

PyObject *operators_with(PyObject *, PyObject *flag) {
  uint64_t required = 0;
  for (const auto &[name, bit] : named_flags)
    if (PyUnicode_Check(flag) && PyUnicode_CompareWithASCIIString(flag, name) == 0) required = bit;
  if (!required) return PyErr_Format(PyExc_ValueError, "operators_with: there is no flag %R", flag);
  std::vector<const plait_op *> ops(state.runtime->ops(nullptr, 0));
  state.runtime->ops(ops.data(), ops.size());
  Object list(PyList_New(0));
  for (const plait_op *op : ops) {
    if (!list) return nullptr;
    if (!(op->flags & required)) continue;
    const char *words = variants_of(op->flags, PLAIT_OP_FUNCTION);
    const Object item(Py_BuildValue("ss", op->name, words));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject *extend(PyObject *, PyObject *args) {
  PyObject *name, *keyword, *function;
  if (!PyArg_ParseTuple(args, "UUO", &name, &keyword, &function)) return nullptr;
  const Object key(PyTuple_Pack(2, name, keyword));
  if (!key || PyDict_SetItem(extensions, key.get(), function) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"operator", entry<operator_function>, METH_O,
                            "operator(name, /)\n--\n\nThe operator of that name: a base name with "
                            "all its overloads, `max.dim` for one, `relu_` "
                            "and `scatter_.value` for the in-place form. Every operator can be "
                            "called so, also one that is neither a function of the package nor a "
                            "method of tensors.\n\n"
                            "Example:\n"
                            "    >>> import plait_abi, plait_core as pc\n"
                            "    >>> plait_abi.operator('gelu_erf')(pc.zeros(2)).tolist()\n"
                            "    [0.0, 0.0]"},
                           {"operator_method", entry<operator_method>, METH_O,
                            "operator_method(name, /)\n--\n\nThe operator of that name as a "
                            "method: an attribute of a class that is called with the instance.\n\n"
                            "Example:\n"
                            "    >>> import plait_abi, plait_core as pc\n"
                            "    >>> class Celsius(pc.Tensor):\n"
                            "    ...     plus = plait_abi.operator_method('add')\n"
                            "    >>> pc.ones(2).as_subclass(Celsius).plus(1).tolist()\n"
                            "    [2.0, 2.0]"},
                           {"operator_names", entry<operator_names>, METH_NOARGS,
                            "operator_names()\n--\n\n(name, variants) of every operator and its "
                            "in-place form: how it is called beside `operator(name)`, words out of "
                            "`function` (of the package) and `method` (of tensors).\n\n"
                            "Example:\n"
                            "    >>> import plait_abi, plait_core\n"
                            "    >>> dict(plait_abi.operator_names())['exp']\n"
                            "    'function method'"},
                           {"operators_with", entry<operators_with>, METH_O,
                            "operators_with(flag, /)\n--\n\n(name, variants) of every operator "
                            "whose definition has a flag: view, pointwise, composite, random or "
                            "zero_preserving.\n\n"
                            "Example:\n"
                            "    >>> import plait_core\n"
                            "    >>> from plait_abi import binding\n"
                            "    >>> dict(binding.operators_with('zero_preserving'))['sin']\n"
                            "    'function method'"},
                           {"extend", entry<extend>, METH_VARARGS,
                            "extend(name, keyword, function, /)\n--\n\nLet a function serve the "
                            "calls of an operator with a keyword that its schema has not."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject *new_operator(const char *name, uint32_t form) {
  return make_operator(state.operator_type, name, form);
}

bool add_operators(PyObject *module) {
  const Object base(PyType_FromSpec(&spec));
  const Object method(base ? PyType_FromSpecWithBases(&method_spec, base.get()) : nullptr);
  extensions = PyDict_New();
  if (!method || !extensions) return false;
  state.operator_type = reinterpret_cast<PyTypeObject *>(new_reference(base.get()));
  state.method_type = reinterpret_cast<PyTypeObject *>(new_reference(method.get()));
  return PyModule_AddObjectRef(module, "Operator", base.get()) == 0 &&
         PyModule_AddObjectRef(module, "OperatorMethod", method.get()) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace plait::python
