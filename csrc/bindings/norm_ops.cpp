// Schemas, checks and dispatch of the norm ops.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tensors.h"

namespace zerolayer {
namespace {

using OptionalTensor = std::optional<Tensor>;

// The anchors as kernels take them, and what keeps their memory alive.
struct HeldAnchors {
  Tensor keys, values, thresholds, gains, row_set, set_offsets;
  Anchors anchors;
};

void check_sets(HeldAnchors& held, int64_t rows, const OptionalTensor& row_set,
                const OptionalTensor& set_offsets) {
  const int64_t count = held.anchors.count;
  STD_TORCH_CHECK(row_set.has_value() == set_offsets.has_value(),
                  "row_set and set_offsets must be given together");
  if (!row_set.has_value()) {
    STD_TORCH_CHECK(count <= kMaxAnchors, "keys hold ", count, " anchors, a set may have at most ",
                    kMaxAnchors);
    return;
  }
  STD_TORCH_CHECK(row_set->scalar_type() == ScalarType::Int, "row_set must be int32");
  STD_TORCH_CHECK(set_offsets->scalar_type() == ScalarType::Int, "set_offsets must be int32");
  STD_TORCH_CHECK(row_set->numel() == rows, "row_set has ", row_set->numel(), " entries, x has ",
                  rows, " rows");
  held.row_set = torch::stable::contiguous(*row_set);
  held.set_offsets = torch::stable::contiguous(*set_offsets);
  const auto* sets = static_cast<const int32_t*>(held.row_set.data_ptr());
  const auto* offsets = static_cast<const int32_t*>(held.set_offsets.data_ptr());
  const int64_t n = held.set_offsets.numel() - 1;
  STD_TORCH_CHECK(n >= 0 && offsets[0] == 0 && offsets[n] == count,
                  "set_offsets must run from 0 to the number of anchors, ", count);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = int64_t(offsets[i + 1]) - offsets[i];
    STD_TORCH_CHECK(size >= 0, "set_offsets must not fall, it does after entry ", i);
    STD_TORCH_CHECK(size <= kMaxAnchors, "set ", i, " holds ", size,
                    " anchors, a set may have at most ", kMaxAnchors);
  }
  for (int64_t i = 0; i < rows; ++i)
    STD_TORCH_CHECK(sets[i] >= -1 && sets[i] < n, "row_set holds ", sets[i], " for row ", i,
                    ", there are ", n, " sets (-1: none)");
  held.anchors.row_set = sets;
  held.anchors.set_offsets = offsets;
}

HeldAnchors check_anchors(const Tensor& x, int64_t rows, const OptionalTensor& keys,
                          const OptionalTensor& values, const OptionalTensor& thresholds,
                          const OptionalTensor& gains, const OptionalTensor& row_set,
                          const OptionalTensor& set_offsets) {
  HeldAnchors held;
  const bool any = keys.has_value() || values.has_value() || thresholds.has_value() ||
                   gains.has_value() || row_set.has_value() || set_offsets.has_value();
  if (!any) return held;
  STD_TORCH_CHECK(
      keys.has_value() && values.has_value() && thresholds.has_value() && gains.has_value(),
      "keys, values, thresholds and gains must be given together");
  const int64_t d = x.size(x.dim() - 1);
  STD_TORCH_CHECK(keys->dim() == 2 && keys->size(1) == d, "keys must be [K, ", d,
                  "], the width of x");
  const int64_t count = keys->size(0);
  STD_TORCH_CHECK(values->dim() == 2 && values->size(0) == count && values->size(1) == d,
                  "values must be [", count, ", ", d, "], as keys are");
  STD_TORCH_CHECK(keys->scalar_type() == x.scalar_type(), "keys must have the dtype of x");
  STD_TORCH_CHECK(values->scalar_type() == x.scalar_type(), "values must have the dtype of x");
  const bool wide = x.scalar_type() == ScalarType::Double;
  for (const auto& [tensor, name] :
       {std::pair(&*thresholds, "thresholds"), std::pair(&*gains, "gains")}) {
    STD_TORCH_CHECK(tensor->scalar_type() == (wide ? ScalarType::Double : ScalarType::Float), name,
                    wide ? " must be float64, as x is" : " must be float32");
    STD_TORCH_CHECK(tensor->dim() == 1 && tensor->size(0) == count, name, " must be [", count,
                    "], one for each key");
  }
  held.keys = torch::stable::contiguous(*keys);
  held.values = torch::stable::contiguous(*values);
  held.thresholds = torch::stable::contiguous(*thresholds);
  held.gains = torch::stable::contiguous(*gains);
  held.anchors.keys = held.keys.data_ptr();
  held.anchors.values = held.values.data_ptr();
  held.anchors.thresholds = held.thresholds.data_ptr();
  held.anchors.gains = held.gains.data_ptr();
  held.anchors.count = count;
  check_sets(held, rows, row_set, set_offsets);
  return held;
}

// Returns the number of rows.
int64_t check_input(const Tensor& x, double eps) {
  STD_TORCH_CHECK(x.dim() >= 1 && x.size(x.dim() - 1) >= 1,
                  "x must be [..., d] with a width d of at least 1");
  STD_TORCH_CHECK(eps >= 0 && std::isfinite(eps), "eps must be finite and not negative, it is ",
                  eps);
  return x.numel() / x.size(x.dim() - 1);
}

void check_weight(const Tensor& x, const Tensor& weight) {
  const int64_t d = x.size(x.dim() - 1);
  STD_TORCH_CHECK(weight.dim() == 1 && weight.size(0) == d, "weight must be [", d,
                  "], the width of x");
  STD_TORCH_CHECK(weight.scalar_type() == x.scalar_type(), "weight must have the dtype of x");
}

void check_like(const Tensor& x, const Tensor& other, const char* name) {
  bool same = other.dim() == x.dim() && other.scalar_type() == x.scalar_type();
  for (int64_t i = 0; same && i < x.dim(); ++i) same = other.size(i) == x.size(i);
  STD_TORCH_CHECK(same, name, " must have the shape and dtype of x");
}

// Fewest rows that are worth a thread: about 32k multiply-adds.
int64_t grain(int64_t width, int64_t anchors) {
  return std::max<int64_t>(1, 32768 / (width * (1 + anchors)));
}

// Fills what the three forward ops share, runs, and returns y.
Tensor run(NormParams& p, const Tensor& x, const HeldAnchors& held, double eps) {
  const Tensor rows = as_rows(x);
  Tensor y = torch::stable::new_empty(x, x.sizes());
  p.dtype = dtype_of(x, "x");
  p.x = rows.data_ptr();
  p.x_stride = row_stride(rows);
  p.y = y.data_ptr();
  p.anchors = held.anchors;
  p.width = x.size(x.dim() - 1);
  p.eps = eps;
  const Kernels& chosen = kernels();
  torch::stable::parallel_for(0, p.rows, grain(p.width, p.anchors.count),
                              [&](int64_t begin, int64_t end) { chosen.forward(p, begin, end); });
  return y;
}

Tensor ska_rms_norm(Tensor x, Tensor weight, OptionalTensor keys, OptionalTensor values,
                    OptionalTensor thresholds, OptionalTensor gains, OptionalTensor row_set,
                    OptionalTensor set_offsets, double eps, bool unit_offset) {
  NormParams p;
  p.rows = check_input(x, eps);
  check_weight(x, weight);
  const HeldAnchors held =
      check_anchors(x, p.rows, keys, values, thresholds, gains, row_set, set_offsets);
  const Tensor w = torch::stable::contiguous(weight);
  p.weight = w.data_ptr();
  p.unit_offset = unit_offset;
  return run(p, x, held, eps);
}

Tensor ska_anchor_delta(Tensor x, Tensor base, OptionalTensor keys, OptionalTensor values,
                        OptionalTensor thresholds, OptionalTensor gains, OptionalTensor row_set,
                        OptionalTensor set_offsets, double eps) {
  NormParams p;
  p.rows = check_input(x, eps);
  check_like(x, base, "base");
  const HeldAnchors held =
      check_anchors(x, p.rows, keys, values, thresholds, gains, row_set, set_offsets);
  const Tensor b = as_rows(base);
  p.base = b.data_ptr();
  p.base_stride = row_stride(b);
  return run(p, x, held, eps);
}

Tensor fused_add_ska_rms_norm(Tensor x, Tensor residual, Tensor weight, OptionalTensor keys,
                              OptionalTensor values, OptionalTensor thresholds,
                              OptionalTensor gains, OptionalTensor row_set,
                              OptionalTensor set_offsets, double eps, bool unit_offset) {
  NormParams p;
  p.rows = check_input(x, eps);
  check_weight(x, weight);
  check_like(x, residual, "residual");
  STD_TORCH_CHECK(has_rows(residual),
                  "residual is written in place: it must be contiguous, or 2-d with contiguous "
                  "rows that do not overlap");
  const HeldAnchors held =
      check_anchors(x, p.rows, keys, values, thresholds, gains, row_set, set_offsets);
  const Tensor w = torch::stable::contiguous(weight);
  p.weight = w.data_ptr();
  p.unit_offset = unit_offset;
  p.residual = residual.data_ptr();
  p.residual_stride = row_stride(residual);
  return run(p, x, held, eps);
}

// Rows are summed in blocks whose number depends on the rows alone, so gradients do not depend on
// the number of threads.
int64_t backward_blocks(int64_t rows) { return std::clamp<int64_t>(rows / 16, 1, 16); }

// out [n] = sum over blocks of partial [blocks, size] at `offset`.
template <class A>
void sum_blocks(Tensor& out, const A* partial, int64_t blocks, int64_t size, int64_t offset) {
  A* to = static_cast<A*>(out.data_ptr());
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += partial[b * size + offset + i];
    to[i] = static_cast<A>(sum);
  }
}

// weight absent: the backward of ska_anchor_delta. Gradients of weight and anchors are fp32 (fp64
// where x is fp64), the caller casts them; they are empty where the input is absent.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> ska_rms_norm_backward(
    Tensor grad, Tensor x, OptionalTensor weight, OptionalTensor keys, OptionalTensor values,
    OptionalTensor thresholds, OptionalTensor gains, OptionalTensor row_set,
    OptionalTensor set_offsets, double eps, bool unit_offset) {
  NormBackwardParams p;
  p.rows = check_input(x, eps);
  check_like(x, grad, "grad");
  if (weight.has_value()) check_weight(x, *weight);
  const HeldAnchors held =
      check_anchors(x, p.rows, keys, values, thresholds, gains, row_set, set_offsets);
  const Tensor rows = as_rows(x), g = torch::stable::contiguous(grad);
  const Tensor w = weight.has_value() ? torch::stable::contiguous(*weight) : x;
  const int64_t d = x.size(x.dim() - 1), count = held.anchors.count;
  Tensor grad_x = torch::stable::new_empty(x, x.sizes());
  p.dtype = dtype_of(x, "x");
  p.weight = weight.has_value() ? w.data_ptr() : nullptr;
  p.grad = g.data_ptr();
  p.x = rows.data_ptr();
  p.x_stride = row_stride(rows);
  p.anchors = held.anchors;
  p.grad_x = grad_x.data_ptr();
  p.width = d;
  p.eps = eps;
  p.unit_offset = unit_offset;

  const bool wide = p.dtype == DType::f64;
  const ScalarType acc = wide ? ScalarType::Double : ScalarType::Float;
  const int64_t blocks = backward_blocks(p.rows), block = (p.rows + blocks - 1) / blocks;
  const int64_t size = d + 2 * count * d + 2 * count;
  Tensor partial = torch::stable::new_zeros(x, {blocks, size}, acc);
  char* at = static_cast<char*>(partial.data_ptr());
  const Kernels& chosen = kernels();
  torch::stable::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t begin = b * block, end = std::min(p.rows, begin + block);
      if (begin < end) chosen.backward(p, begin, end, at + b * size * (wide ? 8 : 4));
    }
  });

  int64_t offset = 0;
  auto summed = [&](std::vector<int64_t> shape) {
    Tensor out = torch::stable::new_zeros(x, shape, acc);
    if (wide)
      sum_blocks(out, reinterpret_cast<const double*>(at), blocks, size, offset);
    else
      sum_blocks(out, reinterpret_cast<const float*>(at), blocks, size, offset);
    offset += out.numel();
    return out;
  };
  Tensor grad_weight = summed({d});
  Tensor grad_keys = summed({count, d}), grad_values = summed({count, d});
  Tensor grad_thresholds = summed({count}), grad_gains = summed({count});
  if (!weight.has_value()) grad_weight = torch::stable::new_zeros(x, {0}, acc);
  return {grad_x, grad_weight, grad_keys, grad_values, grad_thresholds, grad_gains};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(zerolayer, m) {
  m.def(
      "ska_rms_norm(Tensor x, Tensor weight, Tensor? keys, Tensor? values, Tensor? thresholds, "
      "Tensor? gains, Tensor? row_set, Tensor? set_offsets, float eps, bool unit_offset=False) -> "
      "Tensor");
  m.def(
      "ska_anchor_delta(Tensor x, Tensor base, Tensor? keys, Tensor? values, Tensor? thresholds, "
      "Tensor? gains, Tensor? row_set, Tensor? set_offsets, float eps) -> Tensor");
  m.def(
      "fused_add_ska_rms_norm(Tensor x, Tensor(a!) residual, Tensor weight, Tensor? keys, Tensor? "
      "values, Tensor? thresholds, Tensor? gains, Tensor? row_set, Tensor? set_offsets, float eps, "
      "bool unit_offset=False) -> Tensor");
  m.def(
      "ska_rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, Tensor? keys, Tensor? values, "
      "Tensor? thresholds, Tensor? gains, Tensor? row_set, Tensor? set_offsets, float eps, bool "
      "unit_offset) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(zerolayer, CPU, m) {
  m.impl("ska_rms_norm", TORCH_BOX(&ska_rms_norm));
  m.impl("ska_anchor_delta", TORCH_BOX(&ska_anchor_delta));
  m.impl("fused_add_ska_rms_norm", TORCH_BOX(&fused_add_ska_rms_norm));
  m.impl("ska_rms_norm_backward", TORCH_BOX(&ska_rms_norm_backward));
}

}  // namespace zerolayer
