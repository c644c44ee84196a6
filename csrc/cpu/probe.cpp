// decision_probe: softmax(W [x; 1]) of 3 x (d + 1) heads at chosen rows.
//
// A call reads N rows and N heads once, a few kilobytes each, and only at decision points: one
// baseline instruction set is enough.
#include <cmath>
#include <cstdint>

#include "../params.h"

#define ZEROLAYER_VECTOR_BYTES 16
#include "vector.h"

namespace zerolayer {
namespace {

template <class S>
float dot(const S* x, const float* w, int64_t d) {
  constexpr int64_t n = kLanes<float>;
  Vec<float> sum = {};
  for (int64_t i = 0; i < d; i += n) sum = madd(load(x + i, d - i), load(w + i, d - i), sum);
  return sum_lanes<float>(sum);
}

template <class S>
void read(const ProbeParams& p) {
  const int64_t d = p.width;
  for (int64_t n = 0; n < p.count; ++n) {
    float* out = p.scores + n * kVerdicts;
    const int32_t row = p.decisions[n * 2], head = p.decisions[n * 2 + 1];
    if (row < 0) {
      for (int v = 0; v < kVerdicts; ++v) out[v] = 0;
      continue;
    }
    const S* x = static_cast<const S*>(p.hidden) + row * p.hidden_stride;
    const float* w = p.probe + head * kVerdicts * (d + 1);
    for (int v = 0; v < kVerdicts; ++v) out[v] = dot(x, w + v * (d + 1), d) + w[v * (d + 1) + d];
    float top = out[0];
    for (int v = 1; v < kVerdicts; ++v) top = out[v] > top ? out[v] : top;
    float total = 0;
    for (int v = 0; v < kVerdicts; ++v) total += out[v] = std::exp(out[v] - top);
    for (int v = 0; v < kVerdicts; ++v) out[v] /= total;
  }
}

}  // namespace

void decision_probe(const ProbeParams& p) {
  switch (p.dtype) {
    case DType::f32: return read<float>(p);
    case DType::bf16: return read<BFloat16>(p);
    case DType::f16: return read<Half>(p);
    case DType::f64: return;  // the binding refuses it
  }
}

}  // namespace zerolayer
