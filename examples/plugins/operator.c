/* A plug-in that brings two operators of its own: example_cube, with its derivative, and
 * example_tent, which has none (asking for one is an error that names it).
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> operator.c -o cube.so
 *
 * (not operator.so, which Python would take for its module operator). From Python:
 * plait_abi.load("./cube.so"), then plait_abi.operator("example_tent")(x), and for the other also
 * plait.example_cube(x), because of PLAIT_OP_FUNCTION. The derivative is written with operators, so
 * that it has derivatives itself; forward mode transposes it. plait_abi.detach("example-operator")
 * takes the kernels back. */
#include <math.h>
#include <plait/abi.h>

static const plait_runtime *runtime;

/* ---- shape: validates, and makes the result */
static plait_status like_input(plait_call *call) {
  const DLTensor *x = &call->in[0].u.t->dl;
  if (x->dtype.code != kDLFloat || x->dtype.bits < 32)
    return runtime->fail(call, PLAIT_DTYPE_ERROR,
                         "`self` must be float32 or float64; got %u bits of type code %u",
                         (unsigned)x->dtype.bits, (unsigned)x->dtype.code);
  return runtime->result(call, 0, x->dtype, x->ndim, x->shape);
}

/* ---- kernels: the input may be strided, the result is in C order */
static double read(const DLTensor *t, int64_t at) {
  int64_t offset = 0;
  for (int32_t i = t->ndim - 1; i >= 0; i--) {
    offset += at % t->shape[i] * t->strides[i];
    at /= t->shape[i];
  }
  return t->dtype.bits == 32 ? ((const float *)t->data)[offset] : ((const double *)t->data)[offset];
}

static plait_status each(plait_call *call, double (*f)(double)) {
  const DLTensor *x = &call->in[0].u.t->dl;
  DLTensor *y = &call->out[0].u.t->dl;
  int64_t count = 1;
  for (int32_t i = 0; i < x->ndim; i++) count *= x->shape[i];
  for (int64_t i = 0; i < count; i++) {
    const double value = f(read(x, i));
    if (x->dtype.bits == 32)
      ((float *)y->data)[i] = (float)value;
    else
      ((double *)y->data)[i] = value;
  }
  return PLAIT_OK;
}

static double cube_of(double x) { return x * x * x; }
static double tent_of(double x) { return fmax(0, 1 - fabs(x)); }
static plait_status cube(plait_call *call) { return each(call, cube_of); }
static plait_status tent(plait_call *call) { return each(call, tent_of); }

/* ---- derivative: g * 3 * x * x */
static plait_status mul(plait_thread *thread, plait_value a, plait_value b, plait_value *out) {
  plait_value in[2] = {a, b};
  plait_call call = {.size = sizeof call,
                     .n_in = 2,
                     .n_out = 1,
                     .op = runtime->op("mul"),
                     .in = in,
                     .out = out,
                     .thread = thread};
  *out = (plait_value){.tag = PLAIT_NONE};
  return runtime->call(&call);
}

static void cube_saves(const plait_call *call, uint64_t need, plait_needs *needs) {
  (void)call, (void)need;
  needs->in = 1; /* the value of input 0 */
}

static plait_status cube_vjp(plait_vjp *v) {
  const plait_value g = {.tag = PLAIT_TENSOR, .u.t = v->gy[0]};
  const plait_value three = {.tag = PLAIT_INT, .u.i = 3};
  plait_value square, scaled, product = {.tag = PLAIT_NONE};
  plait_status s = mul(v->thread, v->in[0], v->in[0], &square);
  if (s < 0) return s;
  s = mul(v->thread, square, three, &scaled);
  if (s >= 0) s = mul(v->thread, g, scaled, &product);
  runtime->release_value(&square);
  runtime->release_value(&scaled);
  if (s >= 0) v->gx[0] = product.u.t; /* the engine owns it now */
  return s;
}

/* The rule of vmap in code: the samples of a function of each element are more elements. */
static plait_status tent_batch(plait_call *call) { return runtime->call(call); }

static const plait_op_def cube_def = {
    PLAIT_HEADER(plait_op_def),
    "example_cube(Tensor self) -> Tensor",
    "The cube of each element.",
    PLAIT_OP_FUNCTION,
    like_input,
    cube_saves,
    cube_vjp,
    NULL,
    NULL,
    NULL,
    NULL,
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
    "ps", /* a pointwise operator: vmap aligns the samples */
    "ee"  /* a part of the result belongs to a part of `self` */
#endif
};
static const plait_op_def tent_def = {PLAIT_HEADER(plait_op_def),
                                      "example_tent(Tensor self) -> Tensor",
                                      "max(0, 1 - |x|) of each element.",
                                      0,
                                      like_input,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      tent_batch,
                                      NULL,
#if PLAIT_TARGET >= PLAIT_VERSION(0, 5)
                                      NULL,
                                      NULL
#endif
};

/* An operator stays defined when its plug-in is detached; its kernel goes. */
static plait_status bring(plait_thread *thread, const plait_plugin *self, const char *name,
                          const plait_op_def *def, plait_kernel kernel) {
  const plait_op *op = runtime->op(name);
  if (!op) {
    const plait_status s = runtime->define(thread, def, &op);
    if (s < 0) return s;
  }
  return runtime->implement(thread, op, kDLCPU, kernel, NULL, self, NULL);
}

static plait_status init(const plait_runtime *host_runtime, const plait_plugin *self) {
  runtime = host_runtime;
  plait_thread *thread = runtime->thread();
  if (!runtime->op("mul"))
    return runtime->raise(thread, PLAIT_ERROR, self->name,
                          "the operator mul is not defined: load plait-ops first");
  const plait_status s = bring(thread, self, "example_cube", &cube_def, cube);
  return s < 0 ? s : bring(thread, self, "example_tent", &tent_def, tent);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-operator", "1.0", 0, init, NULL};
