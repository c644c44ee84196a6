// scan_tokens, apply_decisions, decision_probe and semantic_check: schemas, checks, kernels over
// the arena.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../shared/automaton.h"
#include "tensors.h"

namespace zerolayer {
namespace {

Arena open(const Tensor& bytes, const char* name) {
  STD_TORCH_CHECK(
      bytes.scalar_type() == ScalarType::Byte && bytes.dim() == 1 && bytes.is_contiguous(), name,
      " must be a contiguous row of uint8");
  Arena arena;
  const char* error = open_arena(bytes.data_ptr(), bytes.numel(), arena);
  STD_TORCH_CHECK(error == nullptr, name, ": ", error == nullptr ? "" : error);
  return arena;
}

template <class T>
void scan(const T* tokens, const int32_t* lengths, int32_t* states, int32_t* events, int64_t rows,
          int64_t steps, const Arena& arena) {
  // One row is a chain of dependent loads; rows are independent.
  torch::stable::parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int32_t state = states[b];
      const int64_t n = lengths[b];
      for (int64_t t = 0; t < n; ++t) {
        const Arena::Step made = arena.step(state, tokens[b * steps + t]);
        state = made.state;
        events[b * steps + t] = made.event;
      }
      for (int64_t t = n; t < steps; ++t) events[b * steps + t] = -1;
      states[b] = state;
    }
  });
}

Tensor scan_tokens(Tensor tokens, Tensor lengths, Tensor states, Tensor automaton,
                   std::optional<Tensor> overlay) {
  const Arena arena = open(overlay.has_value() ? *overlay : automaton, "automaton");
  STD_TORCH_CHECK(tokens.dim() == 2, "tokens must be [B, T]");
  const int64_t rows = tokens.size(0), steps = tokens.size(1);
  STD_TORCH_CHECK(lengths.scalar_type() == ScalarType::Int && lengths.numel() == rows,
                  "lengths must be int32 [", rows, "]");
  STD_TORCH_CHECK(
      states.scalar_type() == ScalarType::Int && states.numel() == rows && states.is_contiguous(),
      "states must be contiguous int32 [", rows, "]");
  const Tensor t = torch::stable::contiguous(tokens), l = torch::stable::contiguous(lengths);
  auto* state = static_cast<int32_t*>(states.data_ptr());
  const auto* length = static_cast<const int32_t*>(l.data_ptr());
  for (int64_t b = 0; b < rows; ++b) {
    STD_TORCH_CHECK(length[b] >= 0 && length[b] <= steps, "lengths holds ", length[b],
                    ", tokens have ", steps, " columns");
    STD_TORCH_CHECK(state[b] >= 0 && state[b] < arena.header->states, "states holds ", state[b],
                    ", the automaton has ", arena.header->states, " states");
  }
  Tensor events = torch::stable::new_empty(tokens, {rows, steps}, ScalarType::Int);
  auto* out = static_cast<int32_t*>(events.data_ptr());
  if (tokens.scalar_type() == ScalarType::Int)
    scan(static_cast<const int32_t*>(t.data_ptr()), length, state, out, rows, steps, arena);
  else if (tokens.scalar_type() == ScalarType::Long)
    scan(static_cast<const int64_t*>(t.data_ptr()), length, state, out, rows, steps, arena);
  else
    STD_TORCH_CHECK(false, "tokens must be int32 or int64");
  return events;
}

// Adds to a bf16 or fp16 value in float. Only -inf and small bonuses occur.
float widen_bf16(uint16_t v) {
  uint32_t bits = static_cast<uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

uint16_t narrow_bf16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if (f != f) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T, class Add>
void bias_rows(T* logits, const int32_t* states, int64_t rows, int64_t width, int64_t stride,
               const Arena& arena, const Add& add) {
  const ArenaHeader& h = *arena.header;
  if (!h.overlay) return;
  const int32_t* hub_rows = arena.at<int32_t>(h.at_hub_rows);
  const int32_t* own_rows = arena.at<int32_t>(h.at_bias_rows);
  const ArenaBias* bias = arena.at<ArenaBias>(h.at_bias);
  for (int64_t b = 0; b < rows; ++b) {
    const int32_t s = states[b], hub = arena.at<int32_t>(h.at_hub_of)[s];
    const float floor = arena.at<float>(h.at_floors)[s];
    T* row = logits + b * stride;
    const ArenaBias *usual = bias + hub_rows[hub], *usual_end = bias + hub_rows[hub + 1];
    const ArenaBias *own = bias + own_rows[s], *own_end = bias + own_rows[s + 1];
    int64_t next = 0;
    // Both lists are sorted by token; the state's own entry counts where both have one.
    while (usual != usual_end || own != own_end) {
      const bool hubs = own == own_end || (usual != usual_end && usual->token < own->token);
      if (!hubs && usual != usual_end && usual->token == own->token) ++usual;
      const ArenaBias entry = hubs ? *usual++ : *own++;
      if (entry.token >= width) break;
      if (floor != 0.0f)
        for (; next < entry.token; ++next) row[next] = add(row[next], floor);
      next = entry.token + 1;
      row[entry.token] = add(row[entry.token], entry.value);
    }
    if (floor != 0.0f)
      for (; next < width; ++next) row[next] = add(row[next], floor);
  }
}

void apply_decisions(Tensor logits, Tensor states, Tensor automaton,
                     std::optional<Tensor> overlay) {
  const Arena arena = open(overlay.has_value() ? *overlay : automaton, "automaton");
  STD_TORCH_CHECK(logits.dim() == 2 && (logits.stride(1) == 1 || logits.size(1) == 1),
                  "logits must be [B, V] with contiguous rows");
  const int64_t rows = logits.size(0), width = logits.size(1), stride = logits.stride(0);
  STD_TORCH_CHECK(states.scalar_type() == ScalarType::Int && states.numel() == rows,
                  "states must be int32 [", rows, "]");
  const Tensor s = torch::stable::contiguous(states);
  const auto* state = static_cast<const int32_t*>(s.data_ptr());
  for (int64_t b = 0; b < rows; ++b)
    STD_TORCH_CHECK(state[b] >= 0 && state[b] < arena.header->states, "states holds ", state[b],
                    ", the automaton has ", arena.header->states, " states");
  void* data = logits.data_ptr();
  switch (dtype_of(logits, "logits")) {
    case DType::f32:
      return bias_rows(static_cast<float*>(data), state, rows, width, stride, arena,
                       [](float a, float b) { return a + b; });
    case DType::f64:
      return bias_rows(static_cast<double*>(data), state, rows, width, stride, arena,
                       [](double a, float b) { return a + b; });
    case DType::bf16:
      return bias_rows(static_cast<uint16_t*>(data), state, rows, width, stride, arena,
                       [](uint16_t a, float b) { return narrow_bf16(widen_bf16(a) + b); });
    case DType::f16: {
#if defined(__aarch64__)
      using Half = __fp16;
#else
      using Half = _Float16;
#endif
      return bias_rows(
          static_cast<Half*>(data), state, rows, width, stride, arena,
          [](Half a, float b) { return static_cast<Half>(static_cast<float>(a) + b); });
    }
  }
}

Tensor probe_decisions(Tensor hidden, Tensor decisions, Tensor probe) {
  STD_TORCH_CHECK(hidden.dim() == 2, "hidden must be [rows, d], it has ", hidden.dim(),
                  " dimensions");
  const DType dtype = dtype_of(hidden, "hidden");
  STD_TORCH_CHECK(dtype != DType::f64, "hidden must be float32, float16 or bfloat16");
  STD_TORCH_CHECK(
      decisions.scalar_type() == ScalarType::Int && decisions.dim() == 2 && decisions.size(1) == 2,
      "decisions must be int32 [N, 2]: row and head, -1 for padding");
  const int64_t rows = hidden.size(0), width = hidden.size(1), count = decisions.size(0);
  STD_TORCH_CHECK(probe.scalar_type() == ScalarType::Float && probe.dim() == 3 &&
                      probe.size(1) == kVerdicts && probe.size(2) == width + 1,
                  "probe must be float32 [heads, 3, ", width + 1, "], as hidden has width ", width);
  const Tensor h = as_rows(hidden), d = torch::stable::contiguous(decisions),
               w = torch::stable::contiguous(probe);
  const auto* entries = static_cast<const int32_t*>(d.data_ptr());
  for (int64_t n = 0; n < count; ++n) {
    const int32_t row = entries[2 * n], head = entries[2 * n + 1];
    STD_TORCH_CHECK(
        (row == -1 && head == -1) || (row >= 0 && row < rows && head >= 0 && head < probe.size(0)),
        "decision ", n, " names row ", row, " and head ", head, "; there are ", rows, " rows and ",
        probe.size(0), " heads (-1, -1 is padding)");
  }
  Tensor scores = torch::stable::new_empty(hidden, {count, kVerdicts}, ScalarType::Float);
  ProbeParams p;
  p.hidden = h.data_ptr();
  p.decisions = entries;
  p.probe = static_cast<const float*>(w.data_ptr());
  p.scores = static_cast<float*>(scores.data_ptr());
  p.count = count;
  p.width = width;
  p.hidden_stride = row_stride(h);
  p.dtype = dtype;
  decision_probe(p);
  return scores;
}

Tensor semantic_check(Tensor hidden, Tensor history, Tensor lengths, Tensor anchors,
                      int64_t window) {
  const DType dtype = dtype_of(hidden, "hidden");
  STD_TORCH_CHECK(dtype != DType::f64, "hidden must be float32, float16 or bfloat16");
  STD_TORCH_CHECK(hidden.dim() == 2, "hidden must be [B, d]");
  const int64_t rows = hidden.size(0), width = hidden.size(1);
  STD_TORCH_CHECK(history.dim() == 3 && history.size(0) == rows && history.size(2) == width,
                  "history must be [", rows, ", T, ", width, "]");
  STD_TORCH_CHECK(anchors.dim() == 2 && anchors.size(1) == width, "anchors must be [K, ", width,
                  "]");
  STD_TORCH_CHECK(dtype_of(history, "history") == dtype && dtype_of(anchors, "anchors") == dtype,
                  "hidden, history and anchors must have one dtype");
  STD_TORCH_CHECK(history.is_contiguous(), "history must be contiguous");
  STD_TORCH_CHECK(lengths.scalar_type() == ScalarType::Int && lengths.numel() == rows,
                  "lengths must be int32 [", rows, "]");
  STD_TORCH_CHECK(window >= -1, "window must be -1 (all) or a number of rows, not ", window);
  const Tensor h = torch::stable::contiguous(hidden), a = torch::stable::contiguous(anchors),
               l = torch::stable::contiguous(lengths);
  SemanticParams p;
  p.lengths = static_cast<const int32_t*>(l.data_ptr());
  for (int64_t b = 0; b < rows; ++b)
    STD_TORCH_CHECK(p.lengths[b] >= 0 && p.lengths[b] <= history.size(1), "lengths holds ",
                    p.lengths[b], ", the history has ", history.size(1), " rows");
  p.hidden = h.data_ptr();
  p.history = history.data_ptr();
  p.anchors = a.data_ptr();
  p.rows = rows;
  p.capacity = history.size(1);
  p.count = anchors.size(0);
  p.width = width;
  p.window = window;
  p.dtype = dtype;
  int64_t longest = 0;
  for (int64_t b = 0; b < rows; ++b) longest = std::max<int64_t>(longest, p.lengths[b]);
  p.blocks = (longest + kSemanticBlock - 1) / kSemanticBlock;
  std::vector<float> partial(rows * (p.blocks + 1) * 2);
  p.partial = partial.data();
  const Kernels& chosen = kernels();
  torch::stable::parallel_for(0, rows * (p.blocks + 1), 1,
                              [&](int64_t begin, int64_t end) { chosen.semantic(p, begin, end); });
  Tensor out = torch::stable::new_empty(hidden, {rows, 4}, ScalarType::Float);
  auto* merged = static_cast<float*>(out.data_ptr());
  for (int64_t b = 0; b < rows; ++b) {
    float* to = merged + b * 4;
    to[0] = 0;
    to[1] = -1;
    const float* from = partial.data() + b * (p.blocks + 1) * 2;
    for (int64_t i = 0; i <= p.blocks; ++i) {
      float* best = i == p.blocks ? to + 2 : to;
      if (i == p.blocks || (from[1] >= 0 && (to[1] < 0 || from[0] > to[0]))) {
        best[0] = from[0];
        best[1] = from[1];
      }
      from += 2;
    }
  }
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(zerolayer, m) {
  m.def(
      "scan_tokens(Tensor tokens, Tensor lengths, Tensor(a!) states, Tensor automaton, Tensor? "
      "overlay=None) -> Tensor");
  m.def(
      "apply_decisions(Tensor(a!) logits, Tensor states, Tensor automaton, Tensor? overlay=None) "
      "-> ()");
  m.def("decision_probe(Tensor hidden, Tensor decisions, Tensor probe) -> Tensor");
  m.def(
      "semantic_check(Tensor hidden, Tensor history, Tensor lengths, Tensor anchors, int "
      "window=-1) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(zerolayer, CPU, m) {
  m.impl("scan_tokens", TORCH_BOX(&scan_tokens));
  m.impl("apply_decisions", TORCH_BOX(&apply_decisions));
  m.impl("decision_probe", TORCH_BOX(&probe_decisions));
  m.impl("semantic_check", TORCH_BOX(&semantic_check));
}

}  // namespace zerolayer
