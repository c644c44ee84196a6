// SKA RMSNorm, forward and backward, for one instruction set; norm_<isa>.cpp includes it.
//
//   xhat = x / sqrt(mean(x^2) + eps)
//   y    = base + sum_k gain_k relu(<xhat, key_k> / sqrt(d) - tau_k) value_k
//
// base is given (the model's own norm), or weight * xhat rounded where transformers rounds.
// Cost of a row: one read of x and of weight or base, one write of y, K dot products of width d;
// values are read for open gates alone. The widened rows stay in a scratch buffer (L1 / L2).
#pragma once

#include "../shared/gate.h"
#include "vector.h"

namespace zerolayer {
namespace {

constexpr int kRowTile = 2;    // rows that share one read of a key: 2 x 4 sums fill 16 registers
constexpr int kDotChains = 4;  // independent sums of a dot product: latency of a multiply-add

template <class A>
constexpr int64_t padded(int64_t d) {
  return (d + kLanes<A> - 1) / kLanes<A> * kLanes<A>;
}

// Sum of squares in the order of torch's CPU sum (ATen/native/cpu/SumKernel.cpp, cascade_sum): 4
// chains of `Group` lanes, four levels of partial sums, the odd end first. The norm then has the
// bits that x.pow(2).mean(-1) leads to; with the cascade the error also stays flat in the width.
template <int Group, class A>
A sum_squares(const A* x, int64_t d) {
  constexpr int kLevels = 4, kBlock = 4 * Group;
  constexpr int kWide = kLanes<A> < kBlock ? kLanes<A> : kBlock, kParts = kBlock / kWide;
  using V = typename VectorOf<A, kWide>::type;
  const int64_t groups = d / Group, blocks = groups / 4;
  int64_t power = 0;
  while ((int64_t(1) << power) < blocks) ++power;
  power = power / kLevels > 4 ? power / kLevels : 4;
  const int64_t step = int64_t(1) << power;

  V level[kLevels][kParts] = {};
  auto add_blocks = [&](int64_t begin, int64_t end) {
    V sum[kParts];
    for (int j = 0; j < kParts; ++j) sum[j] = level[0][j];
    for (int64_t b = begin; b < end; ++b)
      for (int j = 0; j < kParts; ++j) {
        const V v = load_bits<V>(x + b * kBlock + j * kWide);
        sum[j] += v * v;
      }
    for (int j = 0; j < kParts; ++j) level[0][j] = sum[j];
  };
  int64_t done = 0;
  while (done + step <= blocks) {
    add_blocks(done, done + step);
    done += step;
    for (int l = 1; l < kLevels; ++l) {
      for (int j = 0; j < kParts; ++j) {
        level[l][j] += level[l - 1][j];
        level[l - 1][j] = V{};
      }
      if (done & ((step - 1) << (l * power))) break;
    }
  }
  add_blocks(done, blocks);
  for (int l = 1; l < kLevels; ++l)
    for (int j = 0; j < kParts; ++j) level[0][j] += level[l][j];

  A chains[kBlock];
  __builtin_memcpy(chains, level[0], sizeof(chains));
  for (int64_t i = blocks * kBlock; i < groups * Group; ++i) chains[i % Group] += x[i] * x[i];
  for (int c = 1; c < 4; ++c)
    for (int l = 0; l < Group; ++l) chains[l] += chains[c * Group + l];
  A total = 0;
  for (int64_t i = groups * Group; i < d; ++i) total += x[i] * x[i];
  for (int l = 0; l < Group; ++l) total += chains[l];
  return total;
}

// x widened into xhat [padded d, zeros at the end] and normalized; returns 1 / rms.
template <class S>
Acc<S> normalize(const S* x, int64_t d, double eps, Acc<S>* xhat) {
  using A = Acc<S>;
  for (int64_t i = 0; i < d; i += kLanes<A>) store_full(xhat + i, load(x + i, d - i));
  const A squares = d < 8 ? sum_squares<1>(xhat, d) : sum_squares<8>(xhat, d);
  const A scale = A(1) / root_of(squares / A(d) + A(eps));
  for (int64_t i = 0; i < d; i += kLanes<A>)
    store_full(xhat + i, load_full(xhat + i) * splat(scale));
  return scale;
}

// <rows[r], other> for rows that are padded and `stride` apart. The order of each sum does not
// depend on Rows, so a row's result does not depend on the batch.
template <int Rows, class S>
void dots(const Acc<S>* rows, int64_t stride, const S* other, int64_t d, Acc<S>* out) {
  using A = Acc<S>;
  constexpr int64_t n = kLanes<A>;
  Vec<A> sum[Rows][kDotChains] = {};
  int64_t i = 0;
  for (; i + n * kDotChains <= d; i += n * kDotChains)
    for (int c = 0; c < kDotChains; ++c) {
      const Vec<A> v = load_full(other + i + c * n);
      for (int r = 0; r < Rows; ++r)
        sum[r][c] = madd(load_full(rows + r * stride + i + c * n), v, sum[r][c]);
    }
  for (; i < d; i += n) {
    const Vec<A> v = load(other + i, d - i);
    for (int r = 0; r < Rows; ++r) sum[r][0] = madd(load_full(rows + r * stride + i), v, sum[r][0]);
  }
  for (int r = 0; r < Rows; ++r)
    out[r] = sum_lanes<A>((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]));
}

// to += c * from
template <class S>
void add_scaled(Acc<S>* to, Acc<S> c, const S* from, int64_t d) {
  using A = Acc<S>;
  for (int64_t i = 0; i < d; i += kLanes<A>)
    store(to + i, madd(splat(c), load(from + i, d - i), load(to + i, d - i)), d - i);
}

// weight * xhat, rounded as transformers does: LlamaRMSNorm rounds xhat to the dtype of x before
// the product, Gemma's norm (weights stored as gamma - 1) rounds the product alone.
template <class S>
inline Vec<Acc<S>> scaled_by_weight(const S* weight, Vec<Acc<S>> xhat, int64_t left,
                                    bool unit_offset) {
  using A = Acc<S>;
  const Vec<A> w = load(weight, left);
  return unit_offset ? xhat * (splat(A(1)) + w) : w * rounded<S>(xhat);
}

// The open gates of one row: coefficient gain * s, and the anchor's value.
template <class S>
struct OpenGates {
  int count = 0;
  Acc<S> coefficient[kMaxAnchors];
  const S* value[kMaxAnchors];

  // Their sum at elements [i, i + Parts vectors), in the order of the anchors.
  template <int Parts>
  void sum(int64_t i, int64_t left, Vec<Acc<S>>* out) const {
    constexpr int n = kLanes<Acc<S>>;
    for (int u = 0; u < Parts; ++u) out[u] = Vec<Acc<S>>{};
    for (int j = 0; j < count; ++j)
      for (int u = 0; u < Parts; ++u)
        out[u] = madd(splat(coefficient[j]), load(value[j] + i + u * n, left - u * n), out[u]);
  }
};

// y = base + open gates for one row; base_at(i, left) gives a vector of base.
template <class S, class Base>
inline void write_row(S* y, int64_t d, const OpenGates<S>& open, const Base& base_at) {
  using A = Acc<S>;
  constexpr int n = kLanes<A>, kParts = 4;  // as many sums as a multiply-add has latency
  int64_t i = 0;
  if (open.count > 0) {
    Vec<A> added[kParts];
    for (; i + kParts * n <= d; i += kParts * n) {
      open.template sum<kParts>(i, kParts * n, added);
      for (int u = 0; u < kParts; ++u) store_full(y + i + u * n, base_at(i + u * n, n) + added[u]);
    }
    for (; i < d; i += n) {
      open.template sum<1>(i, d - i, added);
      store(y + i, base_at(i, d - i) + added[0], d - i);
    }
  }
  for (; i < d; i += n) store(y + i, base_at(i, d - i), d - i);
}

template <int Rows, class S>
void forward_tile(const NormParams& p, int64_t row, AnchorRange range, Acc<S>* xhat) {
  using A = Acc<S>;
  const int64_t d = p.width, pitch = padded<A>(d);
  for (int r = 0; r < Rows; ++r) {
    const S* x = static_cast<const S*>(p.x) + (row + r) * p.x_stride;
    if (p.residual != nullptr) {
      S* residual = static_cast<S*>(p.residual) + (row + r) * p.residual_stride;
      for (int64_t i = 0; i < d; i += kLanes<A>)
        store(residual + i, load(residual + i, d - i) + load(x + i, d - i), d - i);
      x = residual;
    }
    if (p.base == nullptr || range.first < range.last) normalize(x, d, p.eps, xhat + r * pitch);
  }

  OpenGates<S> open[Rows];
  const S* keys = static_cast<const S*>(p.anchors.keys);
  const S* values = static_cast<const S*>(p.anchors.values);
  const A* tau = static_cast<const A*>(p.anchors.thresholds);
  const A* gain = static_cast<const A*>(p.anchors.gains);
  const A root = root_of(A(d));
  for (int64_t k = range.first; k < range.last; ++k) {
    if (gain[k] == A(0)) continue;  // off, whatever the key or the value hold
    A products[Rows];
    dots<Rows>(xhat, pitch, keys + k * d, d, products);
    for (int r = 0; r < Rows; ++r) {
      const A s = products[r] / root - tau[k];
      if (gate_shut(s)) continue;
      open[r].coefficient[open[r].count] = gain[k] * s;
      open[r].value[open[r].count++] = values + k * d;
    }
  }

  for (int r = 0; r < Rows; ++r) {
    S* y = static_cast<S*>(p.y) + (row + r) * d;
    if (p.base != nullptr) {
      const S* base = static_cast<const S*>(p.base) + (row + r) * p.base_stride;
      if (open[r].count == 0)
        __builtin_memcpy(y, base, d * sizeof(S));  // bit for bit, NaNs included
      else
        write_row(y, d, open[r], [&](int64_t i, int64_t left) { return load(base + i, left); });
      continue;
    }
    const S* weight = static_cast<const S*>(p.weight);
    const A* row_xhat = xhat + r * pitch;
    // Rounded before the gates are added, so that this op and ska_anchor_delta over the model's
    // own norm agree; where no gate opens the store rounds alone.
    if (open[r].count == 0)
      write_row(y, d, open[r], [&](int64_t i, int64_t left) {
        return scaled_by_weight(weight + i, load_full(row_xhat + i), left, p.unit_offset);
      });
    else
      write_row(y, d, open[r], [&](int64_t i, int64_t left) {
        return rounded<S>(
            scaled_by_weight(weight + i, load_full(row_xhat + i), left, p.unit_offset));
      });
  }
}

template <class S>
void forward_rows(const NormParams& p, int64_t begin, int64_t end) {
  using A = Acc<S>;
  A* xhat = static_cast<A*>(thread_scratch(kRowTile * padded<A>(p.width) * int64_t(sizeof(A))));
  for (int64_t row = begin; row < end;) {
    const AnchorRange range = anchors_of_row(p.anchors, row);
    if (row + 1 < end && range.first < range.last) {
      const AnchorRange next = anchors_of_row(p.anchors, row + 1);
      if (next.first == range.first && next.last == range.last) {
        forward_tile<kRowTile, S>(p, row, range, xhat);
        row += kRowTile;
        continue;
      }
    }
    forward_tile<1, S>(p, row, range, xhat);
    ++row;
  }
}

// partial: [grad_weight d | grad_keys K d | grad_values K d | grad_thresholds K | grad_gains K]
template <class S>
void backward_rows(const NormBackwardParams& p, int64_t begin, int64_t end, void* partial) {
  using A = Acc<S>;
  const int64_t d = p.width, count = p.anchors.count, pitch = padded<A>(d);
  // Thresholds and gains gather terms that cancel: their sums run in fp64.
  double* dscalars = static_cast<double*>(
      thread_scratch(3 * pitch * int64_t(sizeof(A)) + 2 * count * int64_t(sizeof(double))));
  for (int64_t k = 0; k < 2 * count; ++k) dscalars[k] = 0;
  A* xhat = reinterpret_cast<A*>(dscalars + 2 * count);
  A* grad = xhat + pitch;
  A* dx = grad + pitch;  // gradient of xhat, then of x
  A* dweight = static_cast<A*>(partial);
  A* dkeys = dweight + d;
  A* dvalues = dkeys + count * d;
  A* scalars = dvalues + count * d;
  const S* weight = static_cast<const S*>(p.weight);
  const S* keys = static_cast<const S*>(p.anchors.keys);
  const S* values = static_cast<const S*>(p.anchors.values);
  const A* tau = static_cast<const A*>(p.anchors.thresholds);
  const A* gain = static_cast<const A*>(p.anchors.gains);
  const A root = root_of(A(d));
  for (int64_t row = begin; row < end; ++row) {
    const A scale = normalize(static_cast<const S*>(p.x) + row * p.x_stride, d, p.eps, xhat);
    const S* g = static_cast<const S*>(p.grad) + row * d;
    for (int64_t i = 0; i < d; i += kLanes<A>) {
      const Vec<A> v = load(g + i, d - i);
      store_full(grad + i, v);
      if (weight == nullptr) {
        store_full(dx + i, Vec<A>{});
        continue;
      }
      const Vec<A> gamma = load(weight + i, d - i) + splat(A(p.unit_offset ? 1 : 0));
      store_full(dx + i, gamma * v);
      store(dweight + i, madd(v, load_full(xhat + i), load(dweight + i, d - i)), d - i);
    }
    const AnchorRange range = anchors_of_row(p.anchors, row);
    for (int64_t k = range.first; k < range.last; ++k) {
      A product, along_value;
      dots<1>(xhat, pitch, keys + k * d, d, &product);
      const A s = product / root - tau[k];
      if (gate_shut(s)) continue;
      dots<1>(grad, pitch, values + k * d, d, &along_value);
      // A gain of 0 still has its own gradient: training may start there.
      dscalars[count + k] += double(s) * double(along_value);
      if (gain[k] == A(0)) continue;
      const A ds = gain[k] * along_value;
      dscalars[k] -= double(gain[k]) * double(along_value);
      add_scaled(dx, ds / root, keys + k * d, d);
      add_scaled(dkeys + k * d, ds / root, xhat, d);
      add_scaled(dvalues + k * d, gain[k] * s, grad, d);
    }
    A along_x;
    dots<1>(dx, pitch, xhat, d, &along_x);
    const A mean = along_x / A(d);
    S* gx = static_cast<S*>(p.grad_x) + row * d;
    for (int64_t i = 0; i < d; i += kLanes<A>) {
      const Vec<A> v = load_full(dx + i) - load_full(xhat + i) * splat(mean);
      store(gx + i, v * splat(scale), d - i);
    }
  }
  for (int64_t k = 0; k < 2 * count; ++k) scalars[k] += A(dscalars[k]);
}

void forward(const NormParams& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case DType::f32: return forward_rows<float>(p, begin, end);
    case DType::f64: return forward_rows<double>(p, begin, end);
    case DType::f16: return forward_rows<Half>(p, begin, end);
    case DType::bf16: return forward_rows<BFloat16>(p, begin, end);
  }
}

void backward(const NormBackwardParams& p, int64_t begin, int64_t end, void* partial) {
  switch (p.dtype) {
    case DType::f32: return backward_rows<float>(p, begin, end, partial);
    case DType::f64: return backward_rows<double>(p, begin, end, partial);
    case DType::f16: return backward_rows<Half>(p, begin, end, partial);
    case DType::bf16: return backward_rows<BFloat16>(p, begin, end, partial);
  }
}

}  // namespace
}  // namespace zerolayer
