// The shape function of all pointwise operators: promotion, broadcasting, the order of the result's
// dimensions.
#include "calls.hpp"
#include "library.hpp"
#include "words.hpp"

namespace plait::ops {
namespace {

[[noreturn]] void no_tensor(const Scope &x, uint32_t operands) {
  std::string names;
  for (uint32_t i = 0; i < x.op->n_args; i++)
    if (operands >> i & 1)
      names += (names.empty() ? "`" : " or `") + std::string(plait_arg_at(x.op, i)->name) + "`";
  fail(x, PLAIT_TYPE_ERROR, names + " must be a Tensor; got numbers only");
}

[[noreturn]] void cannot_broadcast(const Scope &x, uint32_t operands) {
  std::string names;
  for (uint32_t i = 0; i < x.op->n_args; i++)
    if ((operands >> i & 1) && is_tensor(x.call->in[i]))
      names += (names.empty() ? "`" : ", `") + std::string(plait_arg_at(x.op, i)->name) + "` has " +
               show(shape_of(x.call->in[i].u.t));
  fail(x, PLAIT_SHAPE_ERROR, "shapes must broadcast; " + names);
}

// whether the tensor is dense in an order other than C order, which the result keeps
bool dense_permuted(const plait_tensor *t) {
  const Dims want = dense_strides(t);
  for (int32_t i = 0; i < t->dl.ndim; i++)
    if (t->dl.shape[i] > 1 && t->dl.strides[i] != want[i]) return false;
  return true;
}

DType made_dtype(const PointwiseRule &rule, DType compute) {
  if (rule.promote == Promote::boolean) return dtype::bool_;
  return rule.real ? real_dtype(compute) : compute;
}

struct Operands {
  const Scope &x;
  const PointwiseRule &rule;
  template <class F>
  void each(uint32_t bits, F &&f) const {
    for (; bits; bits &= bits - 1) f(uint32_t(__builtin_ctz(bits)));
  }

  DType compute() const {
    Promotion p;
    const plait_value *in = x.call->in;
    each(rule.operands & ~rule.conditions, [&](uint32_t i) {
      if (in[i].tag != PLAIT_NONE) p.add(in[i]);
    });
    if (p.conflict()) fail(x, PLAIT_DTYPE_ERROR, names() + ": " + p.why());
    DType d = p.result();
    if (rule.promote == Promote::first) d = first(d);
    if (rule.promote == Promote::floating && category(d) <= Category::integer) d = default_dtype();
    if (rule.promote == Promote::number && category(d) == Category::boolean) d = dtype::int64;
    if (!in_group(d, rule.group))
      fail(x, PLAIT_DTYPE_ERROR, names() + " " + not_in_group(d, rule.group));
    for (uint32_t i = 0; i < x.op->n_args; i++)
      if (in[i].tag == PLAIT_COMPLEX && category(d) != Category::complex)
        fail(x, PLAIT_DTYPE_ERROR,
             std::string("`") + plait_arg_at(x.op, i)->name + "` must be a real number for " +
                 name(d) + " tensors; got a complex number");
    return rule.promote == Promote::boolean ? comparing(d) : d;
  }
  // a number that does not fit in a dtype of integers is compared by its value
  DType comparing(DType d) const {
    bool fit = true;
    each(rule.operands, [&](uint32_t i) {
      if (!is_tensor(x.call->in[i])) fit &= number_fits(x.call->in[i], d);
    });
    return fit ? d : same(d, dtype::uint64) ? dtype::float64 : dtype::int64;
  }
  // the dtype of the first operand, to which the others are cast
  DType first(DType common) const {
    const plait_value &v = x.call->in[__builtin_ctz(rule.operands & ~rule.conditions)];
    if (!is_tensor(v)) fail(x, PLAIT_TYPE_ERROR, names() + ": the first must be a Tensor");
    const DType own = v.u.t->dl.dtype;
    if (category(common) == Category::complex && category(own) != Category::complex)
      fail(x, PLAIT_DTYPE_ERROR, names() + ": complex numbers cannot be cast to " + name(own));
    return own;
  }
  // a fractional factor of integers is an error
  void check_factor(DType compute) const {
    const plait_value &v = x.call->in[rule.factor];
    const std::string argument = std::string("`") + plait_arg_at(x.op, rule.factor)->name + "`";
    if (v.tag == PLAIT_FLOAT && category(compute) <= Category::integer)
      fail(x, PLAIT_TYPE_ERROR,
           argument + " must be an integer for " + name(compute) + " tensors; got " + show(v));
    if (v.tag == PLAIT_BOOL && category(compute) > Category::boolean)
      fail(x, PLAIT_TYPE_ERROR,
           argument + " must be a number for " + name(compute) + " tensors; got " + show(v));
    if (category(compute) == Category::integer)
      fits_as_factor(x, plait_arg_at(x.op, rule.factor)->name, v, compute);
  }
  std::string names() const {
    std::string s;
    each(rule.operands & ~rule.conditions, [&](uint32_t i) {
      s += (s.empty() ? "`" : " and `") + std::string(plait_arg_at(x.op, i)->name) + "`";
    });
    return s;
  }
  Dims shape() const {
    Dims out;
    each(rule.operands, [&](uint32_t i) {
      if (!is_tensor(x.call->in[i])) return;
      const Ints s = shape_of(x.call->in[i].u.t);
      while (out.size() < s.size()) out = concat(Dims{1}, out);
      for (int64_t k = -s.size(); k < 0; k++) {
        if (s[k] == 1 || s[k] == out[k]) continue;
        if (out[k] != 1) cannot_broadcast(x, rule.operands);
        out[k] = s[k];
      }
    });
    return out;
  }
};

// Whether a half would lose digits of a 0-d tensor that stands for a number. One on a device is not
// read: the host would wait for it.
bool is_wide_number(const plait_tensor *t, DType compute, const Dims &shape) {
  return compute.bits == 16 && category(compute) == Category::floating && t->dl.ndim == 0 &&
         shape.size() > 0 && t->dl.device.device_type == kDLCPU &&
         (same(t->dl.dtype, dtype::float32) || same(t->dl.dtype, dtype::float64) ||
          same(t->dl.dtype, dtype::int64) || same(t->dl.dtype, dtype::int32));
}
double number_of(const plait_tensor *t) {
  const void *p = t->dl.data;
  if (same(t->dl.dtype, dtype::float32)) return double(*static_cast<const float *>(p));
  if (same(t->dl.dtype, dtype::float64)) return *static_cast<const double *>(p);
  if (same(t->dl.dtype, dtype::int32)) return double(*static_cast<const int32_t *>(p));
  return double(*static_cast<const int64_t *>(p));
}

void general(const Scope &x, const PointwiseRule &rule) {
  const Operands operands{x, rule};
  plait_value *in = x.call->in;
  const plait_tensor *first = nullptr;
  operands.each(rule.conditions, [&](uint32_t i) {
    if (!is_tensor(in[i])) return;
    // uint8 was the dtype of masks before there was bool: what is not 0 is true
    if (same(in[i].u.t->dl.dtype, dtype::uint8)) return cast_argument(x, i, dtype::bool_);
    require(x, plait_arg_at(x.op, i)->name, in[i].u.t->dl.dtype, "bool");
  });
  bool any = false;
  operands.each(rule.operands, [&](uint32_t i) { any |= is_tensor(in[i]); });
  if (!any) no_tensor(x, rule.operands);
  const DType compute = operands.compute();
  const Dims shape = operands.shape();
  operands.each(rule.operands, [&](uint32_t i) {
    if (!first && is_tensor(in[i]) && equal(shape_of(in[i].u.t), shape)) first = in[i].u.t;
  });
  Dims order;
  const bool permuted = !rule.c_order && first && !is_contiguous(first) && dense_permuted(first);
  if (permuted) order = dense_strides(first);
  if (rule.factor >= 0) operands.check_factor(compute);
  operands.each(rule.operands & ~rule.conditions, [&](uint32_t i) {
    if (is_tensor(in[i]) && (rule.unrounded >> i & 1) && is_wide_number(in[i].u.t, compute, shape))
      in[i] = value(number_of(in[i].u.t));
    else if (is_tensor(in[i]))
      cast_argument(x, i, compute);
    else if (rule.exact)
      fits(x, plait_arg_at(x.op, i)->name, in[i], compute);
  });
  const DType output = made_dtype(rule, compute);
  if (permuted)
    result_as(x, 0, shape, output, order);
  else
    result(x, 0, shape, output);
}

bool numbers_fit(const plait_call *c, const PointwiseRule &rule, DType dtype) {
  for (uint32_t bits = rule.operands; bits; bits &= bits - 1) {
    const plait_value &v = c->in[__builtin_ctz(bits)];
    if (v.tag != PLAIT_TENSOR && !number_fits(v, dtype)) return false;
  }
  return true;
}

bool same_shape(const plait_tensor *a, const plait_tensor *b) {
  if (a->dl.ndim != b->dl.ndim) return false;
  for (int32_t i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != b->dl.shape[i]) return false;
  return true;
}

}  // namespace

plait_status pointwise_shape(plait_call *c) {
  const PointwiseRule &rule = definition(c->op)->pointwise;
  // the common case: contiguous tensors of one shape and dtype, and numbers that do not raise the
  // category
  const plait_tensor *first = nullptr;
  bool plain = rule.conditions == 0;
  const bool exact = rule.exact || rule.promote == Promote::boolean;
  int32_t number = PLAIT_BOOL;  // the highest category among numbers
  for (uint32_t bits = rule.operands; bits && plain; bits &= bits - 1) {
    const plait_value &v = c->in[__builtin_ctz(bits)];
    if (v.tag == PLAIT_TENSOR) {
      if (!first) {
        first = v.u.t;
        plain = is_contiguous(first) && !(first->flags & PLAIT_TENSOR_WRAPPED_NUMBER);
      } else {
        plain = same(first->dl.dtype, v.u.t->dl.dtype) && same_shape(first, v.u.t) &&
                is_contiguous(v.u.t);
      }
    } else {
      plain = v.tag >= PLAIT_BOOL && v.tag <= PLAIT_COMPLEX;
      number = std::max(number, v.tag);
    }
  }
  if (plain && rule.factor >= 0)
    plain = c->in[rule.factor].tag == PLAIT_INT && c->in[rule.factor].u.i == 1;
  // a parameter may be a number that does not count in promotion
  for (uint32_t i = 0; i < c->n_in && plain; i++)
    plain = c->in[i].tag != PLAIT_COMPLEX || (first && first->dl.dtype.code == kDLComplex);
  if (plain && first && number - PLAIT_BOOL <= int32_t(category(first->dl.dtype)) &&
      in_group(first->dl.dtype, rule.group) &&
      (!exact || number <= PLAIT_BOOL || numbers_fit(c, rule, first->dl.dtype)) &&
      (rule.promote != Promote::number || category(first->dl.dtype) > Category::boolean) &&
      (rule.promote != Promote::floating || category(first->dl.dtype) >= Category::floating)) {
    const DType output = made_dtype(rule, first->dl.dtype);
    return c->thread->runtime->result(c, 0, output, first->dl.ndim, first->dl.shape);
  }
  return border(c->thread, c->op->name, [&]() -> plait_status {
    general({c->thread, c->op, c}, rule);
    return PLAIT_OK;
  });
}

// The operands that a kernel would get, except that halves are float32: the result of all steps
// is rounded once, as that of a kernel.
void run_promoted(plait_call *c, void (*decomposition)(const Scope &, plait_call *)) {
  const Scope outer = {c->thread, c->op, c};
  const PointwiseRule &rule = definition(c->op)->pointwise;
  const Operands operands{outer, rule};
  const DType compute = operands.compute(), output = made_dtype(rule, compute);
  const bool rounds = compute.bits == 16 && category(compute) == Category::floating;
  plait_value in[PLAIT_MAX_ARGS], out[PLAIT_MAX_RESULTS];
  std::vector<Tensor> casts;
  for (uint16_t i = 0; i < c->n_in; i++) in[i] = c->in[i];
  operands.each(rule.operands, [&](uint32_t i) {
    if (!is_tensor(in[i])) return;
    const bool condition = rule.conditions >> i & 1;
    casts.push_back(to_dtype(outer, in[i].u.t,
                             condition ? dtype::bool_
                             : rounds  ? dtype::float32
                                       : compute));
    in[i] = value(casts.back().get());
  });
  // the caller's target takes what the last call makes, unless that is rounded afterwards
  out[0] = rounds ? none() : c->out[0];
  plait_call inner = *c;
  inner.size = sizeof inner;
  inner.in = in;
  inner.out = out;
  decomposition({c->thread, c->op, &inner}, &inner);
  const Tensor made = Tensor::steal(out[0].u.t);
  give(outer, 0, to_dtype(outer, made.get(), output));
}

// Derivatives.

plait_status no_derivative(plait_vjp *v) {
  return border(v->thread, v->op->name, [&]() -> plait_status {
    fail({v->thread, v->op, nullptr}, PLAIT_NOT_IMPLEMENTED,
         std::string("the derivative of ") + v->op->name +
             " is not implemented; detach() its inputs if no gradient should pass");
  });
}
void saves_nothing(const plait_call *, uint64_t, plait_needs *) {}

uint64_t broadcast_bits(const plait_call *c, uint64_t need) {
  const uint32_t operands = definition(c->op)->pointwise.operands;
  const uint32_t conditions = definition(c->op)->pointwise.conditions;
  const plait_tensor *first = nullptr;
  uint64_t all = 0, position = 0;
  const plait_tensor *typed = nullptr;
  bool differ = false;
  for (uint32_t bits = operands; bits; bits &= bits - 1, position++) {
    const uint32_t i = uint32_t(__builtin_ctz(bits));
    const plait_value &v = c->in[i];
    if (v.tag != PLAIT_TENSOR) continue;
    all |= bit(position);
    if (!first) first = v.u.t;
    differ |= !same_shape(first, v.u.t);
    if (conditions >> i & 1) continue;
    if (!typed) typed = v.u.t;
    differ |= !same(typed->dl.dtype, v.u.t->dl.dtype);
  }
  return differ ? all & need : 0;
}

Tensor reduce_to(const Scope &x, Tensor g, const plait_value &meta) {
  if (!g || meta.tag != PLAIT_TENSOR) return g;
  const plait_tensor *want = meta.u.t;
  if (!same_shape(g.get(), want)) {
    // a gradient smaller than `want` is constant along the broadcast dimensions: it is expanded
    if (g.ndim() < want->dl.ndim) g = run(x, Op::expand, {value(g), ints_value(shape_of(want))});
    g = sum_to(x, g.get(), shape_of(want));
    if (!same_shape(g.get(), want)) g = run(x, Op::expand, {value(g), ints_value(shape_of(want))});
  }
  return to_dtype(x, g.get(), want->dl.dtype);
}

uint64_t position_of(const plait_op *op, const plait_value *in, uint32_t argument) {
  uint64_t position = 0;
  for (uint32_t i = 0; i < argument; i++) {
    if (plait_arg_at(op, i)->kind == PLAIT_KIND_TENSORS)
      position += in[i].tag == PLAIT_TENSORS ? in[i].n : 0;
    else
      position += plait_arg_at(op, i)->kind == PLAIT_KIND_TENSOR ||
                  plait_arg_at(op, i)->kind == PLAIT_KIND_OPERAND;
  }
  return position;
}

uint64_t bits_of(const plait_op *op, const plait_value *in, uint32_t argument) {
  const uint64_t first = position_of(op, in, argument);
  if (in[argument].tag == PLAIT_TENSOR) return bit(first);
  uint64_t bits = 0;
  const Tensors list = as_tensors(in[argument]);
  for (int64_t i = 0; i < list.size(); i++)
    if (list[i]) bits |= bit(first + uint64_t(i));
  return bits;
}

}  // namespace plait::ops
