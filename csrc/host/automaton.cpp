// Subset construction over bytes, then composition with the vocabulary.
//
// Bytes first, tokens second: a phrase is found however the tokenizer cuts it, also in the middle
// of a UTF-8 character. A composed state is a pair (byte state, event set): a token may pass
// several events on its way, and all of them belong to the state that it ends in.
#include "automaton.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <stdexcept>
#include <unordered_map>

#include "../shared/automaton.h"

namespace zerolayer {
namespace {

constexpr int32_t kDead = -1;
constexpr size_t kMaxStates = 1u << 20;

bool word_byte(uint8_t b) {
  return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_';
}

// What a byte automaton is to the composition: start, step, and what a step reported.
struct ByteMachine {
  int32_t start = 0;
  int32_t reset = 0;
  std::function<int32_t(int32_t, uint8_t, std::vector<int32_t>&)> step;
  std::function<bool(int32_t)> special_ok = [](int32_t) { return true; };
  std::function<int32_t(int32_t)> after_special;  // default: reset
  std::function<bool(int32_t)> done = [](int32_t) { return false; };
  std::function<bool(int32_t, int32_t)> favoured = [](int32_t, int32_t) { return false; };
  // Where a dead end leads if nothing is forbidden.
  int32_t fallback = kDead;
};

struct VectorHash {
  size_t operator()(const std::vector<int32_t>& v) const {
    uint64_t h = 1469598103934665603ull;
    for (int32_t x : v) h = (h ^ static_cast<uint32_t>(x)) * 1099511628211ull;
    return h;
  }
};

class Composer {
 public:
  Composer(const ByteMachine& machine, const Vocabulary& vocabulary, float bonus, bool overlay)
      : machine_(machine), vocabulary_(vocabulary), bonus_(bonus), overlay_(overlay) {
    build_trie();
    state_id(machine.start, {});
    for (size_t i = 0; i < states_.size(); ++i) expand(i);
    reset_ = state_id(machine.reset, {});
    for (size_t i = 0; i < states_.size(); ++i)
      if (i >= columns_.size()) expand(i);
  }

  std::string arena() const;

 private:
  struct State {
    int32_t byte_state;
    int32_t set;  // event set or -1
  };
  struct Node {
    std::vector<std::pair<uint8_t, int32_t>> next;
    std::vector<int32_t> tokens;
  };

  void build_trie() {
    trie_.emplace_back();
    for (size_t t = 0; t < vocabulary_.size(); ++t) {
      if (!vocabulary_[t] || vocabulary_[t]->empty()) {
        specials_.push_back(static_cast<int32_t>(t));
        continue;
      }
      int32_t at = 0;
      for (char c : *vocabulary_[t]) {
        const auto b = static_cast<uint8_t>(c);
        int32_t found = -1;
        for (auto& [byte, node] : trie_[at].next)
          if (byte == b) found = node;
        if (found < 0) {
          found = static_cast<int32_t>(trie_.size());
          trie_[at].next.emplace_back(b, found);
          trie_.emplace_back();
        }
        at = found;
      }
      trie_[at].tokens.push_back(static_cast<int32_t>(t));
    }
  }

  int32_t set_id(std::vector<int32_t> events) {
    if (events.empty()) return -1;
    std::sort(events.begin(), events.end());
    events.erase(std::unique(events.begin(), events.end()), events.end());
    auto [it, fresh] = set_ids_.try_emplace(events, static_cast<int32_t>(sets_.size()));
    if (fresh) sets_.push_back(events);
    return it->second;
  }

  int32_t state_id(int32_t byte_state, const std::vector<int32_t>& events) {
    const int32_t set = set_id(events);
    auto [it, fresh] =
        ids_.try_emplace({byte_state, set}, static_cast<int32_t>(states_.size()));
    if (fresh) {
      if (states_.size() >= kMaxStates) throw std::length_error("too many automaton states");
      states_.push_back({byte_state, set});
    }
    return it->second;
  }

  void walk(int32_t node, int32_t byte_state, std::vector<int32_t>& events,
            std::vector<int32_t>& row) {
    for (int32_t t : trie_[node].tokens) row[t] = state_id(byte_state, events);
    for (auto [byte, child] : trie_[node].next) {
      const size_t mark = events.size();
      const int32_t to = machine_.step(byte_state, byte, events);
      if (to != kDead) walk(child, to, events, row);
      events.resize(mark);
    }
  }

  // The row of next states of one state; states that differ in their event set alone share it.
  void expand(size_t i) {
    const int32_t byte_state = states_[i].byte_state;
    auto known = row_of_.find(byte_state);
    if (known != row_of_.end()) {
      columns_.push_back(known->second);
      return;
    }
    std::vector<int32_t> row(vocabulary_.size(), kDead);
    std::vector<int32_t> events;
    walk(0, byte_state, events, row);
    if (machine_.special_ok(byte_state))
      for (int32_t t : specials_)
        row[t] = machine_.after_special
                     ? state_id(machine_.after_special(byte_state), {})
                     : state_id(machine_.reset, {});
    row_of_.emplace(byte_state, static_cast<int32_t>(rows_.size()));
    columns_.push_back(static_cast<int32_t>(rows_.size()));
    rows_.push_back(std::move(row));
  }

  const ByteMachine& machine_;
  const Vocabulary& vocabulary_;
  float bonus_;
  bool overlay_;
  int32_t reset_ = 0;
  std::vector<Node> trie_;
  std::vector<int32_t> specials_;
  std::vector<State> states_;
  std::map<std::pair<int32_t, int32_t>, int32_t> ids_;
  std::map<std::vector<int32_t>, int32_t> set_ids_;
  std::vector<std::vector<int32_t>> sets_;
  std::unordered_map<int32_t, int32_t> row_of_;
  std::vector<int32_t> columns_;            // state -> row
  std::vector<std::vector<int32_t>> rows_;  // next states, kDead where forbidden
};

template <class T>
int64_t append(std::string& out, const std::vector<T>& table) {
  out.resize((out.size() + 7) / 8 * 8);
  const auto at = static_cast<int64_t>(out.size());
  if (!table.empty())
    out.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(T));
  return at;
}

std::string Composer::arena() const {
  const size_t tokens = vocabulary_.size(), n = states_.size();
  // Where a forbidden token leads if it comes all the same (a sampler that ignores the bias).
  const int32_t fallback =
      machine_.fallback == kDead ? 0 : ids_.count({machine_.fallback, -1})
                                           ? ids_.at({machine_.fallback, -1})
                                           : 0;
  auto next = [&](size_t row, size_t t) { return rows_[row][t] == kDead ? fallback : rows_[row][t]; };

  // Tokens with equal columns share a class.
  std::vector<uint16_t> classes(tokens);
  std::unordered_map<std::vector<int32_t>, int32_t, VectorHash> class_ids;
  std::vector<int32_t> representative;
  std::vector<int32_t> column(rows_.size());
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t r = 0; r < rows_.size(); ++r) column[r] = next(r, t);
    auto [it, fresh] = class_ids.try_emplace(column, static_cast<int32_t>(representative.size()));
    if (fresh) representative.push_back(static_cast<int32_t>(t));
    if (it->second > 0xffff) throw std::length_error("more than 65,536 token classes");
    classes[t] = static_cast<uint16_t>(it->second);
  }
  const size_t C = std::max<size_t>(1, representative.size());
  std::vector<int32_t> root(C, 0);
  for (size_t c = 0; c < representative.size(); ++c)
    root[c] = next(columns_[0], representative[c]);
  std::vector<int32_t> rows{0}, events, bias_rows{0};
  std::vector<ArenaEntry> entries;
  std::vector<ArenaBias> bias;
  std::vector<float> floor;
  std::vector<uint8_t> flags;
  for (size_t s = 0; s < n; ++s) {
    const int32_t row = columns_[s];
    for (size_t c = 0; c < representative.size(); ++c) {
      const int32_t to = next(row, representative[c]);
      if (to != root[c]) entries.push_back({static_cast<int32_t>(c), to});
    }
    rows.push_back(static_cast<int32_t>(entries.size()));
    events.push_back(states_[s].set);
    flags.push_back(machine_.done(states_[s].byte_state) ? 1 : 0);
    float base = 0.0f;
    if (overlay_ && bonus_ > 0) {
      for (size_t t = 0; t < tokens; ++t)
        if (rows_[row][t] != kDead &&
            machine_.favoured(states_[s].byte_state, states_[rows_[row][t]].byte_state))
          bias.push_back({static_cast<int32_t>(t), bonus_});
    } else if (overlay_) {
      const float never = -std::numeric_limits<float>::infinity();
      size_t dead = 0;
      for (size_t t = 0; t < tokens; ++t) dead += rows_[row][t] == kDead;
      if (dead > tokens / 2) base = never;
      for (size_t t = 0; t < tokens; ++t) {
        const bool is_dead = rows_[row][t] == kDead;
        if (base == 0.0f && is_dead) bias.push_back({static_cast<int32_t>(t), never});
        if (base != 0.0f && !is_dead) bias.push_back({static_cast<int32_t>(t), 0.0f});
      }
    }
    bias_rows.push_back(static_cast<int32_t>(bias.size()));
    floor.push_back(base);
  }
  std::vector<int32_t> set_rows{0}, set_items;
  for (const auto& set : sets_) {
    set_items.insert(set_items.end(), set.begin(), set.end());
    set_rows.push_back(static_cast<int32_t>(set_items.size()));
  }

  ArenaHeader h{};
  h.magic = kArenaMagic;
  h.version = kArenaVersion;
  h.tokens = static_cast<int32_t>(tokens);
  h.classes = static_cast<int32_t>(C);
  h.states = static_cast<int32_t>(n);
  h.entries = static_cast<int32_t>(entries.size());
  h.sets = static_cast<int32_t>(sets_.size());
  h.set_items = static_cast<int32_t>(set_items.size());
  h.biases = static_cast<int32_t>(bias.size());
  h.start = 0;
  h.reset = reset_;
  h.overlay = overlay_ ? 1 : 0;
  std::string out(sizeof(ArenaHeader), '\0');
  h.at_classes = append(out, classes);
  h.at_root = append(out, root);
  h.at_rows = append(out, rows);
  h.at_entries = append(out, entries);
  h.at_events = append(out, events);
  h.at_set_rows = append(out, set_rows);
  h.at_set_items = append(out, set_items);
  h.at_bias_rows = append(out, bias_rows);
  h.at_bias = append(out, bias);
  h.at_floor = append(out, floor);
  h.at_flags = append(out, flags);
  out.resize((out.size() + 7) / 8 * 8);
  h.bytes = out.size();
  h.checksum = arena_checksum(reinterpret_cast<const uint8_t*>(out.data()) + sizeof(h),
                              out.size() - sizeof(h));
  std::memcpy(out.data(), &h, sizeof(h));
  return out;
}

// ---- triggers: a nondeterministic automaton per phrase, determinised together -----------------

struct NfaNode {
  std::vector<std::pair<uint8_t, int32_t>> edges;
  std::vector<int32_t> empty;  // steps that take no byte
  int32_t accept = -1;         // trigger that ends on entering this node
  bool boundary = false;       // accept only if the next byte is no word byte
  int32_t trigger = -1;
};

class TriggerMachine {
 public:
  explicit TriggerMachine(const std::vector<Phrase>& phrases) {
    for (const Phrase& p : phrases) add(p);
    // The state's last element says whether the byte before was a word byte.
    start_ = id({}, false);
  }

  ByteMachine machine() {
    ByteMachine m;
    m.start = m.reset = start_;
    m.step = [this](int32_t s, uint8_t b, std::vector<int32_t>& events) {
      return step(s, b, events);
    };
    m.after_special = [this](int32_t) { return start_; };
    return m;
  }

 private:
  void add(const Phrase& p) {
    int32_t at = node();
    const int32_t first = at;
    for (size_t i = 0; i < p.positions.size(); ++i) {
      const int32_t to = node();
      for (const std::string& text : p.positions[i]) {
        int32_t from = at;
        for (size_t j = 0; j < text.size(); ++j) {
          const int32_t next = j + 1 == text.size() ? to : node();
          nodes_[from].edges.emplace_back(static_cast<uint8_t>(text[j]), next);
          from = next;
        }
      }
      if (p.repeat[i]) nodes_[to].empty.push_back(at);
      if (p.optional[i]) nodes_[at].empty.push_back(to);
      at = to;
    }
    nodes_[at].trigger = p.trigger;
    nodes_[at].boundary = p.right;
    (p.left ? left_ : anywhere_).push_back(first);
  }

  int32_t node() {
    nodes_.emplace_back();
    return static_cast<int32_t>(nodes_.size()) - 1;
  }

  void close(std::set<int32_t>& set) const {
    std::vector<int32_t> open(set.begin(), set.end());
    while (!open.empty()) {
      const int32_t n = open.back();
      open.pop_back();
      for (int32_t e : nodes_[n].empty)
        if (set.insert(e).second) open.push_back(e);
    }
  }

  int32_t id(const std::set<int32_t>& set, bool word) {
    std::vector<int32_t> key(set.begin(), set.end());
    key.push_back(word ? 1 : 0);
    auto [it, fresh] = ids_.try_emplace(key, static_cast<int32_t>(sets_.size()));
    if (fresh) {
      if (sets_.size() >= kMaxStates) throw std::length_error("too many automaton states");
      sets_.push_back({set, word});
      memo_.emplace_back();
    }
    return it->second;
  }

  struct Step {
    int32_t to = -2;
    std::vector<int32_t> events;
  };

  int32_t step(int32_t s, uint8_t b, std::vector<int32_t>& events) {
    if (memo_[s].empty()) memo_[s].resize(256);
    if (memo_[s][b].to == -2) {
      Step made;
      std::set<int32_t> from = sets_[s].first;
      from.insert(anywhere_.begin(), anywhere_.end());
      if (!sets_[s].second) from.insert(left_.begin(), left_.end());
      close(from);
      std::set<int32_t> to;
      for (int32_t n : from) {
        if (nodes_[n].trigger >= 0 && nodes_[n].boundary && !word_byte(b) &&
            sets_[s].first.count(n))
          made.events.push_back(nodes_[n].trigger);
        for (auto [byte, next] : nodes_[n].edges)
          if (byte == b) to.insert(next);
      }
      close(to);
      for (int32_t n : to)
        if (nodes_[n].trigger >= 0 && !nodes_[n].boundary) made.events.push_back(nodes_[n].trigger);
      made.to = id(to, word_byte(b));
      memo_[s][b] = made;
    }
    const Step& known = memo_[s][b];
    events.insert(events.end(), known.events.begin(), known.events.end());
    return known.to;
  }

  std::vector<NfaNode> nodes_;
  std::vector<int32_t> left_, anywhere_;
  std::map<std::vector<int32_t>, int32_t> ids_;
  std::vector<std::pair<std::set<int32_t>, bool>> sets_;
  std::vector<std::vector<Step>> memo_;
  int32_t start_ = 0;
};

// ---- overlays: what may follow a trigger --------------------------------------------------------

// Modes: Free text without a value; Await, a lead was said and the value must come; Inside a
// rendering; Tail, a rendering is complete and what follows must not change it; Done.
class OverlayMachine {
 public:
  enum Mode : int32_t { kFree, kAwait, kInside, kTail, kDone };

  OverlayMachine(const std::vector<std::string>& renderings,
                 const std::vector<std::string>& values, const std::vector<std::string>& leads,
                 const std::vector<std::string>& tails, bool strict)
      : renderings_(renderings), values_(values), leads_(leads), tails_(tails), strict_(strict) {
    State start{kFree, {}, false};
    start_ = id(start);
    done_ = id({kDone, {}, false});
  }

  ByteMachine machine() {
    ByteMachine m;
    m.start = start_;
    m.reset = done_;
    m.fallback = done_;
    m.step = [this](int32_t s, uint8_t b, std::vector<int32_t>&) { return step(s, b); };
    m.special_ok = [this](int32_t s) {
      return !strict_ || states_[s].mode == kFree || states_[s].mode == kTail ||
             states_[s].mode == kDone;
    };
    m.after_special = [this](int32_t) { return done_; };
    m.done = [this](int32_t s) { return states_[s].mode == kDone; };
    m.favoured = [this](int32_t from, int32_t to) {
      return states_[from].mode != kDone &&
             (states_[to].mode == kInside || states_[to].mode == kTail);
    };
    return m;
  }

 private:
  // Progress in a text: kind (0 value, 1 lead, 2 rendering, 3 tail), index, bytes read.
  using Item = std::array<int32_t, 3>;
  struct State {
    int32_t mode;
    std::vector<Item> items;
    bool word;  // the byte before was a word byte
    bool operator<(const State& o) const {
      return std::tie(mode, items, word) < std::tie(o.mode, o.items, o.word);
    }
  };

  const std::vector<std::string>& list(int32_t kind) const {
    return kind == 0 ? values_ : kind == 1 ? leads_ : kind == 2 ? renderings_ : tails_;
  }

  int32_t id(State s) {
    std::sort(s.items.begin(), s.items.end());
    s.items.erase(std::unique(s.items.begin(), s.items.end()), s.items.end());
    auto [it, fresh] = ids_.try_emplace(s, static_cast<int32_t>(states_.size()));
    if (fresh) {
      if (states_.size() >= kMaxStates) throw std::length_error("too many overlay states");
      states_.push_back(s);
      memo_.emplace_back();
    }
    return it->second;
  }

  int32_t step(int32_t s, uint8_t b) {
    if (memo_[s].empty()) memo_[s].assign(256, -2);
    if (memo_[s][b] == -2) {
      const int32_t to = compute(s, b);
      memo_[s][b] = to;
    }
    return memo_[s][b];
  }

  static bool starts_word(const std::string& text) {
    return word_byte(static_cast<uint8_t>(text[0]));
  }

  void begin(int32_t kind, bool word, std::vector<Item>& items) const {
    for (size_t i = 0; i < list(kind).size(); ++i)
      if (!list(kind)[i].empty() && !(word && starts_word(list(kind)[i])))
        items.push_back({kind, static_cast<int32_t>(i), 0});
  }

  // Items that take the byte; those that end are collected apart.
  void advance(const std::vector<Item>& items, uint8_t b, std::vector<Item>& on,
               std::vector<Item>& ended) const {
    for (Item item : items) {
      const std::string& text = list(item[0])[item[1]];
      if (static_cast<uint8_t>(text[item[2]]) != b) continue;
      ++item[2];
      (static_cast<size_t>(item[2]) == text.size() ? ended : on).push_back(item);
    }
  }

  int32_t compute(int32_t s, uint8_t b) {
    const State from = states_[s];
    const bool word = word_byte(b);
    switch (from.mode) {
      case kDone: return done_;
      case kFree: return from_free(from, b, word);
      case kAwait: return from_await(from, b, word);
      case kInside: return from_inside(from, b, word);
      default: return from_tail(from, b, word);
    }
  }

  int32_t from_free(const State& from, uint8_t b, bool word) {
    // A lead that was complete one byte ago counts once the word has ended.
    std::vector<Item> items;
    bool lead_ended = false;
    for (const Item& item : from.items) {
      const bool complete = static_cast<size_t>(item[2]) == list(item[0])[item[1]].size();
      if (complete && item[0] == 1) lead_ended = lead_ended || !word;
      if (!complete) items.push_back(item);
    }
    if (lead_ended) return from_await({kAwait, {}, from.word}, b, word);
    begin(0, from.word, items);
    begin(1, from.word, items);
    begin(2, from.word, items);
    std::vector<Item> on, ended;
    advance(items, b, on, ended);
    std::vector<Item> rendering, rest;
    for (const Item& item : on) (item[0] == 2 ? rendering : rest).push_back(item);
    bool bad = false, complete = false;
    for (const Item& item : ended) {
      if (item[0] == 0) bad = true;
      if (item[0] == 2) complete = true;
      if (item[0] == 1) {
        const auto last = static_cast<uint8_t>(leads_[item[1]].back());
        if (!word_byte(last)) return id({kAwait, {}, false});
        rest.push_back(item);
      }
    }
    if (complete) return id(tail_state(rendering, ended, word));
    if (bad) return rendering.empty() ? kDead : id({kInside, rendering, word});
    if (ends_sentence(b)) return done_;
    rest.insert(rest.end(), rendering.begin(), rendering.end());
    return id({kFree, rest, word});
  }

  int32_t from_await(const State& from, uint8_t b, bool word) {
    std::vector<Item> items;
    begin(2, from.word, items);
    std::vector<Item> on, ended;
    advance(items, b, on, ended);
    if (!ended.empty()) return id(tail_state(on, ended, word));
    if (!on.empty()) return id({kInside, on, word});
    if (b == ' ' || b == '*' || b == '\n') return id({kAwait, {}, false});
    return kDead;
  }

  int32_t from_inside(const State& from, uint8_t b, bool word) {
    std::vector<Item> on, ended;
    advance(from.items, b, on, ended);
    if (!ended.empty()) return id(tail_state(on, ended, word));
    return on.empty() ? kDead : id({kInside, on, word});
  }

  // After a complete rendering: longer renderings go on; else what follows must not change it.
  State tail_state(const std::vector<Item>& on, const std::vector<Item>& ended, bool word) const {
    std::vector<Item> items;
    for (const Item& item : on)
      if (item[0] == 2) items.push_back(item);
    // A value that ends in a digit can still be changed by "," or " million"; "60 days" cannot.
    bool digit = false;
    for (const Item& item : ended)
      if (item[0] == 2) digit = digit || is_digit(renderings_[item[1]].back());
    if (digit)
      for (size_t i = 0; i < tails_.size(); ++i)
        items.push_back({3, static_cast<int32_t>(i), 0});
    return {kTail, items, word};
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  int32_t from_tail(const State& from, uint8_t b, bool word) {
    std::vector<Item> on, ended;
    advance(from.items, b, on, ended);
    for (const Item& item : ended)
      if (item[0] == 3) return kDead;
    if (!ended.empty()) return id(tail_state(on, ended, word));
    if (!on.empty()) return id({kTail, on, word});
    // The first byte after the value must not glue to it.
    if (from.word && word) return kDead;
    return done_;
  }

  static bool ends_sentence(uint8_t b) { return b == '!' || b == '?' || b == '\n'; }

  std::vector<std::string> renderings_, values_, leads_, tails_;
  bool strict_;
  std::map<State, int32_t> ids_;
  std::vector<State> states_;
  std::vector<std::vector<int32_t>> memo_;
  int32_t start_ = 0, done_ = 0;
};

}  // namespace

std::string compile_triggers(const std::vector<Phrase>& phrases, const Vocabulary& vocabulary) {
  TriggerMachine triggers(phrases);
  const ByteMachine machine = triggers.machine();
  return Composer(machine, vocabulary, 0, false).arena();
}

std::string compile_overlay(const std::vector<std::string>& renderings,
                            const std::vector<std::string>& values,
                            const std::vector<std::string>& leads,
                            const std::vector<std::string>& tails, const Vocabulary& vocabulary,
                            float bonus) {
  OverlayMachine overlay(renderings, values, leads, tails, bonus <= 0);
  const ByteMachine machine = overlay.machine();
  return Composer(machine, vocabulary, bonus, true).arena();
}

}  // namespace zerolayer
