// The kernels for AVX512 (F, BW, VL, DQ).
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#include "../params.h"

// GCC warns of the placeholder operands in its own AVX512 header.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
// After the headers, so that nothing of theirs is compiled for this target.
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
#define ZEROLAYER_VECTOR_BYTES 64
#include "norm_kernels.h"
#include "semantic_kernels.h"

namespace zerolayer {
extern const Kernels kernels_avx512;
const Kernels kernels_avx512{forward, backward, semantic, "avx512"};
}  // namespace zerolayer
#endif
