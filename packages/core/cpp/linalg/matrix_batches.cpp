#include "linalg/matrix_batches.h"

#include <cstdio>

namespace plait::core::linalg {

plait_status fail_at(const plait_call *c, const Outcome &o, const Batch &batch, const char *name,
                     const char *reason) {
  if (o.code == kNoMemory)
    return PLAIT_FAIL(c, PLAIT_MEMORY_ERROR, "no memory for the workspace of a matrix");
  char where[512] = "", message[512];
  if (batch.ndim) {
    int64_t at[PLAIT_MAX_DIMS], i = o.index;
    for (int d = batch.ndim - 1; d >= 0; d--) {
      at[d] = i % batch.shape[d];
      i /= batch.shape[d];
    }
    int n = snprintf(where, sizeof where, " at batch index (");
    for (int d = 0; d < batch.ndim && n < 460; d++)
      n += snprintf(where + n, sizeof where - size_t(n), "%s%lld", d ? ", " : "",
                    (long long)(at[d]));
    snprintf(where + n, sizeof where - size_t(n), batch.ndim == 1 ? ",)" : ")");
  }
  snprintf(message, sizeof message, reason, o.code);
  return PLAIT_FAIL(c, PLAIT_LINALG_ERROR, "`%s`%s %s", name, where, message);
}

plait_status too_large(const plait_call *c) {
  return PLAIT_FAIL(c, PLAIT_SHAPE_ERROR,
                    "matrices of 2**31 rows or columns are too large for LAPACK");
}

}  // namespace plait::core::linalg
