// The plug-in of a kernel library: registers every record of PLAIT_KERNEL as a kernel.
#include <initializer_list>

#include "convolution/winograd_mode.h"
#include "kernel/half_fallback.h"
#include "kernel/packed_weight.h"
#include "kernel/reproducible.h"
#include "kernel/settings.h"
#include "linalg/gemm.h"

#if defined(__AVX2__)
#define PLAIT_LIBRARY "plait_cpu_avx2"
#elif defined(PLAIT_EXACT)
#define PLAIT_LIBRARY "plait_cpu_exact"
#else
#define PLAIT_LIBRARY "plait_cpu_base"
#endif

#ifndef PLAIT_CORE_VERSION
#define PLAIT_CORE_VERSION "0.2.0"
#endif

#if defined(__wasm__)
using plait::core::ListedRegistration;
using plait::core::Registration;
ListedRegistration *plait::core::ListedRegistration::first;
ListedRegistration **plait::core::ListedRegistration::end = &ListedRegistration::first;
#else
extern "C" {
// The linker defines these around the sections of those names, if there are such.
using plait::core::Registration;
#define PLAIT_HIDDEN __attribute__((visibility("hidden"), weak)) extern const Registration
PLAIT_HIDDEN __start_plait_kernels[], __stop_plait_kernels[];
PLAIT_HIDDEN __start_plait_special[], __stop_plait_special[];
}
#endif

namespace {

const uint64_t *settings;

constexpr bool has_halves =
    plait::core::selects(plait::core::F16) || plait::core::selects(plait::core::BF16);

bool supported() {
#if defined(__AVX2__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return true;
#endif
}

#if defined(PLAIT_EXACT)
// Outside of the mode the faster kernels of plait_cpu_base are used.
plait_status in_the_mode(plait_call *c) {
  if (!plait::core::reproducible()) return PLAIT_DECLINE;
  return static_cast<const Registration *>(c->self->ctx)->kernel(c);
}
#endif

plait_status put(const plait_runtime *runtime, const plait_plugin *self, const plait_op *op,
                 const Registration *r) {
  uint64_t undo = 0;
#if defined(PLAIT_EXACT)
  return runtime->implement(runtime->thread(), op, kDLCPU, in_the_mode,
                            const_cast<Registration *>(r), self, &undo);
#else
  return runtime->implement(runtime->thread(), op, kDLCPU, r->kernel, nullptr, self, &undo);
#endif
}

// The last kernel of an operator is called first. Behind each general kernel the fallback for
// halves is registered.
plait_status implement(const plait_runtime *runtime, const plait_plugin *self,
                       const Registration *r, bool general) {
  const plait_op *op = r->op ? runtime->op(r->op) : nullptr;
  if (!op) return PLAIT_OK;  // the operator set may be another version without this operator
  uint64_t undo = 0;
  if (general && has_halves)
    PLAIT_TRY(runtime->implement(runtime->thread(), op, kDLCPU, plait::core::half_fallback, nullptr,
                                 self, &undo));
  return put(runtime, self, op, r);
}

plait_status implement_all(const plait_runtime *runtime, const plait_plugin *self) {
#if defined(__wasm__)
  for (const char *part : {"plait_kernels", "plait_special"})
    for (const ListedRegistration *r = ListedRegistration::first; r; r = r->next)
      if (strcmp(r->part, part) == 0)
        PLAIT_TRY(implement(runtime, self, &r->record, strcmp(part, "plait_kernels") == 0));
#else
  for (const Registration *r = __start_plait_kernels; r != __stop_plait_kernels; r++)
    PLAIT_TRY(implement(runtime, self, r, true));
  for (const Registration *r = __start_plait_special; r != __stop_plait_special; r++)
    PLAIT_TRY(implement(runtime, self, r, false));
#endif
  return PLAIT_OK;
}

plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  plait_thread *thread = runtime->thread();
  settings = runtime->settings;
  plait::core::roles = {runtime->role("executor", 0), runtime->role("allocator", kDLCPU),
                        runtime->role("rng", 0)};
  plait::core::engine_role = runtime->role("engine", 0);
  if (!supported())
    return runtime->raise(thread, PLAIT_ERROR, PLAIT_LIBRARY,
                          "a processor with AVX2, FMA and F16C is required; this one lacks them");
  PLAIT_TRY(implement_all(runtime, self));
  return plait::core::register_refusals(runtime, self);
}

}  // namespace

bool plait::core::batch_invariant() {
  constexpr uint64_t bits = PLAIT_SETTING_BATCH_INVARIANT | kReproducible;
  return (__atomic_load_n(settings, __ATOMIC_RELAXED) & bits) != 0;
}
bool plait::core::reproducible() {
  return (__atomic_load_n(settings, __ATOMIC_RELAXED) & kReproducible) != 0;
}
plait::core::WinogradMode plait::core::winograd_mode() {
  return winograd_mode_of(__atomic_load_n(settings, __ATOMIC_RELAXED));
}

bool plait::core::keeps_packed_weights() {
  return !(__atomic_load_n(settings, __ATOMIC_RELAXED) & kPackWeightsAnew);
}

extern "C" __attribute__((visibility("default"))) const plait_plugin plait_plugin_v1;
extern "C" const plait_plugin plait_plugin_v1 = {PLAIT_HEADER(plait_plugin),
                                                 PLAIT_LIBRARY,
                                                 PLAIT_CORE_VERSION,
                                                 PLAIT_PLUGIN_DEFAULT | PLAIT_PLUGIN_OVERWRITES,
                                                 init,
                                                 nullptr};
