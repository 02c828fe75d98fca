#include "host/matrices.h"

#include <cstdio>

namespace plait::cuda {

plait_status check_info(const plait_call *c, const int32_t *info, const DLTensor *a,
                        const char *reason) {
  const int d = a->ndim;
  int64_t count = 1;
  for (int i = 0; i < d - 2; i++) count *= a->shape[i];
  constexpr int64_t kSome = 1024;
  int32_t some[kSome];
  for (int64_t begin = 0; begin < count; begin += kSome) {
    const int64_t n = count - begin < kSome ? count - begin : kSome;
    PLAIT_TRY(read_bytes(c, some, info + begin, n * 4));
    for (int64_t i = 0; i < n; i++) {
      if (some[i] == 0) continue;
      char where[512] = "", message[512];
      int64_t at[PLAIT_MAX_DIMS], rest = begin + i;
      for (int e = d - 3; e >= 0; e--) at[e] = rest % a->shape[e], rest /= a->shape[e];
      int used = d > 2 ? snprintf(where, sizeof where, " at batch index (") : 0;
      for (int e = 0; e < d - 2 && used < 460; e++)
        used += snprintf(where + used, sizeof where - size_t(used), "%s%lld", e ? ", " : "",
                         (long long)at[e]);
      if (d > 2) snprintf(where + used, sizeof where - size_t(used), d == 3 ? ",)" : ")");
      snprintf(message, sizeof message, reason, some[i]);
      return PLAIT_FAIL(c, PLAIT_LINALG_ERROR, "`%s`%s %s", plait_arg_at(c->op, 0)->name, where,
                        message);
    }
  }
  return PLAIT_OK;
}

plait_status info_of(const plait_call *c, int i, int64_t count, DeviceWorkspace *space,
                     int32_t **to) {
  if (c->n_out > i) return *to = data<int32_t>(result(c, i)), PLAIT_OK;
  PLAIT_TRY(space->take(c, count * 4));
  *to = space->data<int32_t>();
  return PLAIT_OK;
}

}  // namespace plait::cuda
