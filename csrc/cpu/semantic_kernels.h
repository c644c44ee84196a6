// semantic_check: the nearest of many unit rows to one unit row, twice.
//
// out[0], out[1]: largest <h, history_t> over the last `window` of `length` rows, and its t;
// out[2], out[3]: largest <h, anchor_k>, and its k. 0 and -1 where there is nothing to compare
// with; a row with a NaN is never the nearest. Each row of history is read once: 2 d operations for
// d elements, so the time is that of reading it. Included after vector.h.
#pragma once

namespace zerolayer {
namespace {

// Four chains, so that the additions need not wait for each other.
template <class S>
float similarity(const S* a, const S* b, int64_t d) {
  constexpr int64_t n = kLanes<float>;
  Vec<float> sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * n <= d; i += 4 * n)
    for (int c = 0; c < 4; ++c)
      sum[c] = madd(load_full(a + i + c * n), load_full(b + i + c * n), sum[c]);
  for (; i < d; i += n) sum[0] = madd(load(a + i, d - i), load(b + i, d - i), sum[0]);
  return sum_lanes<float>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <class S>
void nearest(const S* h, const S* rows, int64_t begin, int64_t end, int64_t d, float* out) {
  out[0] = 0;
  out[1] = -1;
  for (int64_t t = begin; t < end; ++t) {
    const float s = similarity(h, rows + t * d, d);
    if (out[1] < 0 ? s == s : s > out[0]) {
      out[0] = s;
      out[1] = static_cast<float>(t);
    }
  }
}

// Work item (b, i): block i of row b's history, or its anchors where i is the number of blocks.
template <class S>
void check_blocks(const SemanticParams& p, int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) {
    const int64_t b = item / (p.blocks + 1), i = item % (p.blocks + 1);
    const S* h = static_cast<const S*>(p.hidden) + b * p.width;
    float* out = p.partial + item * 2;
    if (i == p.blocks) {
      nearest(h, static_cast<const S*>(p.anchors), 0, p.count, p.width, out);
      continue;
    }
    const int64_t length = p.lengths[b];
    const int64_t first = p.window >= 0 && p.window < length ? length - p.window : 0;
    const int64_t from = i * kSemanticBlock, to = from + kSemanticBlock;
    nearest(h, static_cast<const S*>(p.history) + b * p.capacity * p.width,
            from > first ? from : first, to < length ? to : length, p.width, out);
  }
}

void semantic(const SemanticParams& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case DType::f32: return check_blocks<float>(p, begin, end);
    case DType::bf16: return check_blocks<BFloat16>(p, begin, end);
    case DType::f16: return check_blocks<Half>(p, begin, end);
    case DType::f64: return;  // the binding refuses it
  }
}

}  // namespace
}  // namespace zerolayer
