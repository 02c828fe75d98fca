// The CRC-32 of zip files: docs/design/0010.
#pragma once
#include <cstdint>

namespace plait::core {

class Crc32 {
 public:
  // Implementations of the CRC, the fastest last; null for those that this processor does not
  // support.
  using Way = uint32_t (*)(uint32_t crc, const char *p, uint64_t nbytes);
  static constexpr int kWays = 3;
  static Way way(int number);

  void update(const void *data, uint64_t nbytes);
  uint32_t value() const { return ~crc_; }

 private:
  uint32_t crc_ = ~uint32_t(0);
};

}  // namespace plait::core
