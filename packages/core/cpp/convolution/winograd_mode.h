// Which convolutions are computed by Winograd's algorithm, as the user asks.
#pragma once
#include <cstdint>

namespace plait::core {

enum class WinogradMode : uint64_t { Auto, Off, F2, F4, F5, F6 };

// The mode is kept in these bits of plait_runtime::settings.
constexpr int kWinogradShift = 8;
constexpr uint64_t kWinogradMask = uint64_t(15) << kWinogradShift;

constexpr WinogradMode winograd_mode_of(uint64_t settings) {
  return WinogradMode((settings & kWinogradMask) >> kWinogradShift);
}
constexpr uint64_t with_winograd_mode(uint64_t settings, WinogradMode mode) {
  return (settings & ~kWinogradMask) | uint64_t(mode) << kWinogradShift;
}

// The mode in force, for kernels.
WinogradMode winograd_mode();

}  // namespace plait::core
