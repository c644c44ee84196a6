// Composition with the vocabulary: what each token does in each state of the byte automaton.
//
// A token's walk from a state is compared with its walk from the state's hub. Where both have met,
// the whole subtree of tokens does the same, so the cost of a state is that of its exceptions.
// Then tokens that act alike everywhere get one class, and the exceptions a place each.
#include "compose.h"

#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "../shared/automaton.h"

namespace zerolayer {
namespace {

constexpr size_t kMaxExceptions = 1u << 25;
constexpr uint64_t kMaxBytes = 1ull << 30;
// Up to here a row for every state is as fast as exceptions, and stays in a core's cache.
constexpr uint64_t kMaxWholeBytes = 1u << 18;

uint64_t pair_key(int32_t a, int32_t b) {
  return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
}

// What a token leads to: a state of the byte automaton, and the set of events on its way.
struct Outcome {
  int32_t state, set;
  bool operator==(const Outcome& o) const { return state == o.state && set == o.set; }
  bool operator!=(const Outcome& o) const { return !(*this == o); }
};

struct Exception {
  int32_t token;
  Outcome to;
};

class Composer {
 public:
  Composer(const ByteDfa& dfa, const HeldVocabulary& vocabulary, float bonus, bool overlay)
      : dfa_(dfa),
        trie_(vocabulary.trie),
        tokens_(vocabulary.tokens.size()),
        bonus_(bonus),
        overlay_(overlay),
        sets_(dfa.sets),
        ids_(dfa.states(), -1),
        path_(trie_.depth + 1) {
    for (size_t i = 0; i < sets_.size(); ++i) set_ids_[sets_[i]] = static_cast<int32_t>(i);
    class_bytes_.resize(dfa.classes);
    for (int32_t b = 0; b < 256; ++b)
      class_bytes_[dfa.byte_class[b]].push_back(static_cast<uint8_t>(b));
    no_word_.assign(tokens_, false);
    for (int32_t b = 0; b < 256; ++b) {
      if (trie_.first[b] < 0 || word_byte(static_cast<uint8_t>(b))) continue;
      const auto& node = trie_.nodes[trie_.first[b]];
      for (int32_t i = node.first_token; i < node.last_token; ++i) no_word_[trie_.order[i]] = true;
    }
    reach(dfa.start);
    reach(dfa.reset);
    if (dfa.done >= 0) reach(dfa.done);
    for (size_t h = 0; h < dfa.hubs.size(); ++h) expand_hub(static_cast<int32_t>(h));
    for (size_t i = 0; i < states_.size(); ++i) expand(states_[i]);
  }

  std::string arena();

 private:
  struct Place {
    int32_t state, hub;     // after the path, from the state and from its hub
    int32_t events, usual;  // events on the path from the state, from the hub
  };

  // The arena has no dead state: a forbidden token that comes all the same ends the overlay.
  int32_t reach(int32_t state) {
    if (state == dfa_.dead) state = dfa_.done;
    if (ids_[state] < 0) {
      ids_[state] = static_cast<int32_t>(states_.size());
      states_.push_back(state);
    }
    return ids_[state];
  }

  int32_t merged(int32_t a, int32_t b) {
    if (a < 0 || a == b) return b;
    if (b < 0) return a;
    auto [known, fresh] = merges_.try_emplace(pair_key(a, b), -1);
    if (fresh) {
      std::vector<int32_t> all = sets_[a];
      all.insert(all.end(), sets_[b].begin(), sets_[b].end());
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      auto [it, first] = set_ids_.try_emplace(all, static_cast<int32_t>(sets_.size()));
      if (first) sets_.push_back(std::move(all));
      known->second = it->second;
    }
    return known->second;
  }

  // Events of one byte on the way: what was pending, and what ends here.
  int32_t passed(int32_t events, int32_t from, uint8_t byte, int32_t to) {
    if (dfa_.pending[from] >= 0 && !word_byte(byte)) events = merged(events, dfa_.pending[from]);
    return dfa_.accept[to] >= 0 ? merged(events, dfa_.accept[to]) : events;
  }

  Outcome ended(int32_t state, int32_t events) const {
    return dfa_.tag[state] == ByteDfa::kSoft ? Outcome{dfa_.dead, -1} : Outcome{state, events};
  }

  void expand_hub(int32_t hub) {
    std::vector<Outcome> row(tokens_);
    std::vector<int32_t> eventful;
    path_[0] = {dfa_.hubs[hub], 0, -1, -1};
    for (const auto& node : trie_.nodes) {
      const Place& from = path_[node.depth];
      Place& to = path_[node.depth + 1];
      to.state = dfa_.next(from.state, node.byte);
      to.events = passed(from.events, from.state, node.byte, to.state);
      for (int32_t i = node.first_token; i < node.first_token + node.own_tokens; ++i) {
        row[trie_.order[i]] = ended(to.state, to.events);
        if (row[trie_.order[i]].set >= 0) eventful.push_back(i);
      }
    }
    for (const int32_t t : trie_.specials) row[t] = {dfa_.special[dfa_.hubs[hub]], -1};
    hub_rows_.push_back(std::move(row));
    eventful_.push_back(std::move(eventful));
    hub_reached_.push_back(false);
  }

  void expand(int32_t s) {
    const int32_t hub = dfa_.hub[s];
    if (!hub_reached_[hub]) {
      hub_reached_[hub] = true;
      for (const Outcome& o : hub_rows_[hub]) reach(o.state);
    }
    const size_t first = exceptions_.size();
    if (s != dfa_.hubs[hub]) {
      for (int32_t i = dfa_.rows[s]; i < dfa_.rows[s + 1]; ++i)
        for (const uint8_t byte : class_bytes_[dfa_.entries[i].first])
          if (trie_.first[byte] >= 0) walk(s, trie_.first[byte], dfa_.entries[i].second);
      if (dfa_.pending[s] >= 0) {
        // Elsewhere the hub's outcome stands and the pending event is added by the step itself,
        // except where the token has events of its own.
        std::array<bool, 256> own{};
        for (int32_t i = dfa_.rows[s]; i < dfa_.rows[s + 1]; ++i)
          for (const uint8_t byte : class_bytes_[dfa_.entries[i].first]) own[byte] = true;
        for (int32_t b = 0; b < 256; ++b)
          if (!own[b] && trie_.first[b] >= 0 && !word_byte(static_cast<uint8_t>(b)))
            add_pending(s, trie_.nodes[trie_.first[b]].first_token,
                        trie_.nodes[trie_.first[b]].last_token);
      }
      const Outcome special{dfa_.special[s], -1};
      for (const int32_t t : trie_.specials) put(t, hub_rows_[hub][t], special);
    }
    std::sort(exceptions_.begin() + static_cast<ptrdiff_t>(first), exceptions_.end(),
              [](const Exception& a, const Exception& b) { return a.token < b.token; });
    exception_rows_.push_back(exceptions_.size());
  }

  void put(int32_t token, const Outcome& usual, const Outcome& own) {
    if (own == usual) return;
    if (exceptions_.size() >= kMaxExceptions)
      throw std::length_error("the tables need more than 256 MB");
    reach(own.state);
    exceptions_.push_back({token, own});
  }

  // Tokens of order[first .. last) whose outcome is the hub's plus the pending event.
  void add_pending(int32_t s, int32_t first, int32_t last) {
    const int32_t hub = dfa_.hub[s];
    const auto& eventful = eventful_[hub];
    for (auto it = std::lower_bound(eventful.begin(), eventful.end(), first);
         it != eventful.end() && *it < last; ++it) {
      const int32_t token = trie_.order[*it];
      const Outcome& usual = hub_rows_[hub][token];
      put(token, usual, {usual.state, merged(dfa_.pending[s], usual.set)});
    }
  }

  // All tokens below a child of the trie's root, whose first byte leads elsewhere than the hub's.
  void walk(int32_t s, int32_t child, int32_t next) {
    const int32_t hub = dfa_.hub[s], hub_state = dfa_.hubs[hub];
    const auto& nodes = trie_.nodes;
    const uint8_t byte = nodes[child].byte;
    // The event that the step adds by itself where nothing else is said.
    const int32_t implied = word_byte(byte) ? -1 : dfa_.pending[s];
    for (int32_t n = child; n < nodes[child].end;) {
      const auto& node = nodes[n];
      Place& to = path_[node.depth + 1];
      if (n == child) {
        to = {next, dfa_.next(hub_state, byte), passed(-1, s, byte, next), -1};
        to.usual = passed(-1, hub_state, byte, to.hub);
      } else {
        const Place& from = path_[node.depth];
        to.state = dfa_.next(from.state, node.byte);
        to.hub = from.state == from.hub ? to.state : dfa_.next(from.hub, node.byte);
        to.events = passed(from.events, from.state, node.byte, to.state);
        to.usual = passed(from.usual, from.hub, node.byte, to.hub);
      }
      for (int32_t i = node.first_token; i < node.first_token + node.own_tokens; ++i) {
        Outcome usual = hub_rows_[hub][trie_.order[i]];
        if (usual.set < 0) usual.set = implied;
        put(trie_.order[i], usual, ended(to.state, to.events));
      }
      if (to.state == to.hub && to.events == (to.usual >= 0 ? to.usual : implied)) {
        if (implied >= 0 && to.usual < 0)
          add_pending(s, node.first_token + node.own_tokens, node.last_token);
        n = node.end;
      } else {
        ++n;
      }
    }
  }

  void classify();
  void place();
  int32_t coded(const Outcome& o);
  void weigh(std::vector<ArenaBias>& bias, std::vector<int32_t>& hub_rows,
             std::vector<int32_t>& bias_rows, std::vector<float>& floors) const;

  size_t first_exception(size_t i) const { return i == 0 ? 0 : exception_rows_[i - 1]; }

  const ByteDfa& dfa_;
  const VocabularyTrie& trie_;
  size_t tokens_;
  float bonus_;
  bool overlay_;
  std::vector<std::vector<int32_t>> sets_;
  std::vector<int32_t> ids_;     // byte state -> arena state, -1: no token ends there
  std::vector<int32_t> states_;  // arena state -> byte state
  std::vector<Place> path_;
  std::unordered_map<std::vector<int32_t>, int32_t, VectorHash> set_ids_;
  std::unordered_map<uint64_t, int32_t> merges_;
  std::vector<std::vector<uint8_t>> class_bytes_;
  std::vector<bool> no_word_;  // tokens that begin with a byte of no word
  std::vector<std::vector<Outcome>> hub_rows_;
  std::vector<std::vector<int32_t>>
      eventful_;  // places in trie order of a hub's tokens with events
  std::vector<bool> hub_reached_;
  std::vector<Exception> exceptions_;   // by arena state, then token
  std::vector<size_t> exception_rows_;  // end of each arena state's
  // Set by classify() and place():
  std::vector<int32_t> class_of_, sample_;  // token -> class, class -> a token of it
  std::vector<int32_t> at_;                 // arena state -> displacement, -1: no exceptions
  std::vector<ArenaCell> cells_;
  std::vector<ArenaPair> pairs_;
  std::unordered_map<uint64_t, int32_t> pair_ids_;
};

// Tokens with one outcome in every hub, and the same exceptions in the same states.
void Composer::classify() {
  std::vector<size_t> ends(tokens_ + 1);
  for (const Exception& e : exceptions_) ++ends[e.token + 1];
  for (size_t t = 0; t < tokens_; ++t) ends[t + 1] += ends[t];
  struct Own {
    int32_t state;
    Outcome to;
    bool operator==(const Own& o) const { return state == o.state && to == o.to; }
  };
  std::vector<Own> own(exceptions_.size());
  {
    std::vector<size_t> at(ends.begin(), ends.end() - 1);
    for (size_t i = 0; i < states_.size(); ++i)
      for (size_t e = first_exception(i); e < exception_rows_[i]; ++e)
        own[at[exceptions_[e].token]++] = {static_cast<int32_t>(i), exceptions_[e].to};
  }
  auto alike = [&](size_t a, size_t b) {
    for (const auto& row : hub_rows_)
      if (row[a] != row[b]) return false;
    return no_word_[a] == no_word_[b] && ends[a + 1] - ends[a] == ends[b + 1] - ends[b] &&
           std::equal(own.begin() + static_cast<ptrdiff_t>(ends[a]),
                      own.begin() + static_cast<ptrdiff_t>(ends[a + 1]),
                      own.begin() + static_cast<ptrdiff_t>(ends[b]));
  };
  std::unordered_multimap<uint64_t, int32_t> known;
  known.reserve(tokens_);
  class_of_.resize(tokens_);
  for (size_t t = 0; t < tokens_; ++t) {
    uint64_t hash = no_word_[t] ? 1 : 2;
    auto mix = [&](uint64_t x) {
      hash = (hash ^ x) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    };
    for (const auto& row : hub_rows_) mix(pair_key(row[t].state, row[t].set));
    for (size_t i = ends[t]; i < ends[t + 1]; ++i) {
      mix(static_cast<uint64_t>(own[i].state));
      mix(pair_key(own[i].to.state, own[i].to.set));
    }
    int32_t found = -1;
    const auto [low, high] = known.equal_range(hash);
    for (auto it = low; it != high && found < 0; ++it)
      if (alike(sample_[it->second], t)) found = it->second;
    if (found < 0) {
      found = static_cast<int32_t>(sample_.size());
      sample_.push_back(static_cast<int32_t>(t));
      known.emplace(hash, found);
    }
    class_of_[t] = found;
  }
}

// Displacements by first fit, longest rows first; 64 displacements are tried at a time.
void Composer::place() {
  const size_t n = states_.size(), classes = std::max<size_t>(1, sample_.size());
  at_.assign(n, -1);
  std::vector<std::vector<std::pair<int32_t, int32_t>>> rows(n);
  std::vector<int32_t> order;
  for (size_t i = 0; i < n; ++i) {
    for (size_t e = first_exception(i); e < exception_rows_[i]; ++e) {
      const int32_t cls = class_of_[exceptions_[e].token];
      if (sample_[cls] == exceptions_[e].token) rows[i].emplace_back(cls, coded(exceptions_[e].to));
    }
    if (rows[i].empty()) continue;
    std::sort(rows[i].begin(), rows[i].end());
    order.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rows[a].size() > rows[b].size(); });
  std::vector<uint64_t> used;  // a bit per cell
  auto window = [&](size_t bit) {
    const size_t word = bit / 64, shift = bit % 64;
    if (word >= used.size()) return uint64_t{0};
    uint64_t bits = used[word] >> shift;
    if (shift != 0 && word + 1 < used.size()) bits |= used[word + 1] << (64 - shift);
    return bits;
  };
  size_t full = 0, length = 0, last = 0;
  for (const int32_t i : order) {
    const auto& row = rows[i];
    while (full < used.size() && used[full] == ~uint64_t{0}) ++full;
    // Rows of one length look on where the last one was placed: before it they rarely fit.
    if (row.size() != length) last = 0;
    length = row.size();
    const size_t lead = static_cast<size_t>(row[0].first);
    size_t at = std::max(last, full * 64 > lead ? full * 64 - lead : 0);
    uint64_t taken;
    while (true) {
      taken = 0;
      for (const auto& [cls, next] : row) {
        taken |= window(at + cls);
        if (taken == ~uint64_t{0}) break;
      }
      if (taken != ~uint64_t{0}) break;
      at += 64;
    }
    last = at;
    at += static_cast<size_t>(__builtin_ctzll(~taken));
    if (at + classes > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      throw std::length_error("the tables have too many cells");
    at_[i] = static_cast<int32_t>(at);
    if (cells_.size() < at + classes) cells_.resize(at + classes, {-1, 0});
    if (used.size() * 64 < cells_.size()) used.resize(cells_.size() / 64 + 1);
    for (const auto& [cls, next] : row) {
      cells_[at + cls] = {i, next};
      used[(at + cls) / 64] |= uint64_t{1} << ((at + cls) % 64);
    }
  }
}

// An outcome as the tables hold it: the state, or with an event a pair beyond the states.
int32_t Composer::coded(const Outcome& o) {
  const int32_t state = ids_[o.state == dfa_.dead ? dfa_.done : o.state];
  if (o.set < 0) return state;
  auto [it, fresh] = pair_ids_.try_emplace(pair_key(state, o.set), 0);
  if (fresh) {
    it->second = static_cast<int32_t>(states_.size() + pairs_.size());
    pairs_.push_back({state, o.set});
  }
  return it->second;
}

// Bias entries of the hubs, then of the states where they differ from their hub's.
void Composer::weigh(std::vector<ArenaBias>& bias, std::vector<int32_t>& hub_rows,
                     std::vector<int32_t>& bias_rows, std::vector<float>& floors) const {
  const float never = -std::numeric_limits<float>::infinity();
  const bool steer = bonus_ > 0;
  auto value = [&](const Outcome& o, int32_t from) {
    if (steer) {
      const bool good = dfa_.tag[from] != ByteDfa::kDone && dfa_.tag[o.state] == ByteDfa::kFavoured;
      return good ? bonus_ : 0.0f;
    }
    return o.state == dfa_.dead ? never : 0.0f;
  };
  auto floor_of = [&](int32_t hub) { return !steer && dfa_.hubs[hub] == dfa_.dead ? never : 0.0f; };
  for (size_t h = 0; h < hub_rows_.size(); ++h) {
    const float floor = floor_of(static_cast<int32_t>(h));
    for (size_t t = 0; t < tokens_; ++t) {
      const float v = value(hub_rows_[h][t], dfa_.hubs[h]);
      if (v != floor) bias.push_back({static_cast<int32_t>(t), v});
    }
    hub_rows.push_back(static_cast<int32_t>(bias.size()));
  }
  bias_rows[0] = hub_rows.back();
  for (size_t i = 0; i < states_.size(); ++i) {
    const int32_t s = states_[i], hub = dfa_.hub[s];
    for (size_t e = first_exception(i); e < exception_rows_[i]; ++e) {
      const Exception& x = exceptions_[e];
      const float v = value(x.to, s);
      if (v != value(hub_rows_[hub][x.token], dfa_.hubs[hub])) bias.push_back({x.token, v});
    }
    bias_rows.push_back(static_cast<int32_t>(bias.size()));
    floors.push_back(floor_of(hub));
  }
}

template <class T>
int64_t append(std::string& out, const std::vector<T>& table) {
  const auto at = static_cast<int64_t>(out.size());
  if (!table.empty())
    out.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(T));
  out.resize((out.size() + 7) / 8 * 8);
  return at;
}

std::string Composer::arena() {
  classify();
  const size_t n = states_.size(), classes = std::max<size_t>(1, sample_.size());
  const bool whole = n * classes * sizeof(int32_t) <= kMaxWholeBytes;
  std::vector<int32_t> rows(hub_rows_.size() * classes, 0);
  for (size_t h = 0; h < hub_rows_.size(); ++h)
    for (size_t c = 0; c < sample_.size(); ++c)
      if (hub_reached_[h]) rows[h * classes + c] = coded(hub_rows_[h][sample_[c]]);
  std::vector<ArenaState> states(n);
  for (size_t i = 0; i < n; ++i) states[i] = {dfa_.hub[states_[i]], -1, dfa_.pending[states_[i]]};
  if (whole) {
    std::vector<int32_t> all(n * classes);
    for (size_t i = 0; i < n; ++i) {
      std::copy_n(rows.begin() + static_cast<ptrdiff_t>(states[i].row * classes), classes,
                  all.begin() + static_cast<ptrdiff_t>(i * classes));
      // A pair stands for the pending event too, which the step adds to hubs' outcomes alone.
      if (states[i].pending >= 0)
        for (size_t c = 0; c < sample_.size(); ++c)
          if (const Outcome& o = hub_rows_[states[i].row][sample_[c]];
              o.set < 0 && no_word_[sample_[c]])
            all[i * classes + c] = coded({o.state, states[i].pending});
      for (size_t e = first_exception(i); e < exception_rows_[i]; ++e)
        all[i * classes + class_of_[exceptions_[e].token]] = coded(exceptions_[e].to);
      states[i] = {static_cast<int32_t>(i), -1, -1};
    }
    rows = std::move(all);
  } else {
    place();
    for (size_t i = 0; i < n; ++i) states[i].cells = at_[i];
  }
  std::vector<int32_t> codes(tokens_);
  for (size_t t = 0; t < tokens_; ++t) codes[t] = 2 * class_of_[t] + (no_word_[t] ? 1 : 0);
  std::vector<int32_t> set_rows{0}, set_items;
  int32_t triggers = 0;
  for (const auto& set : sets_) {
    set_items.insert(set_items.end(), set.begin(), set.end());
    set_rows.push_back(static_cast<int32_t>(set_items.size()));
    for (const int32_t trigger : set) triggers = std::max(triggers, trigger + 1);
  }
  std::vector<uint8_t> flags;
  std::vector<float> floors;
  std::vector<int32_t> hub_of, bias_hubs{0}, bias_rows{0};
  std::vector<ArenaBias> bias;
  if (overlay_) {
    weigh(bias, bias_hubs, bias_rows, floors);
    for (const int32_t s : states_) {
      flags.push_back(dfa_.tag[s] == ByteDfa::kDone ? 1 : 0);
      hub_of.push_back(dfa_.hub[s]);
    }
  }

  ArenaHeader h{};
  h.magic = kArenaMagic;
  h.version = kArenaVersion;
  h.tokens = static_cast<int32_t>(tokens_);
  h.classes = static_cast<int32_t>(classes);
  h.states = static_cast<int32_t>(n);
  h.rows = static_cast<int32_t>(rows.size() / classes);
  h.cells = static_cast<int32_t>(cells_.size());
  h.pairs = static_cast<int32_t>(pairs_.size());
  h.sets = static_cast<int32_t>(sets_.size());
  h.set_items = static_cast<int32_t>(set_items.size());
  h.hubs = static_cast<int32_t>(bias_hubs.size()) - 1;
  h.biases = static_cast<int32_t>(bias.size());
  h.triggers = triggers;
  h.exceptions = static_cast<int32_t>(
      std::count_if(cells_.begin(), cells_.end(), [](const ArenaCell& c) { return c.state >= 0; }));
  h.start = ids_[dfa_.start];
  h.reset = ids_[dfa_.reset];
  h.overlay = overlay_ ? 1 : 0;
  std::string out(sizeof(ArenaHeader), '\0');
  h.at_classes = append(out, codes);
  h.at_states = append(out, states);
  h.at_rows = append(out, rows);
  h.at_cells = append(out, cells_);
  h.at_pairs = append(out, pairs_);
  h.at_set_rows = append(out, set_rows);
  h.at_set_items = append(out, set_items);
  h.at_flags = append(out, flags);
  h.at_floors = append(out, floors);
  h.at_hub_of = append(out, hub_of);
  h.at_hub_rows = append(out, bias_hubs);
  h.at_bias_rows = append(out, bias_rows);
  h.at_bias = append(out, bias);
  if (out.size() > kMaxBytes) throw std::length_error("the tables need more than 1 GiB");
  h.bytes = out.size();
  h.checksum = arena_checksum(reinterpret_cast<const uint8_t*>(out.data()) + sizeof(h),
                              out.size() - sizeof(h));
  std::memcpy(out.data(), &h, sizeof(h));
  return out;
}

}  // namespace

std::string compose(const ByteDfa& dfa, const HeldVocabulary& vocabulary, float bonus,
                    bool overlay) {
  return Composer(dfa, vocabulary, bonus, overlay).arena();
}

}  // namespace zerolayer
