// SPDX-License-Identifier: MIT
// Results folders that were damaged, or that somebody else made.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "sim/run/store/database.h"
#include "tests/cli/program.h"

namespace fs = std::filesystem;

namespace {

constexpr std::size_t page_bytes = 4096;

/// Trials of a law: as many as CONVOY_TRIALS says, which scripts/faults sets.
int trials(int otherwise) {
  const char* wanted = std::getenv("CONVOY_TRIALS");
  return wanted ? std::atoi(wanted) : otherwise;
}

std::string small_sweep() {
  return small_experiment() +
         "sweep:\n  training.batch_per_device: [1, 2, 3, 4, 5, 6]\n  cluster.nodes.0.count: [1, 2, 4]\n";
}

bool same_results(const Workplace& place, const std::string& a, const std::string& b) {
  for (const char* name : {"results.json", "results.csv", "report.html"})
    if (place.read(a + '/' + name) != place.read(b + '/' + name)) return false;
  return true;
}

std::int64_t lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// Flips a bit, cuts the end off, clears a page, writes noise or copies one page over another.
std::string damaged(std::string bytes, std::mt19937& random, std::string& how) {
  if (bytes.empty()) return how = "nothing", bytes;
  const std::size_t at = random() % bytes.size(), page = at / page_bytes * page_bytes;
  switch (random() % 5) {
    case 0:
      how = "bit";
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
      how = "cut";
      bytes.resize(at);
      break;
    case 2:
      how = "cleared page";
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page), std::min(page_bytes, bytes.size() - page),
                  '\0');
      break;
    case 3:
      how = "noise";
      for (std::size_t i = at, n = 1 + random() % 200; i < std::min(bytes.size(), at + n); ++i)
        bytes[i] = static_cast<char>(random());
      break;
    default:
      how = "page twice";
      bytes.replace(page, page_bytes,
                    bytes.substr(random() % (bytes.size() / page_bytes + 1) * page_bytes, page_bytes));
  }
  return bytes;
}

}  // namespace

TEST_CASE(
    "store: whatever happens to its bytes, results are those of an undisturbed run or refused in a line") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  const std::string store = place.read("whole/results.sqlite");
  for (int seed = 1; seed <= trials(60); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::string how;
    fs::remove_all(place.path() / "o"), fs::remove_all(place.path() / "m");
    fs::copy(place.path() / "whole", place.path() / "o");
    place.file("o/results.sqlite", damaged(store, random, how));
    const std::string command = std::array{"run", "report", "merge"}[random() % 3];
    CAPTURE(seed);
    CAPTURE(how);
    CAPTURE(command);
    const Finished run = command == "run"      ? place.convoy({"run", "e.yaml", "--out", "o"})
                         : command == "report" ? place.convoy({"report", "o"})
                                               : place.convoy({"merge", "o", "--out", "m"});
    CAPTURE(run.err);
    CHECK((run.exit_code == 0 || run.exit_code == 2));
    CHECK(lines_of(run.err) <= 1);
    if (run.exit_code == 0)
      CHECK(same_results(place, command == "merge" ? "m" : "o", "whole"));
    else
      CHECK(lines_of(run.err) == 1);
    // What a reader refused says how to go on, and that is true.
    const Finished check = place.convoy({"check", "o"});
    CAPTURE(check.err);
    CHECK((check.exit_code == 0 || check.exit_code == 1 || check.exit_code == 2));
    const Finished again = place.convoy({"run", "e.yaml", "--out", "o"});
    CAPTURE(again.err);
    CHECK((again.exit_code == 0 || again.exit_code == 2));
    if (again.exit_code == 0) {
      CHECK(same_results(place, "o", "whole"));
      CHECK(place.convoy({"check", "o"}).out == "small: 18 of 18 points are sound\n");
    } else {
      CHECK(place.convoy({"run", "e.yaml", "--out", "o", "--fresh"}).exit_code == 0);
      CHECK(same_results(place, "o", "whole"));
    }
  }
}

TEST_CASE("store: a damaged row is named, computed again, and alone so") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  fs::copy(place.path() / "whole", place.path() / "o");
  std::string bytes = place.read("o/results.sqlite");
  std::string result;
  {
    convoy::Database database((place.path() / "o/results.sqlite").string(), convoy::Database::Mode::read);
    convoy::Statement last(database, "SELECT result FROM results ORDER BY rowid DESC LIMIT 1");
    REQUIRE(last.step());
    result = last.bytes(0);
  }
  // Pages that were split may have an earlier copy of the row, which nobody reads.
  int copies = 0;
  for (std::size_t at = 0; (at = bytes.find(result, at)) != std::string::npos; ++copies)
    bytes.replace(at, result.size(), result.size(), '\0');  // a single bit of a frame may mean nothing
  REQUIRE(copies > 0);
  place.file("o/results.sqlite", bytes);
  const Finished check = place.convoy({"check", "o"});
  CHECK(check.exit_code == 1);
  CHECK(check.out.starts_with("small: 17 of 18 points are sound\n  point "));
  CHECK(check.out.ends_with(" is damaged\n"));
  const Finished report = place.convoy({"report", "o"});
  CHECK(report.exit_code == 2);
  CHECK(report.err.find("; `convoy check o` says which points are sound, and `convoy run FILE --out o` "
                        "computes the others again\n") != std::string::npos);
  const Finished run = place.convoy({"run", "e.yaml", "--out", "o"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.starts_with("convoy: o/results.sqlite: what it has of point "));
  CHECK(run.err.ends_with(" is damaged and computed again\n"));
  CHECK(same_results(place, "o", "whole"));
}

TEST_CASE("store: what a damaged page leaves is carried to a new store") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  const std::string whole = place.read("whole/results.sqlite");
  int kept = 0;
  for (std::size_t page = page_bytes; page < whole.size(); page += page_bytes) {
    fs::remove_all(place.path() / "o");
    fs::copy(place.path() / "whole", place.path() / "o");
    std::string bytes = whole;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page), page_bytes, '\0');
    place.file("o/results.sqlite", bytes);
    CAPTURE(page / page_bytes);
    const Finished run = place.convoy({"run", "e.yaml", "--out", "o"});
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
    CHECK(same_results(place, "o", "whole"));
    const std::size_t count = run.err.find(" stored runs could be read and are kept");
    if (count != std::string::npos)
      kept = std::max(kept, std::stoi(run.err.substr(run.err.rfind(' ', count - 1) + 1)));
  }
  CHECK(kept >= 15);
}

namespace {

/// What is in a folder, by path: content, where links lead, modes.
std::map<std::string, std::string> state_of(const fs::path& folder) {
  std::map<std::string, std::string> state;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::file_status status = entry.symlink_status();
    std::string text = std::to_string(static_cast<int>(status.type())) + ' ' +
                       std::to_string(static_cast<unsigned>(status.permissions()));
    if (entry.is_symlink())
      text += fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      text += std::to_string(entry.file_size()) + ' ' +
              std::to_string(entry.last_write_time().time_since_epoch().count());
    state[fs::relative(entry.path(), folder).string()] = text;
  }
  return state;
}

/// Fills a folder with what may stand in a received one, under names that convoy uses.
void make_hostile(const fs::path& folder, const fs::path& whole, const fs::path& outside,
                  std::mt19937& random) {
  const auto put = [](const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  };
  const auto text_of = [](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto fill = [&](const fs::path& at, const std::string& name) {
    std::error_code ignored;
    const fs::path good = whole / name;
    std::string how;
    switch (random() % 11) {
      case 0:
        fs::create_symlink(outside / "victim", at, ignored);
        break;
      case 1:
        fs::create_symlink(outside, at, ignored);
        break;
      case 2:
        fs::create_symlink(outside / "new", at, ignored);
        break;
      case 3:
        fs::create_directory(at, ignored);
        put(at / "inside", "x");
        break;
      case 4:
        ::mkfifo(at.c_str(), 0666);
        break;
      case 5:
        put(at, "noise" + std::to_string(random()));
        break;
      case 6:
        fs::create_hard_link(outside / "victim", at, ignored);
        break;
      case 7:
        put(at, fs::exists(good) ? damaged(text_of(good), random, how) : "x");
        fs::permissions(at, random() % 2 ? fs::perms::none : fs::perms::owner_read, ignored);
        break;
      case 8:
        put(at, fs::exists(good) ? damaged(text_of(good), random, how) : "");
        break;
      default:
        if (fs::exists(good)) fs::copy_file(good, at, ignored);
    }
  };
  fs::create_directories(folder);
  for (const char* name : {"results.sqlite", "results.json", "results.csv", "report.html"})
    if (random() % 3)
      fs::copy_file(whole / name, folder / name);
    else
      fill(folder / name, name);
  for (const char* name :
       {"results.sqlite-wal", "results.sqlite-shm", "results.sqlite-journal", "trace.json", "plan.json",
        ".convoy-lock", ".convoy-finished", ".convoy-unfinished", ".convoy-pieces", "other"})
    if (random() % 6 == 0) fill(folder / name, name);
  // A finished set whose list leads elsewhere.
  if (random() % 2 && !fs::exists(fs::symlink_status(folder / ".convoy-finished"))) {
    fs::create_directory(folder / ".convoy-finished");
    const std::vector<std::string> names{
        "../../outside/victim", (outside / "victim").string(), "all", "results.json", "link/victim", "..", "",
        "report.html"};
    std::string list;
    for (int i = 0; i < 4; ++i) list += names[random() % names.size()] + '\n';
    put(folder / ".convoy-finished/names", list);
    fs::create_symlink(outside, folder / ".convoy-finished/link");
    fill(folder / ".convoy-finished/results.json", "results.json");
    fill(folder / ".convoy-finished/report.html", "report.html");
    if (random() % 2) fs::create_symlink(outside, folder / "link");
    if (random() % 2) put(folder / ".convoy-finished/victim", "overwritten");
  }
}

}  // namespace

TEST_CASE("folder: nothing outside a folder that somebody else made is touched, and it is used or refused") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  for (int seed = 1; seed <= trials(80); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    fs::remove_all(place.path() / "o"), fs::remove_all(place.path() / "m");
    fs::remove_all(place.path() / "outside");
    place.file("outside/victim", "precious");
    place.file("outside/folder/results.json", "{\"schema\": \"convoy.results/1\"}");
    make_hostile(place.path() / "o", place.path() / "whole", place.path() / "outside", random);
    const auto before = state_of(place.path() / "outside");
    const std::string command = std::array{
        "run e.yaml --out o",  "run e.yaml --out o --fresh",  "report o", "check o", "merge o --out m",
        "merge whole --out o", "merge o --store-only --out m"}[random() % 7];
    CAPTURE(seed);
    CAPTURE(command);
    const Finished run = place.shell("timeout 20 $CONVOY " + command);
    CAPTURE(run.err);
    CHECK((run.exit_code == 0 || run.exit_code == 1 || run.exit_code == 2));
    if (run.exit_code == 2) CHECK(lines_of(run.err) == 1);
    CHECK(state_of(place.path() / "outside") == before);
    CHECK(place.read("outside/victim") == "precious");
  }
}

TEST_CASE("folder: a results folder is not written through links or hard links") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  for (const char* link : {"ln -s", "ln"}) {
    CAPTURE(link);
    const Finished run =
        place.shell("rm -rf o victim; cp -r whole o; mv o/results.sqlite victim; " + std::string(link) +
                    " $PWD/victim o/results.sqlite; $CONVOY report o; e=$?; cmp victim "
                    "whole/results.sqlite || exit 99; exit $e");
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with("convoy: o/results.sqlite: "));
    CHECK(lines_of(run.err) == 1);
  }
  const Finished fresh =
      place.shell("$CONVOY run e.yaml --out o --fresh >/dev/null && cmp victim whole/results.sqlite");
  CHECK(fresh.exit_code == 0);
  CHECK(same_results(place, "o", "whole"));
}

TEST_CASE("shards: those that cannot be written are merged") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "a", "--shard", "1/2"}).exit_code == 0);
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "b", "--shard", "2/2"}).exit_code == 0);
  // Root may write everywhere but where nobody may.
  const Finished merged = place.shell(
      "chmod -R a-w a b; mkdir m; if ((EUID == 0)); then chmod 777 . m; setpriv --reuid=65534 --regid=65534 "
      "--clear-groups $CONVOY merge a b --out m/o; else $CONVOY merge a b --out m/o; fi; e=$?; chmod -R u+w "
      "a b; "
      "exit $e");
  CAPTURE(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(same_results(place, "m/o", "whole"));
}

TEST_CASE(
    "ranks: a job goes on from the stores of more ranks than it has, damaged ones too, and says what one "
    "said") {
  const Workplace place;
  place.file("e.yaml", small_sweep());
  const Finished there = place.shell("command -v mpirun >/dev/null && [[ -x ${CONVOY%/*}/convoy-mpi ]]");
  if (there.exit_code != 0) return;  // built without MPI
  REQUIRE(place.convoy({"run", "e.yaml", "--out", "whole"}).exit_code == 0);
  const std::string mpi =
      "mpirun --allow-run-as-root --oversubscribe -np 2 ${CONVOY%/*}/convoy-mpi run e.yaml --out ";
  const Finished run = place.shell(
      "for r in 0 1 2 3; do $CONVOY run e.yaml --out o/.convoy-pieces/rank-$r --shard $((r + 1))/5 "
      ">/dev/null; done; "
      "dd if=/dev/zero of=o/.convoy-pieces/rank-3/results.sqlite bs=4096 seek=3 count=1 conv=notrunc "
      "status=none; " +
      mpi + "o");
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  CHECK(same_results(place, "o", "whole"));
  CHECK_FALSE(fs::exists(place.path() / "o/.convoy-pieces"));
  // Damage of a rank's own store that cannot be mended: a folder in its place.
  const Finished wrong = place.shell("mkdir -p p/results.sqlite; " + mpi + "p");
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.err.find("results.sqlite") != std::string::npos);
}
