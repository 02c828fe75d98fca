#include "forward.hpp"

#include <vector>

#include "jvp.hpp"
#include "tangents.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// Sets the modes in which tangents are computed, for a scope: the layer is off, recording is
// unchanged if the level records tangents, and hooks of saved tensors are off.
class Quiet {
 public:
  explicit Quiet(plait_thread *thread) : thread_(thread), before_(thread->excluded) {
    const Level *level = level_of(thread);
    thread->excluded |= forward_bit | (level && !level->recorded ? engine.bit : 0);
    packing_ = packing() ? set_packing(0) : 0;
  }
  ~Quiet() {
    thread_->excluded = before_;
    if (packing_) set_packing(packing_);
  }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;

 private:
  plait_thread *thread_;
  uint64_t before_;
  int packing_;
};

Tangents tangents_of(const plait_call *c) {
  Tangents result;
  each_input(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t position) {
    if (!differentiable(t->dl.dtype)) return;
    if (Tensor own = tangent_of(c->thread, t)) result.push_back({position, std::move(own)});
  });
  return result;
}

// The layer.
void keep(const plait_call *c, const std::vector<Tensor> &result, Expecting &expecting) {
  size_t k = 0;
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    // kernels may return views of a larger temporary
    if (result[k]) write_tangent(c->thread, t, result[k]);
    if (result[k]) expecting.settle(t, tangent_of(c->thread, t));
    k++;
  });
}

void keep_written(const plait_call *c, const std::vector<Tensor> &result, Expecting &expecting) {
  size_t k = 0;
  each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
    write_tangent(c->thread, t, result[k++]);
    expecting.settle(t, tangent_of(c->thread, t));
  });
}

void release_all(plait_call *c) {
  for (uint16_t i = 0; i < c->n_out; i++) engine.runtime->release_value(c->out + i);
}

plait_status function(plait_call *c, const Tangents &tangents, Expecting &expecting) {
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK || c->op->flags & PLAIT_OP_VIEW) return s;
  try {
    const Quiet quiet(c->thread);
    keep(c, jvp(c, tangents), expecting);
  } catch (...) {
    release_all(c);
    throw;
  }
  return s;
}

void check_derivative(const plait_call *c) {
  if (!c->op->def->vjp && !c->op->def->jvp)
    refuse_tangents(
        c, "the operator has no derivative; detach() its inputs if it should count as constant");
  if (!role<plait_engine>(c->thread->runtime)) refuse_tangents(c, "an engine must be loaded");
}

// Inputs in the memory that is written to are copied first, as the derivative needs their old
// values.
plait_status in_place(plait_call *c, const Tangents &tangents, Expecting &expecting) {
  check_derivative(c);
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> copies;
  {
    const Quiet quiet(c->thread);
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag != PLAIT_TENSOR || in[i].u.t->storage != c->out[0].u.t->storage) continue;
      copies.push_back(clone(c->thread, Tensor::share(in[i].u.t)));
      in[i] = value(copies.back());
    }
  }
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK) return s;
  const Quiet quiet(c->thread);
  plait_call inner = *c;
  inner.size = sizeof inner;
  inner.form = PLAIT_FUNCTION;
  inner.in = in;
  keep_written(c, jvp(&inner, tangents), expecting);
  return s;
}

plait_status writer(plait_call *c, uint32_t written, const Tangents &tangents,
                    Expecting &expecting) {
  if (c->op->def->vjp) {
    uint64_t all = 0, own = 0;
    each_input(c, [&](const plait_tensor *, uint32_t argument, uint32_t, uint32_t position) {
      all |= bit_of(position);
      if (written >> argument & 1) own |= bit_of(position);
    });
    if (needs_of(c, all).in & own) refuse_tangents(c, "its derivative reads what it overwrites");
  }
  const plait_status s = engine.runtime->call_below(c);
  if (s != PLAIT_OK) return s;
  const Quiet quiet(c->thread);
  keep_written(c, jvp(c, tangents), expecting);
  return s;
}

plait_status carried(plait_call *c) {
  if (!level_of(c->thread)) return engine.runtime->call_below(c);
  Expecting expecting(c->thread);
  Tangents tangents;
  {
    const Quiet quiet(c->thread);
    tangents = tangents_of(c);
    if (c->form == PLAIT_OUT)
      each_result(c, [&](plait_tensor *t, uint32_t, uint32_t, uint32_t) {
        if (!tangents.empty() || tangent_of(c->thread, t))
          refuse_tangents(c, "out= is not for dual tensors; call it without out=");
      });
  }
  if (tangents.empty()) return engine.runtime->call_below(c);
  if (!c->op->def->vjp && c->op->def->decompose) return engine.runtime->decompose(c);
  if (c->form == PLAIT_INPLACE) return in_place(c, tangents, expecting);
  if (const uint32_t written = written_arguments(c)) return writer(c, written, tangents, expecting);
  return function(c, tangents, expecting);
}

plait_status forward_layer(plait_call *c) {
  return border(c->thread, c->op->name, [c] { return carried(c); });
}

// For Python.
plait_status enter(plait_thread *thread, int recorded, uint64_t *level) {
  return border(thread, "enter_dual_level", [&]() -> plait_status {
    if (level_of(thread))
      raise(thread, PLAIT_ERROR, "enter_dual_level",
            "a dual level is entered already; several at once are not supported");
    enter_level(thread, recorded);
    *level = level_of(thread)->number;
    return PLAIT_OK;
  });
}

plait_status leave(plait_thread *thread) {
  if (!level_of(thread))
    return engine.runtime->raise(thread, PLAIT_ERROR, "exit_dual_level",
                                 "no dual level is entered");
  leave_level(thread);
  return PLAIT_OK;
}

uint64_t level(plait_thread *thread) {
  const Level *level = level_of(thread);
  return level ? level->number : 0;
}

plait_status set(plait_thread *thread, plait_tensor *t, plait_tensor *tangent, int written) {
  return border(thread, "jvp", [&]() -> plait_status {
    if (!level_of(thread)) raise(thread, PLAIT_ERROR, "jvp", "a dual level must be entered");
    if (tangent && shape_text(t) != shape_text(tangent))
      raise(thread, PLAIT_SHAPE_ERROR, "jvp",
            "a tangent must have the shape of its result, %s; got %s", shape_text(t).c_str(),
            shape_text(tangent).c_str());
    const Quiet quiet(thread);
    const Tensor own = tangent ? Tensor::share(tangent) : Tensor();
    if (written)
      write_tangent(thread, t, own);
    else
      set_tangent(thread, t, own);
    return PLAIT_OK;
  });
}

plait_status tangent(plait_thread *thread, plait_tensor *t, plait_tensor **out) {
  return border(thread, "jvp", [&]() -> plait_status {
    const Quiet quiet(thread);
    *out = level_of(thread) ? tangent_of(thread, t).release() : nullptr;
    return PLAIT_OK;
  });
}

// A copy without a tangent, recorded as usual.
Tensor plain(plait_thread *thread, plait_tensor *t) {
  struct Off {
    plait_thread *thread;
    uint64_t before;
    ~Off() { thread->excluded = before; }
  } const off{thread, std::exchange(thread->excluded, thread->excluded | forward_bit)};
  return clone(thread, Tensor::share(t));
}

plait_status make(plait_thread *thread, plait_tensor *t, plait_tensor *tangent,
                  plait_tensor **dual) {
  return border(thread, "make_dual", [&]() -> plait_status {
    if (!level_of(thread))
      raise(thread, PLAIT_ERROR, "make_dual", "a dual level must be entered: with dual_level()");
    if (!differentiable(t->dl.dtype))
      raise(thread, PLAIT_DTYPE_ERROR, "make_dual",
            "`tensor` must have a floating-point or complex dtype; got %s", name(t->dl.dtype));
    if (!same(t->dl.dtype, tangent->dl.dtype))
      raise(thread, PLAIT_DTYPE_ERROR, "make_dual",
            "`tensor` and `tangent` must have the same dtype; got %s and %s", name(t->dl.dtype),
            name(tangent->dl.dtype));
    if (shape_text(t) != shape_text(tangent))
      raise(thread, PLAIT_SHAPE_ERROR, "make_dual",
            "`tangent` must have the shape of `tensor`, %s; got %s", shape_text(t).c_str(),
            shape_text(tangent).c_str());
    const Tensor result = plain(thread, t);
    const Quiet quiet(thread);
    set_tangent(thread, result.get(), Tensor::share(tangent));
    *dual = Tensor(result).release();
    return PLAIT_OK;
  });
}

plait_status parts(plait_thread *thread, plait_tensor *t, plait_tensor **primal,
                   plait_tensor **tangent) {
  return border(thread, "unpack_dual", [&]() -> plait_status {
    Tensor own;
    {
      const Quiet quiet(thread);
      if (level_of(thread)) own = tangent_of(thread, t);
    }
    *primal = plain(thread, t).release();
    *tangent = own.release();
    return PLAIT_OK;
  });
}

int carry(plait_thread *thread, int on) {
  const int before = !(thread->excluded & forward_bit);
  thread->excluded = on ? thread->excluded & ~forward_bit : thread->excluded | forward_bit;
  return before;
}

}  // namespace

const Forward forward{PLAIT_HEADER(Forward), enter, leave, level, make, parts, carry, set, tangent};

plait_status start_forward(const plait_runtime *runtime, const plait_plugin *plugin) {
  plait_thread *thread = runtime->thread();
  uint32_t bit = 0;
  const plait_status s = runtime->layer(thread, "forward", 40, &bit);
  if (s < 0) return s;
  forward_bit = uint64_t(1) << bit;
  uint64_t undo = 0;
  return runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, forward_layer, nullptr, plugin,
                            &undo);
}

}  // namespace plait::autograd
