// The norms for any processor: what the compiler targets by default (SSE2 on x86, NEON on arm).
#include <cstdint>

#include "../params.h"

#define ZEROLAYER_VECTOR_BYTES 16
#include "norm_kernels.h"

namespace zerolayer {
extern const NormKernels norm_scalar;
const NormKernels norm_scalar{forward, backward, "scalar"};
}  // namespace zerolayer
