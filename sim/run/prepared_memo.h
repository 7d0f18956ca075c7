// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "sim/base/memo.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// A prepared run as the key of what is computed from it alone.
struct PreparedKey {
  std::shared_ptr<const PreparedRun> run;
  bool operator==(const PreparedKey& other) const { return *run == *other.run; }
  std::size_t hash() const;
  std::size_t weight() const;  ///< tasks, endpoints, links and pairs that communicate
};

/// Whether an equal run may be prepared after this one: programs are equal if they are shared, and somebody else
/// keeps all of this run's.
bool may_come_again(const PreparedRun& run);

/// Keeps what was computed from the last prepared runs. Different points may be prepared alike: bucket sizes that lead to
/// the same buckets, or an algorithm by its name and the same one chosen by `auto`.
template <class Value>
class PreparedMemo {
 public:
  /// @param make called with the run, if no equal one is kept
  template <class Make>
  Value of(std::shared_ptr<const PreparedRun> run, Make make) {
    if (!may_come_again(*run)) return make(*run);
    return values_.of({std::move(run)}, [&](const PreparedKey& key) { return make(*key.run); });
  }

 private:
  Memo<PreparedKey, Value> values_{1 << 12};
};

}  // namespace convoy::runs
