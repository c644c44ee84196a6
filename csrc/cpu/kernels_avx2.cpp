// The kernels for AVX2 with FMA and F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#include "../params.h"

// After the headers, so that nothing of theirs is compiled for this target.
#pragma GCC target("avx2,fma,f16c")
#define ZEROLAYER_VECTOR_BYTES 32
#include "norm_kernels.h"
#include "semantic_kernels.h"

namespace zerolayer {
extern const Kernels kernels_avx2;
const Kernels kernels_avx2{forward, backward, semantic, "avx2"};
}  // namespace zerolayer
#endif
