// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "sim/run/store/store.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

constexpr const char* file = "results.sqlite";

PointKey key(const std::string& name) { return PointKey::of(name); }

/// 12 kB that hardly repeat themselves.
std::string long_result() {
  std::string result;
  for (int i = 0; i < 500; ++i) result += fmt::format("{{\"{}\": {}}}", i, std::sqrt(i));
  return result;
}

}  // namespace

TEST_CASE("store: equal results are kept once, and those that resemble each other in few bytes") {
  const WorkingFile folder("name", "");
  const std::string result = long_result();
  const auto resembling = [&](int i) { return StoredRun{result + std::to_string(i % 100), "m", {}}; };
  constexpr int points = 300;
  {
    Store store(file, Database::Mode::write);
    for (int i = 0; i < points; ++i) store.put(key(std::to_string(i)), resembling(i));
  }
  CHECK(Database(file, Database::Mode::read).number("SELECT count(*) FROM results") == 100);
  CHECK(std::filesystem::file_size(file) < 8 * result.size());  // of 300 texts, that is, beside the tables
  Store store(file, Database::Mode::read);
  for (int i = 0; i < points; ++i)
    CHECK(store.run(key(std::to_string(i)), false)->result == resembling(i).result);
}

TEST_CASE("store: a damaged result is damage to all points that have it, and to no other") {
  const WorkingFile folder("name", "");
  const StoredRun shared{"{\"a\": 1}", "m", {}}, other{"{\"a\": 2}", "m", {}};
  Store store(file, Database::Mode::write);
  store.put(key("other"), other);
  for (const char* name : {"one", "two"}) store.put(key(name), shared);
  store.commit();
  Database(file, Database::Mode::write)
      .run("UPDATE results SET result = (SELECT result FROM results WHERE rowid = 1) WHERE rowid = 2");
  for (const char* name : {"one", "two"}) {
    CHECK_FALSE(store.run(key(name), false));
    CHECK(store.is_damaged(key(name)));
  }
  CHECK(store.run(key("other"), false)->result == other.result);
  // Made again for one of them, it is there for both.
  store.drop(key("one"));
  store.put(key("one"), shared);
  for (const char* name : {"one", "two"}) CHECK(store.run(key(name), false)->result == shared.result);
  // A sound one stays where the other point goes.
  store.drop(key("one"));
  CHECK(store.run(key("two"), false)->result == shared.result);
}

TEST_CASE("store: with its dictionary lost, results are, and those that are made again are not") {
  const StoredRun one{long_result(), "m", {}}, two{long_result() + '2', "m", {}};
  const PointKey first = key("1"), other = key("2");
  for (const std::string damage : {"DELETE FROM about WHERE name = 'dictionary'",
                                   "UPDATE about SET value = x'37a430ec37a430ec' WHERE name = 'dictionary'",
                                   "UPDATE about SET value = '' WHERE name = 'dictionary'"}) {
    CAPTURE(damage);
    const WorkingFile folder("name", "");
    {
      Store store(file, Database::Mode::write);
      store.put(first, one);
      store.put(other, two);
    }
    Database(file, Database::Mode::write).run(damage);
    Store store(file, Database::Mode::write);
    for (const PointKey& lost : {first, other}) {
      CHECK_FALSE(store.run(lost, false));
      CHECK(store.is_damaged(lost));
      store.drop(lost);
    }
    store.put(other, two);
    store.put(first, one);
    CHECK(store.run(first, false)->result == one.result);
    CHECK(store.run(other, false)->result == two.result);
    CHECK_FALSE(store.is_damaged(first));
  }
}

TEST_CASE("store: while rows are read in one transaction, it and others can change them") {
  const WorkingFile folder("name", "");
  const PointKey a = key("a"), b = key("b"), c = key("c");
  Store store(file, Database::Mode::write);
  store.put(a, {"1", "m", {}});
  store.commit();
  {
    const Store::Reading reading(store);
    CHECK(store.run(a, false)->result == "1");
    Store(file, Database::Mode::write).put(b, {"2", "m", {}});
    CHECK_FALSE(store.run(b, false));  // has been written since
    store.put(c, {"3", "m", {}});
    CHECK(store.run(b, false)->result == "2");
  }
  store.commit();
  CHECK(Store(file, Database::Mode::read).run(c, false)->result == "3");
}

TEST_CASE("store: points of others are taken over, with results that another dictionary has compressed") {
  const StoredRun one{long_result(), "m", "a trace"}, two{long_result() + '2', "m", {}},
      other{std::string(5000, '-'), "n", {}};
  Store a, b;
  a.put(key("1"), one);
  a.put(key("other"), other);
  b.put(key("other"), {"made by others", "n", {}});
  b.put(key("2"), two);
  b.put(key("late"), PointFailure{"time", "took too long"});
  CHECK(a.add_points_of(b) == 0);
  CHECK(a.run(key("1"), true)->trace == one.trace);
  CHECK(a.run(key("2"), false)->result == two.result);
  CHECK(a.run(key("other"), false)->result == other.result);
  CHECK(a.failure(key("late"))->reason == "took too long");
}

TEST_CASE("store: of one that is damaged, points without their results are not taken over") {
  const WorkingFile folder("name", "");
  {
    Store store(file, Database::Mode::write);
    for (int i = 0; i < 10; ++i)
      store.put(key(std::to_string(i)), {long_result() + std::to_string(i / 2), "m", {}});
  }
  Database(file, Database::Mode::write).run("DELETE FROM results WHERE rowid IN (2, 4)");
  Store mended;
  CHECK(mended.salvage(file, file) == 6);
  for (int i = 0; i < 10; ++i) {
    const bool kept = i / 2 != 1 && i / 2 != 3;
    CHECK(mended.run(key(std::to_string(i)), false).has_value() == kept);
    CHECK_FALSE(mended.is_damaged(key(std::to_string(i))));
  }
}

TEST_CASE("store: one that lists points which its sweep does not have is damaged") {
  const WorkingFile folder("name", "");
  StoreSubject subject;
  subject.experiment = "two points";
  subject.sweep = std::make_shared<const SweepPoints>(SweepPoints::listed({{}, {}}));
  subject.points = {{1, key("1")}};
  Store(file, Database::Mode::write).set_subject(subject);
  CHECK(Store(file, Database::Mode::read).subject().points == subject.points);
  subject.points = {{2, key("2")}};
  Store(file, Database::Mode::write).set_subject(subject);
  CHECK_THROWS_AS(Store(file, Database::Mode::read), DamagedStore);
}
