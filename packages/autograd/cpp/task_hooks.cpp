// What a pass does at nodes that have hooks, and at every node in anomaly mode.
#include "task.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

// Calls a hook with gradients (NULL: None) and gets as many as `n_out` back.
void apply(plait_thread *thread, const Hook *hook, plait_tensor *const *in, uint32_t n_in,
           plait_tensor **out, uint32_t n_out) {
  const plait_host *host = PLAIT_ROLE(thread->roles->host);
  if (!host)
    raise(thread, PLAIT_ERROR, "backward", "the host language that a hook was written in is gone");
  check(host->apply(host->ctx, thread, hook->what, in, n_in, out, n_out));
}

// A hook may answer with another gradient of the same kind only.
void check_answer(plait_thread *thread, const Node *n, const Layout &l, const plait_tensor *g,
                  const char *kind) {
  if (!g || l.ndim < 0 || fits(l, g)) return;
  if (!same_device(l.device, g->dl.device))
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

void Task::arrived_at(Node *n, plait_tensor **gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::arrived)) {
    if (hook->index >= n->n_outs || !gradients[hook->index]) continue;
    plait_tensor *answer = nullptr;
    apply(thread_, hook.get(), gradients + hook->index, 1, &answer, 1);
    const Tensor owned = Tensor::steal(answer);
    if (!answer) continue;
    check_answer(thread_, n, n->outs[hook->index], answer, "the tensor's gradient");
    drop(gradients[hook->index]);
    gradients[hook->index] = Tensor(owned).release();
  }
}

void Task::retain_at(Node *n, plait_tensor **gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::retained)) {
    plait_tensor *g = gradients[hook->index];
    if (!g) continue;
    auto *cell = reinterpret_cast<Cell *>(hook->what);
    plait_retain(g);
    plait_tensor *old;
    {
      const Spin guard(cell->spin);
      old = std::exchange(cell->grad, g);
    }
    plait_release(old);
  }
}

// Returns whether a gradient is left.
bool Task::before(Node *n, plait_tensor **gradients) {
  for (const Ref<Hook> &hook : hooks_at(n, When::before)) {
    std::vector<plait_tensor *> answer(n->n_outs, nullptr);
    apply(thread_, hook.get(), gradients, n->n_outs, answer.data(), n->n_outs);
    try {
      for (uint32_t i = 0; i < n->n_outs; i++)
        check_answer(thread_, n, n->outs[i], answer[i], "an output's gradient");
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

void Task::after(Node *n, plait_tensor *const *given) {
  for (const Ref<Hook> &hook : hooks_at(n, When::after)) {
    std::vector<plait_tensor *> in, answer(n->n_edges, nullptr);
    for (const Tensor &g : gathered_) in.push_back(g.get());
    in.insert(in.end(), given, given + n->n_outs);
    apply(thread_, hook.get(), in.data(), uint32_t(in.size()), answer.data(), n->n_edges);
    for (uint32_t i = 0; i < n->n_edges; i++) gathered_[i] = Tensor::steal(answer[i]);
  }
}

void Task::accumulated(Node *n) {
  for (const Ref<Hook> &hook : hooks_at(n, When::accumulated))
    apply(thread_, hook.get(), nullptr, 0, nullptr, 0);
}

void Task::evaluate_watched(Node *n, plait_tensor **gradients) {
  if (!before(n, gradients)) {
    for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, Tensor());
    return;
  }
  const bool nan = watching() && anomaly_nan && n->kind != Kind::leaf;
  std::vector<Tensor> given;  // to show: the node gives its own away
  if (nan || has_hooks(n, When::after))
    for (uint32_t i = 0; i < n->n_outs; i++) given.push_back(Tensor::share(gradients[i]));
  std::vector<plait_tensor *> shown;
  for (const Tensor &g : given) shown.push_back(g.get());
  const Ref<plait_object> site = Ref<plait_object>::share(site_of(n));
  try {
    gathered_.clear();
    gathered_.resize(n->n_edges);
    gathering_ = n;
    evaluate(n, gradients);
    if (!shown.empty()) after(n, shown.data());
    gathering_ = nullptr;
    if (nan) check_nan(n, shown.data());
  } catch (...) {
    gathering_ = nullptr;
    gathered_.clear();
    const Watch *w = watch.load(std::memory_order_acquire);
    if (watching() && w) w->failed(node_name(n).c_str(), site.get());
    throw;
  }
  std::vector<Tensor> made = std::move(gathered_);
  gathered_.clear();
  for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, std::move(made[i]));
  if (n->kind == Kind::leaf && !is_frozen(static_cast<const Leaf *>(n))) accumulated(n);
}

// ---- the first NaN
// --------------------------------------------------------------------------------------------------
void Task::check_nan(Node *n, plait_tensor *const *given) {
  for (uint32_t i = 0; i < n->n_edges; i++) {
    if (!gathered_[i] || !n->edges[i].node || !has_nan(thread_, gathered_[i].get())) continue;
    for (uint32_t k = 0; k < n->n_outs; k++)
      if (has_nan(thread_, given[k]))  // no node before this one made it
        raise(thread_, PLAIT_ERROR, node_name(n),
              "it returned NaN as gradient of input %u because it was given NaN: the gradient of a "
              "result, or what a hook returned, is NaN",
              unsigned(i));
    refuse_nan(n, i);
  }
}

void Task::refuse_nan(Node *n, uint32_t edge) {
  const Node *first = nullptr;  // the oldest call whose result had one
  for (const Node *m : visited_) {
    const Extra *x = m->extra.load(std::memory_order_acquire);
    if (x && x->nan > Nan::none && (!first || m->sequence < first->sequence)) first = m;
  }
  std::string forward;
  if (first) {
    const Extra *x = first->extra.load(std::memory_order_acquire);
    const auto *op = first->kind == Kind::op ? static_cast<const OpNode *>(first) : nullptr;
    const std::string name = op ? written_name(op->op, op->form) : node_name(first);
    forward = "; in the forward pass the first NaN ";
    if (x->nan == Nan::took && op)
      forward += std::string("came in as `") + op->op->args[x->argument].name + "` of " + name;
    else
      forward += "was made by " + name;
    forward += where(first);
  }
  const std::string made = where(n);
  raise(thread_, PLAIT_ERROR, node_name(n),
        "it returned NaN as gradient of input %u, of gradients that were not NaN%s%s%s",
        unsigned(edge), made.empty() ? "" : "; the call was made", made.c_str(), forward.c_str());
}

}  // namespace plait::autograd
