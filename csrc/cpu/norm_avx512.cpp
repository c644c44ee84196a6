// The norms for AVX512 (F, BW, VL, DQ).
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

namespace zerolayer {
extern const NormKernels norm_avx512;
const NormKernels norm_avx512{forward, backward, "avx512"};
}  // namespace zerolayer
#endif
