// The operators of Python's number slots and comparisons, and calls of operators from C++.
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

struct Named {
  const char *name;
  bool in_place;
  // the attributes of Tensor that overrides see when a program uses the Python operator
  const char *method = nullptr, *reflected = nullptr, *in_place_method = nullptr;
};
constexpr Named operator_names[op_count] = {
    {"add", true, "add", "add", "add_"},
    {"sub", true, "sub", "__rsub__", "sub_"},
    {"mul", true, "mul", "mul", "mul_"},
    {"div", true, "div", "__rtruediv__", "div_"},
    {"floor_divide", true, "__floordiv__", "__rfloordiv__", "__ifloordiv__"},
    {"remainder", true, "remainder", "__rmod__", "remainder_"},
    {"pow", true, "pow", "__rpow__", "pow_"},
    {"matmul", false, "matmul", "__rmatmul__", nullptr},
    {"bitwise_and", true, "__and__", "bitwise_and", "__iand__"},
    {"bitwise_or", true, "__or__", "bitwise_or", "__ior__"},
    {"bitwise_xor", true, "__xor__", "bitwise_xor", "__ixor__"},
    {"bitwise_left_shift", true, "__lshift__", "__rlshift__", "__ilshift__"},
    {"bitwise_right_shift", true, "__rshift__", "__rrshift__", "__irshift__"},
    {"eq", false, "__eq__", "__eq__", nullptr},
    {"ne", false, "ne", "ne", nullptr},
    {"lt", false, "lt", "gt", nullptr},
    {"le", false, "le", "ge", nullptr},
    {"gt", false, "gt", "lt", nullptr},
    {"ge", false, "ge", "le", nullptr},
    {"neg", false, "neg", nullptr, nullptr},
    {"abs", false, "abs", nullptr, nullptr},
    {"bitwise_not", false, "__invert__", nullptr, nullptr},
    {"select", false},
    {"slice", false},
    {"unsqueeze", false},
    {"index", false},
    {"index_put_", false},
    {"copy_", false},
    {"fill_", false},
    {"cast", false},
    {"clone", false},
    {"permute", false},
    {"transpose", false},
    {"empty", false},
    {"contiguous", false},
    {"nonzero", false},
    {"reshape", false},
    {"view", false},
    {"stack", false},
    {"masked_fill", true},
    {"alias", false}};

// Operands that need no checks: tensors whose class overrides nothing, floats, and ints of 64 bits.
inline bool fast_operand(PyObject *o, plait_value *v) {
  if (is_exact(o)) return *v = value(handle_of(o)), true;
  if (PyFloat_CheckExact(o)) return *v = value(PyFloat_AS_DOUBLE(o)), true;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    *v = value(int64_t(PyLong_AsLongLongAndOverflow(o, &overflow)));
    return !overflow;
  }
  if (PyType_IsSubtype(Py_TYPE(o), state.tensor_type) && state.python->overrides(o) == 0)
    return *v = value(handle_of(o)), true;
  return false;
}

// a number only where the schema says Tensor|Scalar
inline bool accepted(const plait_op *op, int i, const plait_value &v) {
  return v.tag == PLAIT_TENSOR || plait_arg_at(op, i)->kind == PLAIT_KIND_OPERAND;
}
inline bool fast_pair(const plait_op *op, PyObject *a, PyObject *b, plait_value *in) {
  return fast_operand(a, in) && fast_operand(b, in + 1) && accepted(op, 0, in[0]) &&
         accepted(op, 1, in[1]);
}

const plait_op *fast(Op op) { return __atomic_load_n(&state.fast[op], __ATOMIC_RELAXED); }

struct Call : plait_call {
  plait_value in_[PLAIT_MAX_ARGS], out_;
  Call(const plait_op *o, uint32_t form_) : plait_call{} {
    size = sizeof(plait_call);
    n_in = o->n_args;
    n_out = 1;
    op = o;
    in = in_;
    out = &out_;
    thread = state.runtime->thread();
    form = form_;
    out_ = none();
  }
  void defaults(size_t from) {
    for (size_t i = from; i < op->n_args; i++) in_[i] = plait_arg_at(op, i)->value;
  }
};

// the general case: the binding converts arrays and NumPy's numbers, and calls overrides
PyObject *slow_binary(Op op, PyObject *callable, PyObject *a, PyObject *b, bool in_place = false) {
  plait_value v;
  if (is_asked(a) || is_asked(b)) {
    const Named &n = operator_names[op];
    PyObject *answer = nullptr;
    if (asked_operator(in_place ? n.in_place_method : n.method, n.reflected, a, b, &answer))
      return answer;
  }
  if (!callable) return known(op), nullptr;
  for (PyObject *o : {a, b}) {
    if (is_tensor(o)) continue;
    const int done = state.python->operand(state.runtime->thread(), o, &v);
    if (done == PLAIT_CONVERSION_FAILED) return nullptr;
    if (done == PLAIT_CONVERTED || PyComplex_Check(o)) continue;
    Object array(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(o)), "__dlpack__"));
    if (array) continue;
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  PyObject *args[] = {a, b};
  return PyObject_Vectorcall(callable, args, 2, nullptr);
}

template <Op op>
PyObject *binary(PyObject *a, PyObject *b) {
  const plait_op *o = fast(op);
  if (__builtin_expect(o != nullptr, 1)) {
    Call c(o, PLAIT_FUNCTION);
    if (__builtin_expect(fast_pair(o, a, b, c.in), 1)) {
      c.defaults(2);
      const plait_status s = state.python->call(&c);
      return __builtin_expect(s == PLAIT_OK, 1) ? wrap(c.out->u.t) : raise(c.thread, s);
    }
  }
  return slow_binary(op, state.callable[op], a, b);
}

template <Op op>
PyObject *in_place(PyObject *a, PyObject *b) {
  const plait_op *o = fast(op);
  if (o && is_tensor(a)) {
    Call c(o, PLAIT_INPLACE);
    if (fast_pair(o, a, b, c.in)) {
      c.defaults(2);
      *c.out = c.in[0];
      plait_retain(c.out->u.t);
      const plait_status s = state.python->call(&c);
      state.runtime->release_value(c.out);
      return s == PLAIT_OK ? new_reference(a) : raise(c.thread, s);
    }
  }
  return slow_binary(op, state.in_place_callable[op], a, b, true);
}

template <Op op>
PyObject *unary(PyObject *a) {
  const plait_op *o = fast(op);
  if (o && is_exact(a)) {
    Call c(o, PLAIT_FUNCTION);
    c.in[0] = value(handle_of(a));
    c.defaults(1);
    const plait_status s = state.python->call(&c);
    return s == PLAIT_OK ? wrap(c.out->u.t) : raise(c.thread, s);
  }
  PyObject *answer;
  if (asked_name(operator_names[op].method, {a}, &answer)) return answer;
  return state.callable[op] ? PyObject_CallOneArg(state.callable[op], a) : (known(op), nullptr);
}

PyObject *power(PyObject *a, PyObject *b, PyObject *modulo) {
  if (modulo != Py_None)
    return PyErr_Format(PyExc_TypeError, "pow: a modulo is not supported for tensors");
  return binary<op_pow>(a, b);
}
PyObject *power_in_place(PyObject *a, PyObject *b, PyObject *modulo) {
  if (modulo != Py_None)
    return PyErr_Format(PyExc_TypeError, "pow: a modulo is not supported for tensors");
  return in_place<op_pow>(a, b);
}
PyObject *divide_with_rest(PyObject *a, PyObject *b) {
  Object q(binary<op_floor_divide>(a, b));
  if (!q || q.get() == Py_NotImplemented) return q.release();
  Object r(binary<op_remainder>(a, b));
  return r ? PyTuple_Pack(2, q.get(), r.get()) : nullptr;
}
PyObject *positive(PyObject *a) { return new_reference(a); }

PyNumberMethods make_number_methods() {
  PyNumberMethods m{};
  m.nb_add = entry<binary<op_add>>;
  m.nb_subtract = entry<binary<op_sub>>;
  m.nb_multiply = entry<binary<op_mul>>;
  m.nb_true_divide = entry<binary<op_div>>;
  m.nb_floor_divide = entry<binary<op_floor_divide>>;
  m.nb_remainder = entry<binary<op_remainder>>;
  m.nb_divmod = entry<divide_with_rest>;
  m.nb_power = entry<power>;
  m.nb_matrix_multiply = entry<binary<op_matmul>>;
  m.nb_and = entry<binary<op_bitwise_and>>;
  m.nb_or = entry<binary<op_bitwise_or>>;
  m.nb_xor = entry<binary<op_bitwise_xor>>;
  m.nb_lshift = entry<binary<op_shift_left>>;
  m.nb_rshift = entry<binary<op_shift_right>>;
  m.nb_inplace_add = entry<in_place<op_add>>;
  m.nb_inplace_subtract = entry<in_place<op_sub>>;
  m.nb_inplace_multiply = entry<in_place<op_mul>>;
  m.nb_inplace_true_divide = entry<in_place<op_div>>;
  m.nb_inplace_floor_divide = entry<in_place<op_floor_divide>>;
  m.nb_inplace_remainder = entry<in_place<op_remainder>>;
  m.nb_inplace_power = entry<power_in_place>;
  m.nb_inplace_and = entry<in_place<op_bitwise_and>>;
  m.nb_inplace_or = entry<in_place<op_bitwise_or>>;
  m.nb_inplace_xor = entry<in_place<op_bitwise_xor>>;
  m.nb_inplace_lshift = entry<in_place<op_shift_left>>;
  m.nb_inplace_rshift = entry<in_place<op_shift_right>>;
  m.nb_negative = entry<unary<op_neg>>;
  m.nb_positive = special<positive, names::positive>;
  m.nb_absolute = entry<unary<op_abs>>;
  m.nb_invert = entry<unary<op_bitwise_not>>;
  m.nb_bool = special<truth, names::bool_>;
  m.nb_int = special<as_int, names::int_>;
  m.nb_float = special<as_float, names::float_>;
  m.nb_index = special<as_index, names::index>;
  return m;
}

}  // namespace

PyNumberMethods number_methods = make_number_methods();

PyObject *compare(PyObject *a, PyObject *b, int kind) {
  switch (kind) {
    case Py_EQ: return binary<op_eq>(a, b);
    case Py_NE: return binary<op_ne>(a, b);
    case Py_LT: return binary<op_lt>(a, b);
    case Py_LE: return binary<op_le>(a, b);
    case Py_GT: return binary<op_gt>(a, b);
    default: return binary<op_ge>(a, b);
  }
}

PyObject *raise(plait_thread *thread, plait_status s) { return state.python->raise(thread, s); }

const plait_op *known(Op op) {
  if (!state.op[op])
    PyErr_Format(PyExc_NotImplementedError,
                 "%s: no such operator is defined; is plait_core imported and plait-ops complete?",
                 operator_names[op].name);
  return state.op[op];
}

bool warn(const char *text) {
  Object frames(PyImport_ImportModule("plait_abi.frames"));
  return frames && Object(PyObject_CallMethod(frames.get(), "warn", "s", text));
}

plait_tensor *call(Op op, std::initializer_list<plait_value> in, uint32_t form) {
  const plait_op *o = known(op);
  if (!o) return nullptr;
  Call c(o, form);
  size_t i = 0;
  for (const plait_value &v : in) c.in[i++] = v;
  c.defaults(i);
  if (form == PLAIT_INPLACE) {
    *c.out = c.in[0];
    plait_retain(c.out->u.t);
  }
  const plait_status s = state.python->call(&c);
  if (s == PLAIT_OK) return c.out->u.t;
  state.runtime->release_value(c.out);
  raise(c.thread, s);
  return nullptr;
}

plait_tensor *cast(plait_tensor *t, DLDataType d) { return call(op_cast, {value(t), value(d)}); }

void choose_fast_operators() {
  const uint64_t modes = __atomic_load_n(&state.modes, __ATOMIC_RELAXED);
  for (int i = 0; i < op_count; i++)
    __atomic_store_n(&state.fast[i], modes ? nullptr : state.op[i], __ATOMIC_RELAXED);
}

bool start_operators() {
  for (int i = 0; i < op_count; i++) {
    const Named &n = operator_names[i];
    state.op[i] = state.runtime->op(n.name);
    if (!state.op[i]) continue;
    Py_XDECREF(state.callable[i]);
    Py_XDECREF(state.in_place_callable[i]);
    state.callable[i] = state.python->new_operator(n.name, PLAIT_FUNCTION);
    state.in_place_callable[i] = nullptr;
    const bool in_place = n.in_place && (state.op[i]->flags & PLAIT_OP_INPLACE);
    if (in_place) state.in_place_callable[i] = state.python->new_operator(n.name, PLAIT_INPLACE);
    if (!state.callable[i] || (in_place && !state.in_place_callable[i])) return false;
  }
  choose_fast_operators();
  return true;
}

}  // namespace plait::core
