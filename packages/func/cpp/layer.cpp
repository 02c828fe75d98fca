// The layer that serves operators on batched tensors (docs/design/0043).
#include <plait/layer.hpp>

#include <algorithm>

#include "batched.hpp"

namespace plait::func {

uint64_t layer_bit, sharing_bit;
Functions functions;

namespace {

constexpr uint32_t position = 9;  // above "python", below "autograd" and "forward"
constexpr uint32_t sharing_position = 36;  // above "autograd", below "forward"

// Whether others hold the memory that a batched tensor stands for, as the caller of `vmap` does
// with that of an argument.
bool is_held_elsewhere(const Batch &b) {
  const auto owners = [](const auto *o) { return __atomic_load_n(&o->o.refs, __ATOMIC_ACQUIRE); };
  if (owners(b.value) > 1 || owners(b.value->storage) > 1) return true;
  const Batch *outer = batch_of(b.value);
  return outer && is_held_elsewhere(*outer);
}

// The engine would not find the histories of those again after a write.
plait_status refuse_lost_history(plait_call *c) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  if (!e || !e->enabled(e->ctx, c->thread)) return PLAIT_OK;
  bool recorded = false;
  each_tensor(c->in, c->n_in,
              [&](const plait_tensor *t) { recorded |= t->layers >> e->layer & 1; });
  for (uint16_t i = 0; recorded && i < c->n_in; i++) {
    const bool written =
        (c->form == PLAIT_INPLACE && i == 0) || (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES);
    const Batch *b = written && c->in[i].tag == PLAIT_TENSOR ? batch_of(c->in[i].u.t) : nullptr;
    if (b && is_held_elsewhere(*b))
      return c->thread->runtime->raise(
          c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name,
          "vmap: `%s` shares its memory with a tensor outside of the function, or with a view that "
          "has no base, and would be written in place: the gradients of the others would not "
          "include the write; clone() it before, or use the out-of-place form",
          plait_arg_at(c->op, i)->name);
  }
  return PLAIT_OK;
}

// A history that all samples share does not learn of samples from a write that it does not record:
// gradients of each of them would leave the call of vmap.
plait_status refuse_unrecorded_write(plait_call *c, const Samples &samples) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  if (c->thread->excluded & sharing_bit) return PLAIT_OK;  // a part of a write that was seen before
  const bool records = e && e->enabled(e->ctx, c->thread);
  bool lost = false;
  const auto see = [&](const plait_tensor *t) {
    const Batch *b = batch_of(t);
    const bool shared = !b || b->level != samples.level;
    const uint64_t layers = t->layers | (t->base ? t->base->layers : 0);  // of a view made before
    lost |= shared && !(records && layers >> e->layer & 1) && is_recorded(t);
  };
  for (uint16_t i = 0; i < c->n_in; i++)
    if ((c->form == PLAIT_INPLACE && i == 0) || plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)
      each_tensor(c->in + i, 1, see);
  if (c->form == PLAIT_OUT) each_tensor(c->out, c->n_out, see);
  if (!lost) return PLAIT_OK;
  return c->thread->runtime->raise(
      c->thread, PLAIT_ERROR, c->op->name,
      "vmap: a tensor with a history that all samples share cannot be written with values that "
      "differ between samples where the write is not recorded, as within no_grad() or by detach() "
      "or .data; write to a clone() of it");
}

plait_status serve_in_python(plait_call *c) {
  const plait_status s = state.python->serve(c, [] { return functions.serve.get(); }, layer_bit);
  if (s < 0) return s;
  // a rule writes to the samples: the storages that stand for them were written, too
  for (uint16_t i = 0; i < c->n_in; i++)
    if ((c->form == PLAIT_INPLACE && i == 0) || plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)
      each_tensor(c->in + i, 1, [](const plait_tensor *t) { wrote(t); });
  if (c->form == PLAIT_OUT) each_tensor(c->out, c->n_out, [](const plait_tensor *t) { wrote(t); });
  return s;
}

// A view of a sample of a storage whose value is rows is a view of all rows: it needs no rule.
// PLAIT_DECLINE if the rows do not begin at whole elements of the view's dtype.
plait_status view_of_rows(plait_call *c) {
  const plait_status s = c->thread->runtime->call_below(c);
  if (s < 0) return s;
  bool whole = true;
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    const int64_t size = itemsize(t->dl.dtype);
    for (const plait_tensor *each = marked(t); const Batch *b = batch_of(each); each = b->value)
      whole &= row_of(*b) % size == 0 && (b->scale == 1 || size == itemsize(b->value->dl.dtype));
  });
  if (whole) return s;
  for (uint16_t i = 0; i < c->n_out; i++) c->thread->runtime->release_value(c->out + i);
  return PLAIT_DECLINE;
}

plait_status run_batched(plait_call *c, const Samples &samples) {
  if (const plait_status s = refuse_lost_history(c); s < 0) return s;
  if (const plait_status s = refuse_unrecorded_write(c, samples); s < 0) return s;
  if ((c->op->flags & PLAIT_OP_VIEW) && c->in[0].tag == PLAIT_TENSOR && has_rows(c->in[0].u.t) &&
      is_batched(c->in[0].u.t))
    if (const plait_status s = view_of_rows(c); s != PLAIT_DECLINE) return s;
  if (const plait_status s = rearrange(c, samples); s != PLAIT_DECLINE) return s;
  const Serving serving(c->thread, samples);
  return serve_in_python(c);
}

plait_status run(plait_call *c) {
  Samples samples;
  const auto see = [&](plait_tensor *t) { samples.see(marked(t)); };
  each_tensor(c->in, c->n_in, see);
  if (c->form == PLAIT_OUT) each_tensor(c->out, c->n_out, see);
  const plait_status s = samples.any                      ? run_batched(c, samples)
                         : c->op->flags & PLAIT_OP_RANDOM ? serve_in_python(c)
                                                          : c->thread->runtime->call_below(c);
  if (s >= 0) note_results(c);
  return s;
}

const plait_plugin plugin{PLAIT_HEADER(plait_plugin), "batching", PY_VERSION, 0, nullptr, nullptr};

bool register_layer() {
  plait_thread *thread = state.runtime->thread();
  uint32_t bit = 0, sharing = 0;
  plait_status s = state.runtime->attach(thread, &plugin);
  if (s >= 0) s = state.runtime->layer(thread, "batching", position, &bit);
  if (s >= 0) s = state.runtime->layer(thread, "sharing", sharing_position, &sharing);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, run, nullptr, &plugin,
                                 nullptr);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + sharing, share, nullptr,
                                 &plugin, nullptr);
  if (s < 0) return state.python->raise(thread, s), false;
  layer_bit = uint64_t(1) << bit;
  sharing_bit = uint64_t(1) << sharing;
  return true;
}

PyObject *set_batching(PyObject *, PyObject *args) {
  PyObject *serve, *loop, *sum, *enter, *leave;
  if (!PyArg_ParseTuple(args, "OOOOO:set_batching", &serve, &loop, &sum, &enter, &leave))
    return nullptr;
  if (!layer_bit && !register_layer()) return nullptr;
  Py_XDECREF(functions.serve.exchange(new_reference(serve)));
  Py_XDECREF(functions.loop.exchange(new_reference(loop)));
  Py_XDECREF(functions.sum.exchange(new_reference(sum)));
  Py_XDECREF(functions.enter.exchange(new_reference(enter)));
  Py_XDECREF(functions.leave.exchange(new_reference(leave)));
  Py_RETURN_NONE;
}

PyObject *batch(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 2 || !is_tensor(args[0]) || handle_of(args[0])->dl.ndim < 1 || !layer_bit)
    return PyErr_Format(PyExc_TypeError, "batch: (tensor with a dimension, level) is required");
  const int64_t level = PyLong_AsLongLong(args[1]);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *value = handle_of(args[0]), *result = nullptr;
  plait_retain(value);
  const plait_status s = make_batched(thread, value, level, &result);
  return s < 0 ? state.python->raise(thread, s) : wrap(result);
}

PyObject *samples(PyObject *, PyObject *o) {
  int64_t number = 0;
  plait_tensor *all = is_tensor(o) ? all_samples(handle_of(o), &number) : nullptr;
  if (!all) return PyErr_Occurred() ? nullptr : new_reference(Py_None);
  const Object value(wrap(all)), level(PyLong_FromLongLong(number));
  return value && level ? PyTuple_Pack(2, value.get(), level.get()) : nullptr;
}

PyObject *become(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 3 || !is_tensor(args[0]))
    return PyErr_Format(PyExc_TypeError, "become_batched: (tensor, level, size) is required");
  const Scope to{PyLong_AsLongLong(args[1]), PyLong_AsLongLong(args[2]), false};
  if (PyErr_Occurred()) return nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = become_batched(thread, handle_of(args[0]), to);
  return s < 0 ? state.python->raise(thread, s), nullptr : PyBool_FromLong(s == PLAIT_OK);
}

PyObject *set_recorded(PyObject *, PyObject *o) {
  if (!is_tensor(o)) return PyErr_Format(PyExc_TypeError, "note_recorded: a tensor is required");
  note_recorded(handle_of(o));
  Py_RETURN_NONE;
}

PyObject *memory(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 2 || !is_tensor(args[0]))
    return PyErr_Format(PyExc_TypeError, "memory: (tensor, level) is required");
  const int64_t level = PyLong_AsLongLong(args[1]);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *result = nullptr;
  const plait_status s = memory_within(thread, handle_of(args[0]), level, &result);
  if (s < 0) return state.python->raise(thread, s), nullptr;
  return s == PLAIT_OK ? wrap(result) : new_reference(Py_None);
}

PyObject *give_rows(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 3 || !is_tensor(args[0]) || !is_tensor(args[1]) || !is_batched(handle_of(args[0])))
    return PyErr_Format(PyExc_TypeError, "set_rows: (batched tensor, rows, level) is required");
  const int64_t level = PyLong_AsLongLong(args[2]);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  plait_tensor *rows = nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = state.runtime->tensor_alias(thread, handle_of(args[1]), &rows);
  if (s < 0) return state.python->raise(thread, s), nullptr;
  return PyBool_FromLong(set_rows(handle_of(args[0]), rows, level));
}

PyMethodDef methods[] = {
    {"set_batching", entry<set_batching>, METH_VARARGS,
     "set_batching(serve, loop, sum_gradients, enter, leave, /)\n--\n\nSet who serves "
     "operators on batched tensors, and makes and reads those with history."},
    {"batch", function(entry<batch>), METH_FASTCALL,
     "batch(value, level, /)\n--\n\nA tensor of one sample that stands for all of them."},
    {"samples", entry<samples>, METH_O,
     "samples(tensor, /)\n--\n\n(value, level) of a batched tensor; None for others."},
    {"become_batched", function(entry<become>), METH_FASTCALL,
     "become_batched(tensor, level, size, /)\n--\n\nLet a tensor that a call of vmap has made "
     "stand for one of each sample; False if it was not made within the call."},
    {"note_recorded", entry<set_recorded>, METH_O,
     "note_recorded(tensor, /)\n--\n\nNote the result of a function that has a history."},
    {"memory", function(entry<memory>), METH_FASTCALL,
     "memory(tensor, level, /)\n--\n\nThe memory of each sample of a tensor that was made within "
     "this call and is batched at an outer one; None for others."},
    {"set_rows", function(entry<give_rows>), METH_FASTCALL,
     "set_rows(tensor, rows, level, /)\n--\n\nLet such a tensor stand for one of each sample at "
     "this level, too: the memories along dimension 0 of `rows`. False if they have no strides."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject *enter_recorded(PyObject *value, int64_t level) {
  const Object enter(functions.enter.get());
  return PyObject_CallFunction(enter.get(), "OL", value, static_cast<long long>(level));
}

PyObject *leave_recorded(PyObject *tensor, int64_t level, int64_t size) {
  const Object leave(functions.leave.get());
  return PyObject_CallFunction(leave.get(), "OLL", tensor, static_cast<long long>(level),
                               static_cast<long long>(size));
}

bool add_layer(PyObject *module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace plait::func
