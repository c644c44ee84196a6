// Checks shared by the op bindings.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <optional>

#include "../params.h"

namespace zerolayer {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline DType dtype_of(const Tensor& t, const char* name) {
  switch (t.scalar_type()) {
    case ScalarType::Float: return DType::f32;
    case ScalarType::Double: return DType::f64;
    case ScalarType::Half: return DType::f16;
    case ScalarType::BFloat16: return DType::bf16;
    default: STD_TORCH_CHECK(false, name, " must be float32, float64, float16 or bfloat16");
  }
}

// Whether the tensor is rows of contiguous elements at one distance, none over another.
inline bool has_rows(const Tensor& t) {
  return t.is_contiguous() || (t.dim() == 2 && t.stride(1) == 1 && t.stride(0) >= t.size(1));
}

// The tensor as rows: itself where it is already so, else a copy.
inline Tensor as_rows(const Tensor& t) { return has_rows(t) ? t : torch::stable::contiguous(t); }

inline int64_t row_stride(const Tensor& rows) {
  return rows.is_contiguous() ? rows.size(rows.dim() - 1) : rows.stride(0);
}

}  // namespace zerolayer
