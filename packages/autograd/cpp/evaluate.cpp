// What each kind of node does with the gradients of its outputs.
#include "accumulate.hpp"
#include "op_node.hpp"
#include "task.hpp"
#include "views.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

class Gradients {  // an owned array of possibly NULL tensors
 public:
  explicit Gradients(uint32_t n) : n_(n) {
    if (n > kFew) {
      many_.resize(n, nullptr);
      at_ = many_.data();
    } else {
      for (uint32_t i = 0; i < n; i++) few_[i] = nullptr;
    }
  }
  ~Gradients() {
    for (uint32_t i = 0; i < n_; i++) plait_release(at_[i]);
  }
  Gradients(const Gradients &) = delete;
  Gradients &operator=(const Gradients &) = delete;
  plait_tensor **data() { return at_; }
  Tensor take(uint32_t i) { return Tensor::steal(std::exchange(at_[i], nullptr)); }

 private:
  static constexpr uint32_t kFew = 8;
  uint32_t n_;
  plait_tensor *few_[kFew];
  std::vector<plait_tensor *> many_;
  plait_tensor **at_ = few_;
};

void fill_zeros(plait_thread *thread, const Node *n, plait_tensor **gradients) {
  for (uint32_t i = 0; i < n->n_outs; i++)
    if (!gradients[i] && n->outs[i].ndim >= 0) gradients[i] = zeros(thread, n->outs[i]).release();
}

// An operator within a derivative failed, which the user never called: say where it comes from.
[[noreturn]] void failed_in(plait_thread *thread, const OpNode *n, plait_status s) {
  const plait_error *e = thread->error;
  if (!e || e->host || !e->message) throw Error(s);
  const std::string origin = e->origin ? e->origin : "", text = e->message;
  const size_t skip = origin.empty() ? 0 : origin.size() + 2;  // "origin: "
  const std::string made = where(n);
  raise(thread, e->code, origin, "%s (in the derivative of %s%s%s)",
        text.substr(std::min(skip, text.size())).c_str(), written_name(n->op, n->form).c_str(),
        made.empty() ? "" : ", called", made.c_str());
}

}  // namespace

void Task::evaluate(Node *n, plait_tensor **gradients) {
  switch (n->kind) {
    case Kind::op: return evaluate_op(static_cast<OpNode *>(n), gradients);
    case Kind::leaf: return accumulate(static_cast<Leaf *>(n), gradients);
    case Kind::host: return evaluate_host(static_cast<HostNode *>(n), gradients);
    case Kind::assigned: return evaluate_assigned(static_cast<ViewNode *>(n), gradients);
    case Kind::strided: {
      const Tensor g = Tensor::steal(std::exchange(gradients[0], nullptr));
      return deliver(n, 0, spread(thread_, static_cast<ViewNode *>(n), g));
    }
    case Kind::missing: {
      const auto *m = static_cast<MissingNode *>(n);
      raise(thread_, PLAIT_NOT_IMPLEMENTED, written_name(m->op, m->form),
            "the derivative of %s is not implemented; detach() its inputs if no gradient should "
            "pass%s",
            m->op->name, made_at(n).c_str());
    }
  }
}

void Task::vjp(plait_thread *thread, OpNode *n, plait_tensor *const *gy, uint64_t need,
               plait_tensor **gx, bool keep, ViewNode *within) const {
  const Unpacked values(thread, n, keep, create_, within);
  plait_vjp v{};
  v.size = sizeof v;
  v.n_in = uint16_t(n->n_in);
  v.n_out = uint16_t(n->n_outs);
  v.op = n->op;
  v.thread = thread;
  v.in = values.in();
  v.out = values.out();
  v.gy = gy;
  v.need = need;
  v.gx = gx;
  const plait_status s = n->op->def->vjp(&v);
  if (s < 0) failed_in(thread, n, s);
}

void Task::evaluate_op(OpNode *n, plait_tensor **gradients) {
  fill_zeros(thread_, n, gradients);
  uint64_t need = 0;
  for (uint32_t i = 0; i < n->n_edges; i++)
    if (wants(n->edges[i])) need |= bit_of(i);
  Gradients gx(n->n_edges);
  if (ahead_.empty() || !computed(n, gx.data()))
    vjp(thread_, n, gradients, need, gx.data(), retain_);
  for (uint32_t i = 0; i < n->n_outs; i++) drop(gradients[i]);
  for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, gx.take(i));
}

// The base's gradient, with the place that was written handed to the operator that wrote it.
void Task::evaluate_assigned(ViewNode *n, plait_tensor **gradients) {
  const Placed placed(thread_, n, false);
  copy_into(thread_, placed.whole(), Tensor::steal(std::exchange(gradients[0], nullptr)));
  uint64_t need = 0;
  for (uint32_t i = 0; i < n->n_edges; i++)
    if (wants(n->edges[i]) && (i || (n->inner->n_edges && n->inner->edges[0].node)))
      need |= bit_of(i);
  Gradients gx(n->n_edges);
  {
    const Tensor part = clone(thread_, placed.part(n->view.shape));
    plait_tensor *const gy[] = {part.get()};
    vjp(thread_, n->inner, gy, need, gx.data(), retain_, n);
  }
  if (wants(n->edges[0])) {
    Tensor own = gx.take(0);
    if (!own) own = zeros(thread_, n->view);
    copy_into(thread_, placed.part(n->view.shape), own);
    deliver(n, 0, placed.whole());
  } else {
    deliver(n, 0, Tensor());
  }
  for (uint32_t i = 1; i < n->n_edges; i++) deliver(n, i, gx.take(i));
}

void Task::evaluate_host(HostNode *n, plait_tensor **gradients) {
  const plait_host *host = PLAIT_ROLE(thread_->roles->host);
  if (!host)
    raise(thread_, PLAIT_ERROR, n->name,
          "the host language that this function was written in is gone");
  if (!n->sparse) fill_zeros(thread_, n, gradients);
  Gradients gx(n->n_edges);
  check(host->apply(host->ctx, thread_, n->callable, gradients, n->n_outs, gx.data(), n->n_edges));
  for (uint32_t i = 0; i < n->n_outs; i++) drop(gradients[i]);
  for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, gx.take(i));
}

void Task::accumulate(Leaf *leaf, plait_tensor **gradient) {
  Tensor g = Tensor::steal(std::exchange(gradient[0], nullptr));
  if (!is_frozen(leaf)) add_to_leaf(thread_, leaf, std::move(g), create_);
}

}  // namespace plait::autograd
