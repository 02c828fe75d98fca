// Hashes, and texts as JSON has them.
#ifndef PLAIT_PROFILER_TEXT_HPP
#define PLAIT_PROFILER_TEXT_HPP
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace plait::profiler {

// The constant that is added keeps a hash that equals its word from becoming 0.
inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = ((hash ^ word) + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

inline uint64_t hash_of(const void *bytes, size_t n, uint64_t seed) {
  uint64_t hash = mix(seed, n);
  const char *at = static_cast<const char *>(bytes);
  for (; n >= 8; n -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash, word);
  }
  uint64_t last = 0;
  std::memcpy(&last, at, n);
  return mix(hash, last);
}

inline std::string quoted(const char *text) {
  std::string out = "\"";
  for (; *text; text++) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += char(c);
    }
  }
  return out + '"';
}

}  // namespace plait::profiler
#endif  // PLAIT_PROFILER_TEXT_HPP
