// Plain structs that the bindings hand to kernels: pointers, strides in elements, sizes.
#pragma once

#include <cstdint>

namespace zerolayer {

constexpr int64_t kMaxAnchors = 64;  // of one layer and set: as many as may serve a row

enum class DType : int { f32, f64, f16, bf16 };

struct Anchors {
  const void* keys = nullptr;            // [K, d], dtype of x
  const void* values = nullptr;          // [K, d], dtype of x
  const void* thresholds = nullptr;      // [K], fp32 (fp64 where x is fp64)
  const void* gains = nullptr;           // [K], as thresholds
  const int32_t* row_set = nullptr;      // [rows], set of each row, -1 for none; null: one set
  const int32_t* set_offsets = nullptr;  // [sets + 1]
  int64_t count = 0;                     // K
};

// y = weight * xhat + gates (weight given), or y = base + gates (base given).
struct NormParams {
  const void* x = nullptr;
  const void* weight = nullptr;
  const void* base = nullptr;
  void* residual = nullptr;  // fused add: residual += x, and the norm reads the sum
  void* y = nullptr;         // [rows, d], contiguous
  Anchors anchors;
  int64_t rows = 0, width = 0;
  int64_t x_stride = 0, base_stride = 0, residual_stride = 0;
  double eps = 0;
  bool unit_offset = false;
  DType dtype = DType::f32;
};

struct NormBackwardParams {
  const void* grad = nullptr;  // [rows, d], contiguous, dtype of x
  const void* x = nullptr;
  const void* weight = nullptr;  // null: the backward of y = base + gates
  Anchors anchors;
  void* grad_x = nullptr;  // [rows, d], dtype of x
  int64_t rows = 0, width = 0, x_stride = 0;
  double eps = 0;
  bool unit_offset = false;
  DType dtype = DType::f32;
};

// A row's history is read in blocks of this many rows, by whichever thread is free; the blocks'
// results are merged in order, so the result does not depend on the threads.
constexpr int64_t kSemanticBlock = 256;

// All rows are unit vectors and contiguous.
struct SemanticParams {
  const void* hidden = nullptr;      // [rows, d]
  const void* history = nullptr;     // [rows, capacity, d]
  const int32_t* lengths = nullptr;  // [rows], how much of its history each row has
  const void* anchors = nullptr;     // [count, d]
  float* partial = nullptr;          // [rows, blocks + 1, 2]: similarity and index
  int64_t rows = 0, capacity = 0, count = 0, width = 0, blocks = 0;
  int64_t window = -1;  // the last so many of the history; -1 for all
  DType dtype = DType::f32;
};

// One implementation per instruction set, chosen once at run time (cpu/dispatch.cpp). All take
// rows [begin, end). `partial` receives the sums over rows, in fp32 (fp64 where x is fp64):
// [grad_weight d | grad_keys K d | grad_values K d | grad_thresholds K | grad_gains K].
struct Kernels {
  void (*forward)(const NormParams&, int64_t begin, int64_t end);
  void (*backward)(const NormBackwardParams&, int64_t begin, int64_t end, void* partial);
  void (*semantic)(const SemanticParams&, int64_t begin, int64_t end);
  const char* name;
};

const Kernels& kernels();

constexpr int kVerdicts = 3;  // consistent, contradictory, unsure

struct ProbeParams {
  const void* hidden = nullptr;        // [rows, d]
  const int32_t* decisions = nullptr;  // [count, 2], row and head, -1 for padding
  const float* probe = nullptr;        // [heads, 3, d + 1], the bias last
  float* scores = nullptr;             // [count, 3]
  int64_t count = 0, width = 0, hidden_stride = 0;
  DType dtype = DType::f32;
};

void decision_probe(const ProbeParams&);

// A buffer of this thread, aligned to 64 bytes, kept between calls.
void* thread_scratch(int64_t bytes);

}  // namespace zerolayer
