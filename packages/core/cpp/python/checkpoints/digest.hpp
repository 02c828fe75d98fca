// The digest of a checkpoint's tensor: docs/design/0010.
#pragma once
#include <cstdint>
#include <string>

namespace plait::core {

class Digest {
 public:
  static constexpr uint64_t kColumns = 509, kRow = 8 * kColumns,
                            kBlock = 128;  // words, bytes, rows

  explicit Digest(uint64_t nbytes) : nbytes_(nbytes) {}
  // Takes the next bytes: whole rows, except for the last call.
  void update(const void *data, uint64_t nbytes);
  std::string text() const;

 private:
  uint64_t nbytes_, rows_ = 0;
  uint64_t sums_[kColumns] = {};
};

}  // namespace plait::core
