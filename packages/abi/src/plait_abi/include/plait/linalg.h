/* The status of linear algebra that has no result. */
#ifndef PLAIT_LINALG_H
#define PLAIT_LINALG_H
#include "abi.h"

enum {
  /** LinAlgError(RuntimeError): a matrix that an algorithm cannot serve, because it is singular,
   * not positive definite, or because an iteration does not converge. */
  PLAIT_LINALG_ERROR = -11
};

#endif
