// The gate of an anchor, for every device: which anchors serve a row, and when a gate is shut.
#pragma once

#include "../params.h"

#if defined(__CUDACC__)
#define ZEROLAYER_SHARED __host__ __device__ inline
#else
#define ZEROLAYER_SHARED inline
#endif

namespace zerolayer {
namespace {  // compiled for each instruction set apart: no copy may be merged with another's

struct AnchorRange {
  int64_t first, last;
};

// Anchors [first, last) that serve a row.
ZEROLAYER_SHARED AnchorRange anchors_of_row(const Anchors& a, int64_t row) {
  if (a.row_set == nullptr) return {0, a.count};
  const int32_t set = a.row_set[row];
  if (set < 0) return {0, 0};
  return {a.set_offsets[set], a.set_offsets[set + 1]};
}

// relu(s) adds nothing. A NaN is not shut: it reaches the output, as it does in torch's relu.
template <class A>
ZEROLAYER_SHARED bool gate_shut(A s) {
  return s <= A(0);
}

}  // namespace
}  // namespace zerolayer
