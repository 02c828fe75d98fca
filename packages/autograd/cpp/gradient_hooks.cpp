#include "gradient_hooks.hpp"

#include "watch.hpp"

namespace plait::autograd {
namespace {

// A hook must return a gradient of the same shape and dtype.
void check_answer(plait_thread *thread, const Node *n, const Layout &l, const plait_tensor *g,
                  const char *kind) {
  if (!g || l.ndim < 0 || fits(l, g)) return;
  if (!same(l.device, g->dl.device))
    raise(thread, PLAIT_VALUE_ERROR, node_name(n),
          "a hook must return %s on device %s, or None; got %s", kind,
          device_text(l.device).c_str(), device_text(g->dl.device).c_str());
  if (l.ndim == g->dl.ndim && std::memcmp(l.shape, g->dl.shape, size_t(l.ndim) * 8) == 0)
    raise(thread, PLAIT_DTYPE_ERROR, node_name(n),
          "a hook must return %s of dtype %s, or None; got %s", kind, plait::name(l.dtype),
          plait::name(g->dl.dtype));
  raise(thread, PLAIT_SHAPE_ERROR, node_name(n), "a hook must return %s of shape %s; got %s", kind,
        text(l.shape, l.ndim).c_str(), shape_text(g).c_str());
}

void release_all(std::vector<plait_tensor *> &all) {
  for (plait_tensor *&t : all) drop(t);
}

}  // namespace

void call_host(plait_thread *thread, plait_object *callable, plait_tensor *const *in, uint32_t n_in,
               plait_tensor **out, uint32_t n_out) {
  const plait_host *host = role<plait_host>(thread->runtime);
  if (!host)
    raise(thread, PLAIT_ERROR, "backward", "the interpreter of the language of a hook has ended");
  check(host->apply(host->ctx, thread, callable, in, n_in, out, n_out));
}

void run_arrived_hooks(plait_thread *thread, Node *n, Gradients &gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::arrived)) {
    if (hook->index >= n->n_outs || !gradients[hook->index]) continue;
    plait_tensor *answer = nullptr;
    call_host(thread, hook->what, gradients.data() + hook->index, 1, &answer, 1);
    const Tensor owned = Tensor::steal(answer);
    if (!answer) continue;
    check_answer(thread, n, n->outs[hook->index], answer, "the tensor's gradient");
    drop(gradients[hook->index]);
    gradients[hook->index] = Tensor(owned).release();
  }
}

void keep_retained(plait_thread *thread, Node *n, Gradients &gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::retained)) {
    plait_tensor *g = gradients[hook->index];
    if (!g) continue;
    auto *cell = reinterpret_cast<Cell *>(hook->what);
    for (bool done = false; !done;) {  // again if a pass of another thread was faster
      Tensor before;
      {
        const Spin guard(cell->spin);
        before = Tensor::share(cell->grad);
      }
      Tensor whole = before ? add(thread, before, Tensor::share(g)) : Tensor::share(g);
      plait_tensor *old = before.get();
      {
        const Spin guard(cell->spin);
        done = cell->grad == old;
        if (done) cell->grad = whole.release();
      }
      if (done) plait_release(old);
    }
  }
}

bool run_before_hooks(plait_thread *thread, Node *n, Gradients &gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::before)) {
    std::vector<plait_tensor *> answer(n->n_outs, nullptr);
    call_host(thread, hook->what, gradients.data(), n->n_outs, answer.data(), n->n_outs);
    try {
      for (uint32_t i = 0; i < n->n_outs; i++)
        check_answer(thread, n, n->outs[i], answer[i], "an output's gradient");
    } catch (...) {
      release_all(answer);
      throw;
    }
    for (uint32_t i = 0; i < n->n_outs; i++) {
      drop(gradients[i]);
      gradients[i] = answer[i];
    }
  }
  for (uint32_t i = 0; i < n->n_outs; i++)
    if (gradients[i]) return true;
  return false;
}

void run_after_hooks(plait_thread *thread, Node *n, plait_tensor *const *arguments,
                     Gradients &result) {
  for (const Ref<Hook> &hook : hooks_at(n, When::after)) {
    std::vector<plait_tensor *> in, answer(n->n_edges, nullptr);
    in.insert(in.end(), result.data(), result.data() + n->n_edges);
    in.insert(in.end(), arguments, arguments + n->n_outs);
    call_host(thread, hook->what, in.data(), uint32_t(in.size()), answer.data(), n->n_edges);
    for (uint32_t i = 0; i < n->n_edges; i++) result.put(i, Tensor::steal(answer[i]));
  }
}

void run_accumulated_hooks(plait_thread *thread, Node *n) {
  for (const Ref<Hook> &hook : hooks_at(n, When::accumulated))
    call_host(thread, hook->what, nullptr, 0, nullptr, 0);
}

}  // namespace plait::autograd
