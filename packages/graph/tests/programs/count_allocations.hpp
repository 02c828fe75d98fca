// Counts the allocations of the process.
#pragma once
#include <atomic>

extern std::atomic<long> allocations;
