// Operators of plait as functions of tvm-ffi (docs/design/0045): the arguments of the schema by
// position, tensors without a copy. They need no GIL.
#include <list>
#include <string>

#include "tvm_ffi.hpp"

namespace plait::tvm {

using namespace plait::python;

namespace {

const Library *lib;  // set before the first function is made

struct Exported {  // what a function belongs to
  const plait_op *op;
  uint32_t form;
};

const char *kind_of(plait_status s) {
  switch (s) {
    case PLAIT_SHAPE_ERROR:
    case PLAIT_VALUE_ERROR: return "ValueError";
    case PLAIT_DTYPE_ERROR:
    case PLAIT_TYPE_ERROR: return "TypeError";
    case PLAIT_INDEX_ERROR: return "IndexError";
    case PLAIT_MEMORY_ERROR: return "MemoryError";
    case PLAIT_NOT_IMPLEMENTED: return "NotImplementedError";
    case PLAIT_TIMEOUT_ERROR: return "TimeoutError";
    default: return "RuntimeError";
  }
}

// The thread's error becomes that of the function.
int fail(plait_thread *thread, plait_status s) {
  const plait_error *e = thread->error;
  lib->set_error(kind_of(s), e && e->message ? e->message : "the operator failed");
  thread->runtime->clear(thread);
  return -1;
}

// A call whose values are made of those of a function.
class Call {
 public:
  Call(const Exported *to, plait_thread *thread) : to_(to), thread_(thread) {
    call_.size = sizeof call_;
    call_.op = to->op;
    call_.n_in = to->op->n_args;
    call_.n_out = to->op->n_results;
    call_.in = in_;
    call_.out = out_;
    call_.thread = thread;
    call_.form = to->form;
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  ~Call() {
    for (uint16_t i = 0; i < call_.n_out; i++) runtime()->release_value(out_ + i);
    for (plait_tensor *t : tensors_) plait_release(t);
  }

  plait_status fill(const Any *args, int32_t n);
  plait_status run();
  plait_status give(Any *result);

 private:
  const plait_runtime *runtime() const { return thread_->runtime; }
  const plait_arg *argument(uint32_t i) const { return plait_arg_at(to_->op, i); }
  plait_status refuse(uint32_t i, const char *subject, const Any &got) {
    return runtime()->raise(thread_, PLAIT_TYPE_ERROR, to_->op->name,
                            "`%s` must be %s, got a value of tvm-ffi's type %d", argument(i)->name,
                            subject, int(got.type));
  }

  plait_status fill_one(uint32_t i, const Any &a, plait_value *to);
  plait_status tensor(const Any &a, plait_value *to);
  plait_status tensor_list(uint32_t i, const Any &a, plait_value *to);
  plait_status ints(uint32_t i, const Any &a, plait_value *to);
  plait_status floats(uint32_t i, const Any &a, plait_value *to);
  plait_status string(uint32_t i, const Any &a, plait_value *to);
  plait_status number(uint32_t i, const Any &a, plait_value *to);
  plait_status own(plait_tensor **result);
  plait_status give_one(const plait_value &v, Any *to);
  bool borrows(const plait_tensor *t) const {
    for (const plait_storage *s : borrowed_)
      if (t->storage == s) return true;
    return false;
  }

  const Exported *to_;
  plait_thread *thread_;
  plait_call call_{};
  plait_value in_[PLAIT_MAX_ARGS]{}, out_[PLAIT_MAX_RESULTS]{};
  std::vector<plait_tensor *> tensors_;
  std::vector<const plait_storage *> borrowed_;  // bytes that are there for the call alone
  std::list<std::vector<int64_t>> int_lists_;
  std::list<std::vector<double>> float_lists_;
  std::list<std::vector<plait_tensor *>> tensor_lists_;
  std::list<std::string> strings_;
};

// The text of a string, however it is kept; whether it is one.
bool text_of(const Any &a, std::string *text) {
  if (a.type == type_raw_string) {
    *text = a.v.s;
  } else if (a.type == type_small_string) {
    text->assign(a.v.small, a.length);
  } else if (a.type == type_string) {
    const Bytes &bytes = static_cast<const String *>(a.v.p)->bytes;
    text->assign(bytes.data, bytes.size);
  } else {
    return false;
  }
  return true;
}

bool is_sequence(const Any &a) { return a.type == type_array || a.type == type_list; }
bool is_tensor(const Any &a) { return a.type == type_tensor || a.type == type_dltensor; }

plait_status Call::tensor(const Any &a, plait_value *to) {
  plait_tensor *t = nullptr;
  const auto keep_nothing = [](void *) {};
  const auto release = [](void *object) { lib->release(object); };
  plait_status s;
  if (a.type == type_tensor) {
    auto *object = static_cast<Tensor *>(a.v.p);
    lib->retain(object);
    s = foreign_tensor(thread_, object->dl, false, release, object, &t);
  } else {
    s = foreign_tensor(thread_, *static_cast<const DLTensor *>(a.v.p), false, keep_nothing, nullptr,
                       &t);
    if (s >= 0 && t->storage->release == static_cast<void (*)(void *)>(keep_nothing))
      borrowed_.push_back(t->storage);
  }
  if (s < 0) return s;
  tensors_.push_back(t);
  *to = value(t);
  return PLAIT_OK;
}

plait_status Call::tensor_list(uint32_t i, const Any &a, plait_value *to) {
  if (!is_sequence(a)) return refuse(i, "an array of tensors", a);
  const auto *list = static_cast<const Sequence *>(a.v.p);
  std::vector<plait_tensor *> all;
  for (int64_t k = 0; k < list->size; k++) {
    const Any &item = list->data[k];
    plait_value one{};
    // kernels read each entry unless the schema says Tensor?[]
    if (item.type != type_none || !(argument(i)->flags & PLAIT_ARG_OPTIONAL)) {
      if (!is_tensor(item)) return refuse(i, "an array of tensors", item);
      if (const plait_status s = tensor(item, &one); s < 0) return s;
    }
    all.push_back(item.type == type_none ? nullptr : one.u.t);
  }
  to->tag = PLAIT_TENSORS;
  to->n = uint32_t(all.size());
  to->u.ts = tensor_lists_.emplace_back(std::move(all)).data();
  return PLAIT_OK;
}

plait_status Call::ints(uint32_t i, const Any &a, plait_value *to) {
  std::vector<int64_t> all;
  if (a.type == type_int && argument(i)->length) {  // one number stands for all of them
    all.assign(argument(i)->length, a.v.i);
  } else if (a.type == type_shape) {
    const auto *shape = static_cast<const Shape *>(a.v.p);
    all.assign(shape->data, shape->data + shape->size);
  } else if (is_sequence(a)) {
    const auto *list = static_cast<const Sequence *>(a.v.p);
    for (int64_t k = 0; k < list->size; k++) {
      if (list->data[k].type != type_int) return refuse(i, "an array of ints", list->data[k]);
      all.push_back(list->data[k].v.i);
    }
  } else {
    return refuse(i, "an array of ints", a);
  }
  to->tag = PLAIT_INTS;
  to->n = uint32_t(all.size());
  to->u.is = int_lists_.emplace_back(std::move(all)).data();
  return PLAIT_OK;
}

plait_status Call::floats(uint32_t i, const Any &a, plait_value *to) {
  if (!is_sequence(a)) return refuse(i, "an array of floats", a);
  const auto *list = static_cast<const Sequence *>(a.v.p);
  std::vector<double> all;
  for (int64_t k = 0; k < list->size; k++) {
    const Any &item = list->data[k];
    if (item.type != type_int && item.type != type_float)
      return refuse(i, "an array of floats", item);
    all.push_back(item.type == type_int ? double(item.v.i) : item.v.f);
  }
  to->tag = PLAIT_FLOATS;
  to->n = uint32_t(all.size());
  to->u.fs = float_lists_.emplace_back(std::move(all)).data();
  return PLAIT_OK;
}

plait_status Call::string(uint32_t i, const Any &a, plait_value *to) {
  std::string text;
  if (!text_of(a, &text)) return refuse(i, "a string", a);
  strings_.push_back(std::move(text));
  to->tag = PLAIT_STRING;
  to->n = uint32_t(strings_.back().size());
  to->u.s = strings_.back().c_str();
  return PLAIT_OK;
}

plait_status Call::number(uint32_t i, const Any &a, plait_value *to) {
  const int kind = argument(i)->kind;
  const bool whole = kind == PLAIT_KIND_INT || kind == PLAIT_KIND_BOOL;
  if (a.type == type_float && !whole) {
    to->tag = PLAIT_FLOAT;
    to->u.f = a.v.f;
  } else if (a.type == type_int && kind == PLAIT_KIND_FLOAT) {
    to->tag = PLAIT_FLOAT;
    to->u.f = double(a.v.i);
  } else if (a.type == type_int && kind != PLAIT_KIND_BOOL) {
    to->tag = PLAIT_INT;
    to->u.i = a.v.i;
  } else if (a.type == type_bool && (kind == PLAIT_KIND_BOOL || !whole) &&
             kind != PLAIT_KIND_FLOAT) {
    to->tag = PLAIT_BOOL;
    to->u.i = a.v.i;
  } else {
    return refuse(i,
                  kind == PLAIT_KIND_BOOL    ? "a bool"
                  : kind == PLAIT_KIND_INT   ? "an int"
                  : kind == PLAIT_KIND_FLOAT ? "a float"
                                             : "a number",
                  a);
  }
  return PLAIT_OK;
}

plait_status Call::fill_one(uint32_t i, const Any &a, plait_value *to) {
  const plait_arg *required = argument(i);
  if (a.type == type_none && required->flags & PLAIT_ARG_OPTIONAL) return PLAIT_OK;
  switch (required->kind) {
    case PLAIT_KIND_TENSOR: return is_tensor(a) ? tensor(a, to) : refuse(i, "a tensor", a);
    case PLAIT_KIND_OPERAND: return is_tensor(a) ? tensor(a, to) : number(i, a, to);
    case PLAIT_KIND_TENSORS: return tensor_list(i, a, to);
    case PLAIT_KIND_INTS: return ints(i, a, to);
    case PLAIT_KIND_FLOATS: return floats(i, a, to);
    case PLAIT_KIND_STRING: return string(i, a, to);
    case PLAIT_KIND_DTYPE:
      if (a.type != type_dtype) return refuse(i, "a dtype", a);
      to->tag = PLAIT_DTYPE;
      to->u.dtype = a.v.dtype;
      return PLAIT_OK;
    case PLAIT_KIND_DEVICE:
      if (a.type != type_device) return refuse(i, "a device", a);
      to->tag = PLAIT_DEVICE;
      to->u.device = a.v.device;
      return PLAIT_OK;
    case PLAIT_KIND_GENERATOR: return refuse(i, "None: tvm-ffi has no generators", a);
    default: return number(i, a, to);
  }
}

plait_status Call::fill(const Any *args, int32_t n) {
  const uint32_t most = to_->op->n_args;
  if (n > int32_t(most))
    return runtime()->raise(thread_, PLAIT_TYPE_ERROR, to_->op->name,
                            "at most %u arguments are required, got %d", most, n);
  for (uint32_t i = 0; i < most; i++) {
    in_[i] = none();
    if (int32_t(i) < n) {
      if (const plait_status s = fill_one(i, args[i], in_ + i); s < 0) return s;
    } else if (argument(i)->flags & PLAIT_ARG_DEFAULT) {
      in_[i] = argument(i)->value;
    } else if (!(argument(i)->flags & PLAIT_ARG_OPTIONAL)) {
      return runtime()->raise(thread_, PLAIT_TYPE_ERROR, to_->op->name, "`%s` is missing",
                              argument(i)->name);
    }
  }
  if (to_->form == PLAIT_INPLACE) {
    if (in_[0].tag != PLAIT_TENSOR) return refuse(0, "a tensor", args[0]);
    plait_retain(in_[0].u.t);
    out_[0] = in_[0];
  }
  return PLAIT_OK;
}

// A result on bytes that are there for the call alone is copied.
plait_status Call::own(plait_tensor **result) {
  if (!borrows(*result)) return PLAIT_OK;
  const plait_op *clone = runtime()->op("clone");
  plait_value in[2]{value(*result), none()}, out[1]{};
  if (clone->n_args > 1) in[1] = plait_arg_at(clone, 1)->value;
  plait_call c{};
  c.size = sizeof c;
  c.op = clone;
  c.n_in = clone->n_args;
  c.n_out = 1;
  c.in = in;
  c.out = out;
  c.thread = thread_;
  const plait_status s = runtime()->call(&c);
  if (s < 0) return s;
  plait_release(*result);
  *result = out[0].u.t;
  return PLAIT_OK;
}

plait_status Call::run() {
  plait_status s = runtime()->call(&call_);
  for (uint16_t i = 0; s >= 0 && to_->form == PLAIT_FUNCTION && i < call_.n_out; i++)
    if (out_[i].tag == PLAIT_TENSOR) s = own(&out_[i].u.t);
  return s;
}

plait_status Call::give_one(const plait_value &v, Any *to) {
  *to = {};
  switch (v.tag) {
    case PLAIT_NONE: return PLAIT_OK;
    case PLAIT_TENSOR:
      to->v.p = tensor_of(lib, thread_, v.u.t);
      to->type = type_tensor;
      return to->v.p ? plait_status(PLAIT_OK) : thread_->error->code;
    case PLAIT_BOOL:
      to->type = type_bool;
      to->v.i = v.u.i;
      return PLAIT_OK;
    case PLAIT_INT:
      to->type = type_int;
      to->v.i = v.u.i;
      return PLAIT_OK;
    case PLAIT_FLOAT:
      to->type = type_float;
      to->v.f = v.u.f;
      return PLAIT_OK;
    case PLAIT_DTYPE:
      to->type = type_dtype;
      to->v.dtype = v.u.dtype;
      return PLAIT_OK;
    default:
      return runtime()->raise(thread_, PLAIT_NOT_IMPLEMENTED, to_->op->name,
                              "tvm-ffi has no value for a result of this kind");
  }
}

plait_status Call::give(Any *result) {
  std::vector<plait_value> all;
  if (call_.n_out == 1 && out_[0].tag == PLAIT_TENSORS) {
    for (uint32_t i = 0; i < out_[0].n; i++) {
      plait_tensor *t = out_[0].u.ts[i];
      if (borrows(t))
        return runtime()->raise(thread_, PLAIT_VALUE_ERROR, to_->op->name,
                                "a Tensor is required, got a DLTensor: the results are its views");
      all.push_back(value(t));
    }
  } else if (call_.n_out == 1) {
    return give_one(out_[0], result);
  } else {
    all.assign(out_, out_ + call_.n_out);
  }
  Owned owned(lib);
  std::vector<Any> items(all.size());
  for (size_t i = 0; i < all.size(); i++) {
    if (const plait_status s = give_one(all[i], &items[i]); s < 0) return s;
    if (items[i].type >= type_objects) owned.keep(items[i].v.p);
  }
  result->v.p = array_of(lib, items.data(), items.size());
  result->type = type_array;
  if (result->v.p) return PLAIT_OK;
  *result = {};
  return runtime()->raise(thread_, PLAIT_MEMORY_ERROR, to_->op->name, "out of memory");
}

int call_operator(void *self, const Any *args, int32_t n, Any *result) {
  plait_thread *thread = state.runtime->thread();
  Call call(static_cast<const Exported *>(self), thread);
  plait_status s = call.fill(args, n);
  if (s >= 0) s = call.run();
  if (s >= 0) s = call.give(result);
  return s < 0 ? fail(thread, s) : 0;
}

// The function of an operator, by its name: with its overload, or with _ behind it for the form in
// place.
int function_of(void *, const Any *args, int32_t n, Any *result) {
  std::string name;
  if (n != 1 || !text_of(args[0], &name)) {
    lib->set_error("TypeError", "plait.operator: the name of an operator is required");
    return -1;
  }
  Exported match{state.runtime->op(name.c_str()), PLAIT_FUNCTION};
  if (!match.op && !name.empty() && name.back() == '_') {
    match = {state.runtime->op(name.substr(0, name.size() - 1).c_str()), PLAIT_INPLACE};
    if (match.op && !(match.op->flags & PLAIT_OP_INPLACE)) match.op = nullptr;
  }
  if (!match.op) {
    lib->set_error("AttributeError", ("no operator named " + name + " is defined").c_str());
    return -1;
  }
  const auto drop = [](void *exported) { delete static_cast<Exported *>(exported); };
  *result = {};
  const int code = lib->new_function(new Exported(match), call_operator, drop, &result->v.p);
  if (code == 0) result->type = type_function;
  return code;
}

PyObject *provide_operators(PyObject *, PyObject *) {
  lib = library();
  if (!lib) return nullptr;
  static const Bytes name{"plait.operator", 14};
  void *function = nullptr;
  int code = lib->new_function(nullptr, function_of, nullptr, &function);
  if (code == 0) {
    code = lib->set_global_function(&name, function, 1);
    lib->release(function);
  }
  if (code != 0)
    return PyErr_Format(PyExc_RuntimeError, "plait_abi: tvm_ffi took no function plait.operator");
  Py_RETURN_NONE;
}

}  // namespace
}  // namespace plait::tvm

namespace plait::python {

PyMethodDef tvm_functions[] = {
    {"provide_operators", entry<tvm::provide_operators>, METH_NOARGS,
     "provide_operators()\n--\n\nRegister the function plait.operator with tvm-ffi, which gives "
     "the function of an operator."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::python
