// Which instruction set runs, decided once: what the processor has, or ZEROLAYER_ISA (for tests).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../params.h"

namespace zerolayer {

extern const Kernels kernels_scalar;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

namespace {

const Kernels& choose() {
  const char* forced = std::getenv("ZEROLAYER_ISA");
#if defined(__x86_64__)
  // __builtin_cpu_supports reads cpuid and XCR0, so a system that does not save the wide
  // registers counts as not having them.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  const Kernels* best = avx512 ? &kernels_avx512 : avx2 ? &kernels_avx2 : &kernels_scalar;
  if (forced == nullptr) return *best;
  if (std::strcmp(forced, "scalar") == 0) return kernels_scalar;
  if (std::strcmp(forced, "avx2") == 0 && avx2) return kernels_avx2;
  if (std::strcmp(forced, "avx512") == 0 && avx512) return kernels_avx512;
  std::fprintf(stderr, "zerolayer: ZEROLAYER_ISA=%s is not available here, using %s\n", forced,
               best->name);
  return *best;
#else
  (void)forced;
  return kernels_scalar;
#endif
}

}  // namespace

void* thread_scratch(int64_t bytes) {
  constexpr int64_t kAlign = 64;
  static thread_local std::vector<char> buffer;
  if (static_cast<int64_t>(buffer.size()) < bytes + kAlign) buffer.resize(bytes + kAlign);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<void*>((address + kAlign - 1) / kAlign * kAlign);
}

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace zerolayer
