// Named columns of numbers: the data of a batch, and what a model reads of it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

enum class ColumnType : uint8_t { kInt32, kFloat32 };

struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kInt32;
  size_t width = 0;  // numbers per sequence

  bool operator==(const ColumnSpec&) const = default;
};

// The columns of text: token ids, and for each position the id to predict.
inline constexpr const char* kTokensColumn = "tokens";
inline constexpr const char* kTargetsColumn = "targets";
// Optional: the position of each token in its document, counted from 0, if sequences consist of several.
inline constexpr const char* kPositionsColumn = "positions";

// The columns of board positions: planes (planes, squares), the share of each action in the policy to learn, below 0
// for a move that is not legal, and the shares of win, draw and loss for the player to move.
inline constexpr const char* kPlanesColumn = "planes";
inline constexpr const char* kPolicyColumn = "policy";
inline constexpr const char* kOutcomeColumn = "outcome";

// The target of a position that does not count for the loss; kernels::kIgnoreTarget is the same number.
inline constexpr int32_t kNoTarget = -1;

// The columns of some sequences: (sequences, width) each.
class Columns {
 public:
  Columns() = default;
  Columns(const std::vector<ColumnSpec>& specs, size_t sequences) {
    for (const ColumnSpec& spec : specs) {
      columns_.push_back({spec, {}, {}});
      if (spec.type == ColumnType::kInt32) columns_.back().ints.resize(sequences * spec.width);
      if (spec.type == ColumnType::kFloat32) columns_.back().floats.resize(sequences * spec.width);
    }
  }

  // The values of a column, which must exist and have this type.
  std::span<int32_t> ints(std::string_view name) { return find(name).ints; }
  std::span<const int32_t> ints(std::string_view name) const { return const_cast<Columns*>(this)->ints(name); }
  std::span<float> floats(std::string_view name) { return find(name).floats; }
  std::span<const float> floats(std::string_view name) const { return const_cast<Columns*>(this)->floats(name); }

  bool operator==(const Columns&) const = default;

 private:
  friend class ColumnRefs;
  struct Column {
    ColumnSpec spec;
    std::vector<int32_t> ints;
    std::vector<float> floats;
    bool operator==(const Column&) const = default;
  };
  Column& find(std::string_view name) {
    const auto found =
        std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.spec.name == name; });
    assert(found != columns_.end());
    return *found;
  }

  std::vector<Column> columns_;
};

// Columns of other owners, for a pass over some of their sequences. Allocates nothing.
class ColumnRefs {
 public:
  struct Ref {
    std::string_view name;
    const int32_t* ints = nullptr;
    const float* floats = nullptr;
  };
  static constexpr size_t kMax = 8;

  ColumnRefs() = default;
  ColumnRefs(std::initializer_list<Ref> refs) {
    for (const Ref& ref : refs) add(ref);
  }
  explicit ColumnRefs(const Columns& columns) {
    for (const Columns::Column& c : columns.columns_) add({c.spec.name, c.ints.data(), c.floats.data()});
  }

  void add(const Ref& ref) {
    assert(count_ < kMax);
    refs_[count_++] = ref;
  }

  // A column, which must exist and have this type.
  const int32_t* ints(std::string_view name) const { return find(name).ints; }
  const float* floats(std::string_view name) const { return find(name).floats; }
  // The same for a column that need not exist; null if it does not.
  const int32_t* find_ints(std::string_view name) const {
    const auto found =
        std::find_if(refs_.begin(), refs_.begin() + count_, [&](const Ref& ref) { return ref.name == name; });
    return found == refs_.begin() + count_ ? nullptr : found->ints;
  }

 private:
  const Ref& find(std::string_view name) const {
    size_t i = 0;
    while (i < count_ && refs_[i].name != name) ++i;
    assert(i < count_);
    return refs_[i];
  }

  std::array<Ref, kMax> refs_ = {};
  size_t count_ = 0;
};

}  // namespace quern
