#include "kernel/reproducible.h"

#include "kernel/settings.h"

namespace plait::core {
namespace {

// Operators whose kernels call libraries whose results depend on the processor: LAPACK and the C
// library's elementary functions. What is made of these operators is refused by them.
const char *const kLapack[] = {
    "linalg_cholesky",
    "linalg_cholesky_ex",
    "cholesky",
    "cholesky_solve",
    "cholesky_inverse",
    "linalg_solve_triangular",
    "linalg_det",
    "linalg_slogdet",
    "linalg_eigh",
    "linalg_eigvalsh",
    "linalg_eig",
    "linalg_eigvals",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
    "lstsq_parts",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_lu_solve",
    "linalg_qr",
    "geqrf",
    "linalg_householder_product",
    "linalg_svd",
    "linalg_svdvals",
    "linalg_inv",
    "linalg_inv_ex",
    "linalg_solve",
    "linalg_solve_ex",
    "linalg_matrix_exp",
};
const char *const kSpecial[] = {
    "_standard_gamma",
    "beta_sample_grad",
    "binomial_draw",
    "digamma",
    "erfc",
    "erfinv",
    "gamma_sample_grad",
    "geometric_",
    "i0",
    "lgamma",
    "logcumsumexp",
    "logspace",
    "logspace.tensors",
    "multinomial",
    "poisson",
    "polygamma_elements",
    "special_airy_ai",
    "special_bessel_j0",
    "special_bessel_j1",
    "special_bessel_y0",
    "special_bessel_y1",
    "special_erfcx",
    "special_gammainc",
    "special_gammaincc",
    "special_i1",
    "special_log_ndtr",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_ndtr",
    "special_ndtri",
    "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0",
    "special_zeta",
};
// For float64 and complex numbers, of which float32 has functions of its own.
const char *const kWide[] = {
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bce_elements",
    "cauchy_",
    "celu",
    "celu_backward",
    "cos",
    "cosh",
    "elu",
    "elu_backward",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "exponential_",
    "gelu_erf",
    "gelu_erf_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_normal_",
    "log_odds",
    "log_sigmoid",
    "log_sigmoid_backward",
    "log_softmax",
    "log_softmax_backward",
    "logaddexp",
    "logaddexp2",
    "logsumexp",
    "mish",
    "mish_backward",
    "normal_",
    "pow",
    "selu",
    "selu_backward",
    "sigmoid",
    "silu",
    "silu_backward",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "softplus",
    "softplus_backward",
    "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v",
    "special_chebyshev_polynomial_w",
    "special_entr",
    "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w",
    "special_xlog1py",
    "tan",
    "tanh",
    "tanhshrink",
    "tanhshrink_backward",
    "xlogy",
    "attention_forward",
    "attention_backward",
    "gru_forward",
    "gru_backward",
    "lstm_forward",
    "lstm_backward",
    "native_batch_norm_activation",
    "native_batch_norm_add_activation",
    "batch_norm_activation_backward",
    "batch_norm_add_activation_backward",
    "cross_entropy_forward",
    "cross_entropy_backward",
};
// For complex numbers.
const char *const kComplex[] = {
    "abs", "angle", "lerp", "rsqrt", "sgn", "softsign", "sqrt",
};

// Whether `matches` holds for the kind of a tensor among the arguments and results.
template <class F>
bool any_kind(const plait_call *c, F matches) {
  auto one = [&](const plait_tensor *t) { return t && matches(kind(t->dl.dtype)); };
  auto any = [&](const plait_value &v) {
    if (v.tag == PLAIT_TENSOR) return one(v.u.t);
    for (uint32_t i = 0; v.tag == PLAIT_TENSORS && i < v.n; i++)
      if (one(v.u.ts[i])) return true;
    return false;
  };
  for (int i = 0; i < c->n_in; i++)
    if (any(c->in[i])) return true;
  for (int i = 0; i < c->n_out; i++)
    if (any(c->out[i])) return true;
  return false;
}

plait_status refuse(plait_call *c) {
  if (!reproducible()) return PLAIT_DECLINE;
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "there is no way to compute it with the same bits on every processor, which "
                    "set_reproducible(True) asks for");
}

plait_status refuse_kind(const plait_call *c, const char *numbers) {
  return PLAIT_FAIL(c, PLAIT_NOT_IMPLEMENTED,
                    "there is no way to compute it for %s with the same bits on every processor, "
                    "which set_reproducible(True) asks for; for float32 there is one",
                    numbers);
}
plait_status refuse_wide(plait_call *c) {
  if (!reproducible()) return PLAIT_DECLINE;
  const bool wide = any_kind(c, [](Kind k) { return k == F64 || is_complex_kind(k); });
  return wide ? refuse_kind(c, "float64 and complex numbers") : PLAIT_DECLINE;
}
plait_status refuse_complex(plait_call *c) {
  if (!reproducible() || !any_kind(c, is_complex_kind)) return PLAIT_DECLINE;
  return refuse_kind(c, "complex numbers");
}

struct Refusals {
  const char *const *names;
  size_t count;
  plait_kernel kernel;
};
template <size_t n>
constexpr Refusals refusals(const char *const (&names)[n], plait_kernel kernel) {
  return {names, n, kernel};
}

}  // namespace

plait_status register_refusals(const plait_runtime *runtime, const plait_plugin *self) {
  const Refusals all[] = {refusals(kLapack, refuse), refusals(kSpecial, refuse),
                          refusals(kWide, refuse_wide), refusals(kComplex, refuse_complex)};
  for (const Refusals &r : all)
    for (size_t i = 0; i < r.count; i++) {
      const plait_op *op = runtime->op(r.names[i]);
      uint64_t undo = 0;
      if (op)  // the operator set may be another version without this operator
        PLAIT_TRY(
            runtime->implement(runtime->thread(), op, kDLCPU, r.kernel, nullptr, self, &undo));
    }
  return PLAIT_OK;
}

}  // namespace plait::core
