// sgd_step, adam_step and count_steps of plait-optim: one launch for a list of parameters. The
// other optimizers run as operators on each parameter. nvcc fuses nothing here: steps give the bits
// of the CPU.
#include "block/block.h"
#include "pointwise/pointwise.h"

namespace plait::cuda {
namespace {

constexpr int kLists = 5, kUpdates = 44;  // tensors of a parameter; parameters of a launch
constexpr int64_t kUpdateChunk = 1 << 13;  // elements of a block
constexpr int kCounts = 480;  // step numbers of a launch

enum UpdateFlags : uint32_t {
  kDecays = 1,
  kMomentum = 2,
  kFirstStep = 4,
  kNesterov = 8,
  kAmsgrad = 16
};

// One parameter: itself, its gradient, and up to three tensors of the optimizer's state.
struct Update {
  void *data[kLists];
  int64_t n, first_block;
  double step, inverse_root;  // of Adam: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t)
  uint32_t flags;
  bool is_aligned;
  int32_t number;  // of the parameter in `counts`
};
struct UpdateArgs {
  int32_t count;
  uint32_t lists;  // bits of those that there are
  const void *scale;  // a factor of the gradient on the device, or NULL
  bool is_wide_scale;  // it is a float64, otherwise a float32
  double by, l2;  // the gradient is by * g + l2 * p
  const void *counts;  // step numbers on the device, or NULL: `step` and `inverse_root` are known
  double keep, weight1, beta1, beta2, weight2, eps;  // Adam
  double lr, momentum, damped;  // gradient descent
  Update of[kUpdates];
};
struct CountArgs {
  int64_t count;
  void *out;
  double by;
  void *step[kCounts];
};

// beta^t by squaring, whose operations every processor rounds alike.
PLAIT_HD double whole_power(double beta, int64_t t) {
  double power = 1;
  for (; t > 0; t /= 2, beta *= beta)
    if (t % 2) power *= beta;
  return power;
}
PLAIT_HD double adam_step_size(double lr, double beta1, int64_t t) {
  return lr / (1 - whole_power(beta1, t));
}
PLAIT_HD double adam_inverse_root(double beta2, int64_t t) {
  return 1 / ::sqrt(1 - whole_power(beta2, t));
}

#if PLAIT_KERNELS
template <class T>
PLAIT_DEVICE T update_gradient(const UpdateArgs &a, const Update &u, T by, T g, T p) {
  T d = by * g;
  if (u.flags & kDecays) d += T(a.l2) * p;
  return d;
}

template <class T>
struct SgdRule {
  PLAIT_DEVICE SgdRule(Thread &, const UpdateArgs &, const Update &) {}
  PLAIT_DEVICE void element(const UpdateArgs &a, const Update &u, T by, T (&x)[kLists]) const {
    T d = update_gradient(a, u, by, x[1], x[0]);
    if (u.flags & kMomentum) {
      x[2] = (u.flags & kFirstStep) ? d : T(a.momentum) * x[2] + T(a.damped) * d;
      d = (u.flags & kNesterov) ? d + T(a.momentum) * x[2] : x[2];
    }
    x[0] -= T(a.lr) * d;
  }
};

template <class T>
struct AdamRule {
  T step, inverse_root;
  PLAIT_DEVICE AdamRule(Thread &t, const UpdateArgs &a, const Update &u)
      : step(T(u.step)), inverse_root(T(u.inverse_root)) {
    if (!a.counts) return;
    const auto number = int64_t(t.global<const double>(a.counts).load(u.number));
    step = T(adam_step_size(a.lr, a.beta1, number));
    inverse_root = T(adam_inverse_root(a.beta2, number));
  }
  PLAIT_DEVICE void element(const UpdateArgs &a, const Update &u, T by, T (&x)[kLists]) const {
    const T d = update_gradient(a, u, by, x[1], x[0]);
    x[2] += T(a.weight1) * (d - x[2]);
    x[3] = T(a.beta2) * x[3] + T(a.weight2) * d * d;
    T square = x[3];
    if (u.flags & kAmsgrad) x[4] = square = x[4] > x[3] ? x[4] : x[3];
    const T root = scalar::math::sqrt(square) * inverse_root + T(a.eps);
    x[0] = T(a.keep) * x[0] - step * (x[2] / root);
  }
};

// The parameter that a block works on.
PLAIT_DEVICE const Update &update_of(const UpdateArgs &a, int64_t block) {
  int low = 0, high = a.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (a.of[middle].first_block <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return a.of[low];
}

// Elements [i, i + kWidth) of all lists.
template <int kWidth, class Rule, class E, class T>
PLAIT_DEVICE void update_elements(const Rule &rule, const UpdateArgs &a, const Update &u, T by,
                                  const Global<E> (&data)[kLists], int64_t i) {
  Vector<E, kWidth> v[kLists] = {};
#pragma unroll
  for (int k = 0; k < kLists; k++) {
    if (!(a.lists >> k & 1)) continue;
    if constexpr (kWidth > 1) {
      v[k] = data[k].template load_vector<kWidth>(i);
    } else {
      v[k].at[0] = data[k].load(i);
    }
  }
#pragma unroll
  for (int j = 0; j < kWidth; j++) {
    T x[kLists];
#pragma unroll
    for (int k = 0; k < kLists; k++) x[k] = widen(v[k].at[j]);
    rule.element(a, u, by, x);
#pragma unroll
    for (int k = 0; k < kLists; k++) v[k].at[j] = narrow<E>(x[k]);
  }
#pragma unroll
  for (int k = 0; k < kLists; k++) {
    if (k == 1 || !(a.lists >> k & 1)) continue;  // the gradient stays
    if constexpr (kWidth > 1) {
      data[k].template store_vector<kWidth>(i, v[k]);
    } else {
      data[k].store(i, v[k].at[0]);
    }
  }
}

template <template <class> class Rule, class E>
PLAIT_DEVICE void update_parameters(Thread &t, const UpdateArgs &a) {
  using T = Compute<E>;
  constexpr int kWidth = pointwise_width(sizeof(E));
  const Update &u = update_of(a, t.block());
  const Global<E> data[kLists] = {t.template global<E>(u.data[0]), t.template global<E>(u.data[1]),
                                  t.template global<E>(u.data[2]), t.template global<E>(u.data[3]),
                                  t.template global<E>(u.data[4])};
  double scale = 1;
  if (a.scale)
    scale = a.is_wide_scale ? t.template global<const double>(a.scale).load(0)
                            : double(t.template global<const float>(a.scale).load(0));
  const T by = T(a.by * scale);
  const Rule<T> rule(t, a, u);
  const int64_t begin = (t.block() - u.first_block) * kUpdateChunk;
  const int64_t end = begin + kUpdateChunk < u.n ? begin + kUpdateChunk : u.n;
  int64_t rest = begin;
  if (u.is_aligned) {
    rest = begin + (end - begin) / kWidth * kWidth;
    for (int64_t i = begin + t.thread() * kWidth; i < rest; i += t.threads() * kWidth)
      update_elements<kWidth>(rule, a, u, by, data, i);
  }
  for (int64_t i = rest + t.thread(); i < end; i += t.threads())
    update_elements<1>(rule, a, u, by, data, i);
}

template <class E>
PLAIT_DEVICE void sgd_update(Thread &t, const UpdateArgs &a) {
  update_parameters<SgdRule, E>(t, a);
}
template <class E>
PLAIT_DEVICE void adam_update(Thread &t, const UpdateArgs &a) {
  update_parameters<AdamRule, E>(t, a);
}
template <class E>
PLAIT_DEVICE void count_numbers(Thread &t, const CountArgs &a) {
  for (int64_t i = t.index(); i < a.count; i += t.stride()) {
    const auto step = t.global<E>(a.step[i]);
    const E number = step.load(0) + E(a.by);
    step.store(0, number);
    t.global<double>(a.out).store(i, double(number));
  }
}
#endif
#define PLAIT_EACH_STEP_NUMBER(X, ...) X(f32, float, __VA_ARGS__)

PLAIT_DEVICE_KERNEL(sgd_update, UpdateArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(adam_update, UpdateArgs, 256, FLOATING);
PLAIT_DEVICE_KERNEL(count_numbers, CountArgs, 256, STEP_NUMBER);

}  // namespace
}  // namespace plait::cuda

#if PLAIT_HOST
namespace plait::cuda {
namespace {

// The tensors of parameter i, which lie alike and without gaps; false: they do not.
bool read_update(const plait_call *c, int lists, uint32_t i, Kind k, Update *u) {
  const int item = size_of(k), width = pointwise_width(item);
  Plan plan;
  for (int list = 0; list < lists; list++) {
    if (!c->in[list].n) continue;
    const DLTensor &each = c->in[list].u.ts[i]->dl;
    if (each.device.device_type != kDLCUDA || kind(each.dtype) != k) return false;
    plan.add(&each, item);
  }
  plan.finish();
  u->n = plan.numel;
  u->is_aligned = true;
  for (int list = 0, at = 0; list < lists; list++) {
    if (!c->in[list].n) continue;
    if (plan.numel > 1 && (plan.ndim != 1 || plan.stride[at][0] != item)) return false;
    u->is_aligned &= uintptr_t(plan.data[at]) % uintptr_t(item * width) == 0;
    u->data[list] = plan.data[at++];
  }
  return true;
}

// What differs between optimizers: the places of arguments, the rule, and its numbers.
struct Optimizer {
  const DeviceKernel *kernel;
  int lists, steps, counts, maximize;  // `counts`: 0 if there is no such argument
  void (*set)(const plait_call *, int64_t t, UpdateArgs *, Update *);
};

// The factor of gradients; false: a tensor that kernels do not read.
bool read_scale(const plait_call *c, int maximize, UpdateArgs *a) {
  a->by = integer(c, maximize) ? -1 : 1;
  const DLTensor *scale = tensor(c, maximize + 1);
  if (!scale) {
    a->by *= real(c, maximize + 1, 1);
    return true;
  }
  const Kind k = kind(scale->dtype);
  if (k != F32 && k != F64) return false;
  if (scale->device.device_type == kDLCPU) {
    a->by *= k == F64 ? *data<double>(scale) : double(*data<float>(scale));
  } else {
    a->scale = scale->data, a->is_wide_scale = k == F64;
  }
  return true;
}

// The step numbers on the device, if they are there; false: a tensor that kernels do not read.
bool read_counts(const plait_call *c, int counts, UpdateArgs *a) {
  const DLTensor *t = counts ? tensor(c, counts) : nullptr;
  if (!t) return true;
  a->counts = t->data;
  return kind(t->dtype) == F64 && t->device.device_type == kDLCUDA &&
         (t->shape[0] == 1 || t->strides[0] == 1);
}

// Launches what the arguments hold, all of one dtype.
plait_status flush(const plait_call *c, const Optimizer &o, Kind k, UpdateArgs *a) {
  if (!a->count) return PLAIT_OK;
  const Update &last = a->of[a->count - 1];
  const int64_t blocks = last.first_block + ceil_div(last.n, kUpdateChunk);
  PLAIT_TRY(launch(c, *o.kernel, k, *a, blocks, 256));
  a->count = 0;
  return PLAIT_OK;
}

plait_status run_steps(plait_call *c, const Optimizer &o) {
  const uint32_t n = c->in[0].n;
  UpdateArgs a{};
  if (!read_scale(c, o.maximize, &a) || !read_counts(c, o.counts, &a)) return PLAIT_DECLINE;
  for (int list = 0; list < o.lists; list++)
    if (c->in[list].n) a.lists |= 1u << list;
  Update u{};
  for (uint32_t i = 0; i < n; i++)  // before anything is written
    if (!read_update(c, o.lists, i, kind(c->in[0].u.ts[i]->dl.dtype), &u)) return PLAIT_DECLINE;
  const plait_value &steps = c->in[o.steps];
  Kind before = Unknown;
  int64_t blocks = 0;
  for (uint32_t i = 0; i < n; i++) {
    const Kind k = kind(c->in[0].u.ts[i]->dl.dtype);
    if (a.count == kUpdates || k != before) PLAIT_TRY(flush(c, o, before, &a));
    if (!a.count) blocks = 0;
    u = Update{};
    read_update(c, o.lists, i, k, &u);
    before = k;
    if (!u.n) continue;
    u.first_block = blocks;
    blocks += ceil_div(u.n, kUpdateChunk);
    u.number = int32_t(i);
    o.set(c, a.counts ? 1 : steps.u.is[steps.n == 1 ? 0 : i], &a, &u);
    if (a.l2 != 0) u.flags |= kDecays;
    a.of[a.count++] = u;
  }
  return flush(c, o, before, &a);
}

// sgd_step(params, grads, momentum_buffers, steps, lr, momentum, dampening, weight_decay, nesterov,
// maximize, grad_scale)
void set_sgd(const plait_call *c, int64_t t, UpdateArgs *a, Update *u) {
  a->lr = real(c, 4);
  a->momentum = real(c, 5);
  a->damped = 1 - real(c, 6);
  a->l2 = real(c, 7);
  if (!c->in[2].n) return;
  u->flags |= kMomentum;
  if (t == 1) u->flags |= kFirstStep;
  if (integer(c, 8)) u->flags |= kNesterov;
}

// adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps,
// weight_decay, decoupled, counts, maximize, grad_scale)
void set_adam(const plait_call *c, int64_t t, UpdateArgs *a, Update *u) {
  const double lr = real(c, 6), beta1 = real(c, 7), beta2 = real(c, 8), decay = real(c, 10);
  const bool is_decoupled = integer(c, 11) != 0;
  a->l2 = is_decoupled ? 0 : decay;
  a->keep = is_decoupled ? 1 - lr * decay : 1;
  a->lr = lr;
  a->beta1 = beta1;
  a->weight1 = 1 - beta1;
  a->beta2 = beta2;
  a->weight2 = 1 - beta2;
  a->eps = real(c, 9);
  u->step = adam_step_size(lr, beta1, t);
  u->inverse_root = adam_inverse_root(beta2, t);
  if (c->in[4].n) u->flags |= kAmsgrad;
}

plait_status sgd_step(plait_call *c) {
  return run_steps(c, {&sgd_update_kernel, 3, 3, 0, 9, set_sgd});
}
plait_status adam_step(plait_call *c) {
  return run_steps(c, {&adam_update_kernel, 5, 5, 12, 13, set_adam});
}

// count_steps(steps, by) -> numbers
plait_status count_steps(plait_call *c) {
  const plait_value &steps = c->in[0];
  for (uint32_t i = 0; i < steps.n; i++)
    if (steps.u.ts[i]->dl.device.device_type != kDLCUDA) return PLAIT_DECLINE;
  for (uint32_t first = 0; first < steps.n; first += kCounts) {
    CountArgs a{};
    a.count = steps.n - first < kCounts ? steps.n - first : kCounts;
    a.by = double(integer(c, 1, 1));
    a.out = data<double>(result(c)) + first;
    for (int64_t i = 0; i < a.count; i++) a.step[i] = steps.u.ts[first + i]->dl.data;
    PLAIT_TRY(launch(c, count_numbers_kernel, F32, a, blocks_for(c, a.count, 256), 256));
  }
  return PLAIT_OK;
}

PLAIT_KERNEL("sgd_step", sgd_step);
PLAIT_KERNEL("adam_step", adam_step);
PLAIT_KERNEL("count_steps", count_steps);

}  // namespace
}  // namespace plait::cuda
#endif
