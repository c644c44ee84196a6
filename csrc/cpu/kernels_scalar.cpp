// The kernels for any processor: what the compiler targets by default (SSE2 on x86, NEON on arm).
#include <cstdint>

#include "../params.h"

#define ZEROLAYER_VECTOR_BYTES 16
#include "norm_kernels.h"
#include "semantic_kernels.h"

namespace zerolayer {
extern const Kernels kernels_scalar;
const Kernels kernels_scalar{forward, backward, semantic, "scalar"};
}  // namespace zerolayer
