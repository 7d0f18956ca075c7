// SPDX-License-Identifier: MIT
#include "strategies/partition/zoltan/zoltan_partition.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "sim/base/data_path.h"

namespace convoy::inline partition {
namespace {

std::string program() { return program_beside("convoy-zoltan"); }

std::string request(const Hypergraph& graph, Part count, double epsilon) {
  std::string text = fmt::format("{} {}\n{} {}\n", count, epsilon, graph.weight.size(), graph.nets.size());
  for (const double weight : graph.weight) fmt::format_to(std::back_inserter(text), "{:.9g}\n", weight);
  for (const Hypergraph::Net& net : graph.nets) {
    fmt::format_to(std::back_inserter(text), "{:.9g} {}", net.cost, net.pins.size());
    for (const std::uint32_t pin : net.pins) fmt::format_to(std::back_inserter(text), " {}", pin);
    text += '\n';
  }
  return text;
}

/// Writes `input` to a child's standard input and returns what it answers.
std::string ask(const std::string& path, const std::string& input) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("convoy-zoltan: no socket to talk to it");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("convoy-zoltan: no process for it");
  if (child == 0) {
    dup2(ends[1], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execl(path.c_str(), path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  for (std::size_t sent = 0; sent < input.size();) {
    const ssize_t n = send(ends[0], input.data() + sent, input.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  shutdown(ends[0], SHUT_WR);
  std::string answer;
  char buffer[65536];
  for (ssize_t n; (n = recv(ends[0], buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("convoy-zoltan did not finish");
  return answer;
}

}  // namespace

bool have_zoltan() { return access(program().c_str(), X_OK) == 0; }

Placement partition_by_zoltan(const Hypergraph& graph, Part count, double epsilon) {
  if (!have_zoltan()) throw std::runtime_error("convoy-zoltan is not there: convoy was built without Zoltan");
  std::istringstream answer(ask(program(), request(graph, count, epsilon)));
  std::string line;
  while (std::getline(answer, line) && line != "parts") {
  }
  Placement parts(graph.weight.size());
  for (Part& part : parts)
    if (!(answer >> part) || part >= count) throw std::runtime_error("convoy-zoltan gave no partition");
  return parts;
}

}  // namespace convoy::partition
