// SPDX-License-Identifier: MIT
#include "tests/cli/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "sim/run/store/store.h"

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void redirect(int descriptor, const fs::path& file) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
}

}  // namespace

Workplace::Workplace() {
  std::string name = (fs::temp_directory_path() / "convoy-test-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Workplace::~Workplace() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::string Workplace::file(const std::string& name, const std::string& content) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << content;
  return name;
}

std::string Workplace::read(const std::string& name) const {
  REQUIRE_MESSAGE(fs::exists(path_ / name), name);
  return content_of(path_ / name);
}

Finished Workplace::convoy(const std::vector<std::string>& arguments) const {
  return run(CONVOY_PROGRAM, arguments);
}

Finished Workplace::run(const std::string& program, const std::vector<std::string>& arguments) const {
  const fs::path out = path_.string() + ".out", err = path_.string() + ".err";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, err);
    if (::chdir(path_.c_str()) != 0) ::_exit(126);
    ::execvp(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const Finished finished{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(out),
                          content_of(err)};
  fs::remove(out);
  fs::remove(err);
  return finished;
}

Finished Workplace::shell(const std::string& line) const {
  return run("/bin/bash", {"-c", "CONVOY='" CONVOY_PROGRAM "'\n" + line});
}

std::vector<std::string> Workplace::files() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_))
    names.push_back(fs::relative(entry.path(), path_).string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string small_experiment() {
  return R"(experiment: small
model:
  name: toy
  input: [3, 8, 8]
  layers:
    - {name: conv, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}
    - {name: relu, kind: relu}
    - {name: flat, kind: flatten}
    - {name: fc, kind: linear, out_features: 10}
training: {batch_per_device: 8, precision: fp32, optimizer: sgd}
cluster:
  name: lab
  nodes:
    - {name: n, count: 4, server: box}
  fabric: {kind: switch, bandwidth: 10Gbps, latency: 25us}
  servers:
    box: {devices: [{device: ideal, count: 1}], interconnect: {kind: none}, price: 1.00USD/h}
  devices:
    ideal: {peak: {fp32: 10TFLOPS}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: 1.0}
strategy: {kind: data_parallel, sync: all_reduce, algorithm: ring}
)";
}

std::string swept_experiment() {
  return small_experiment() + R"(sweep:
  training.batch_per_device: [8, 16]
  strategy:
    - {kind: data_parallel, sync: all_reduce, algorithm: ring}
    - {kind: data_parallel, sync: parameter_server, servers: 1}
  cluster.nodes.0.count: [1, 2, 4, 8]
)";
}

std::string sweep_over_batches(const std::string& batches) {
  return small_experiment() + "sweep:\n  training.batch_per_device: " + batches +
         "\n  cluster.nodes.0.count: [1, 2, 3, 4]\n";
}

std::string replaced(std::string text, const std::string& old, const std::string& fresh) {
  const std::size_t at = text.find(old);
  REQUIRE_MESSAGE(at != std::string::npos, old);
  return text.replace(at, old.size(), fresh);
}

std::int64_t count_in_store(const Workplace& place, const std::string& folder, const std::string& query) {
  convoy::Database database((place.path() / folder / "results.sqlite").string(),
                            convoy::Database::Mode::write);
  convoy::Statement statement(database, query);
  REQUIRE(statement.step());
  return statement.integer(0);
}

void mark_runs(const Workplace& place, const std::string& folder) {
  convoy::Store store((place.path() / folder / "results.sqlite").string(), convoy::Database::Mode::write);
  for (const auto& [position, key] : store.subject().points) {
    convoy::StoredRun run = store.run(key, false).value();
    run.network_model = "marked";
    store.put(key, run);
  }
}
