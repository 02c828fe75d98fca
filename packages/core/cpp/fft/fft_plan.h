// What a Fourier transform of one length needs: the radices of its passes, and roots of unity.
#pragma once
#include "kernel/vec.h"

namespace plait::core::fft {

constexpr int kMostPasses = 64;
constexpr int64_t kMostRadix = 31;  // lengths with a larger prime factor are convolutions

// exp(-2 pi i k / n), 0 <= k < n. The rounding errors do not depend on the processor.
struct Root {
  double re, im;
};
Root root_of_unity(int64_t k, int64_t n);

// Whether the passes can transform a length.
bool has_small_factors(int64_t n);

// How elements of a line lie in vectors: each lane of a vector is another line, or every lane has a
// subsequence of one line (`split`), whose transforms of length n / lanes are joined at the end.
enum Form : int { Whole, Split, Chirp };

// Of `forward` transforms. An inverse transform exchanges the real and the imaginary parts before
// and after.
template <class T>
struct Plan {
  int64_t n;       // complex elements of a line
  int64_t length;  // of the passes: n, or n / lanes
  Form form;
  int passes;
  int radix[kMostPasses];
  const T *twiddles[kMostPasses];  // of a pass: radix - 1 roots for each of the butterflies
  const T *joining;  // Split: vectors of real parts, of imaginary parts, for each of `length`
  const T *chirp;    // Chirp: n roots exp(-pi i j^2 / n)
  const T *chirp_transform;     // Chirp: the transform of the conjugate chirp, over `inner->n`
  const Plan<T> *inner;         // Chirp: of the convolution's length, in the Split form
  const T *halves;  // exp(-pi i k / n) for k = 0, ..., n: for transforms of 2 n real numbers
};

// A plan, which stays as it is while this object lives. A few plans are kept for later calls.
template <class T>
class PlanUse {
 public:
  PlanUse() = default;
  PlanUse(const PlanUse &) = delete;
  PlanUse &operator=(const PlanUse &) = delete;
  ~PlanUse();
  // false: no memory
  bool take(int64_t n, Form form);
  const Plan<T> &operator*() const { return *plan_; }

 private:
  const Plan<T> *plan_ = nullptr;
  int slot_ = -1;  // -1: the plan is not kept
};

}  // namespace plait::core::fft
