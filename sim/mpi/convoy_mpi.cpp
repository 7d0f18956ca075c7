// SPDX-License-Identifier: MIT
// mpirun -np N convoy-mpi run FILE --out DIR [options of `convoy run`]
//
// The sweep is cut into pieces (`convoy run --shard`), more than there are ranks. Rank 0 hands them out as
// ranks become free; what one rank has not answered is given to another when nothing else is left, so that a
// lost rank costs time only. Each rank keeps a store of its own in DIR/.convoy-pieces; at the end rank 0
// joins them (`convoy merge`), which gives the bytes of a run in one process. A job that was ended goes on
// from these stores.
#define OMPI_SKIP_MPICXX 1
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int pieces_per_rank = 8;
constexpr std::chrono::milliseconds nap{5};
constexpr int tag_free = 1, tag_piece = 2;
constexpr int no_piece = -1;
constexpr int bad_input = 2;

struct Job {
  std::vector<std::string> options;  ///< for `convoy run`, the file among them
  fs::path out;
  bool fresh = false;
  int rank = 0, ranks = 1;
  int pieces() const { return ranks * pieces_per_rank; }
  fs::path folder(int of_rank) const { return out / ".convoy-pieces" / fmt::format("rank-{}", of_rank); }
};

std::string program() { return (fs::read_symlink("/proc/self/exe").parent_path() / "convoy").string(); }

/// Nothing, and why on standard error of rank 0, where the command line is wrong.
std::optional<Job> read_arguments(int argc, char** argv, int rank, int ranks) {
  Job job;
  job.rank = rank, job.ranks = ranks;
  const auto wrong = [&](const std::string& why) -> std::optional<Job> {
    if (rank == 0)
      fmt::print(stderr, "convoy-mpi: {}; mpirun -np N convoy-mpi run FILE --out DIR [options]\n", why);
    return std::nullopt;
  };
  if (argc < 3 || std::string(argv[1]) != "run") return wrong("the command is missing");
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--out" && i + 1 < argc)
      job.out = argv[++i];
    else if (word.starts_with("--out="))
      job.out = word.substr(6);
    else if (word == "--fresh")
      job.fresh = true;
    else if (word == "--json" || word == "--trace" || word.starts_with("--shard"))
      return wrong(fmt::format("{} does not go with ranks", word));
    else
      job.options.push_back(word);
  }
  if (job.out.empty()) return wrong("--out DIR is missing");
  if (std::find(job.options.begin(), job.options.end(), "--jobs") == job.options.end())
    job.options.insert(job.options.end(), {"--jobs", "1"});  // a rank is a core
  return job;
}

/// Starts the program; it ends with this process.
pid_t start(const std::vector<std::string>& arguments, bool quiet) {
  const std::string name = program();
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  if (quiet) ::dup2(nowhere, STDERR_FILENO);
  ::execv(name.c_str(), argv.data());
  ::_exit(127);
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int run_to_end(const std::vector<std::string>& arguments, bool quiet) {
  const pid_t child = start(arguments, quiet);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 ? exit_code(status) : 127;
}

std::vector<std::string> command_of(const Job& job, int piece) {
  std::vector<std::string> command{"run"};
  command.insert(command.end(), job.options.begin(), job.options.end());
  command.insert(command.end(), {"--out", job.folder(job.rank).string(), "--shard",
                                 fmt::format("{}/{}", piece + 1, job.pieces())});
  return command;
}

/// A rank's store begins with what a former job has finished.
void seed(const Job& job) {
  const fs::path former = job.out / "results.sqlite", own = job.folder(job.rank);
  std::error_code error;
  fs::create_directories(own, error);
  if (fs::exists(former) && !fs::exists(own / "results.sqlite"))
    fs::copy_file(former, own / "results.sqlite", error);
}

void work(const Job& job) {
  int answer[2] = {no_piece, 0};  // the piece that was done, and how it ended
  for (;;) {
    int piece = no_piece;
    MPI_Send(answer, 2, MPI_INT, 0, tag_free, MPI_COMM_WORLD);
    MPI_Recv(&piece, 1, MPI_INT, 0, tag_piece, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (piece == no_piece) return;
    answer[0] = piece;
    answer[1] = run_to_end(command_of(job, piece), true);
  }
}

/// Rank 0: hands out pieces, and does some itself.
class Dealer {
 public:
  explicit Dealer(const Job& job) : job_(job), state_(static_cast<std::size_t>(job.pieces())) {}

  /// @returns what the first piece that cannot be done ended with, or 0
  int deal() {
    while (!all_done() && error_ == 0) {
      const bool heard = hear(), own = look_after_own();
      if (!heard && !own) std::this_thread::sleep_for(nap);
    }
    if (child_ > 0) {
      ::kill(child_, SIGTERM);
      int status = 0;
      ::waitpid(child_, &status, 0);
    }
    return error_;
  }

  /// Sends all ranks home. @returns false: some of them do not answer
  bool dismiss() {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (home_ + 1 < job_.ranks && std::chrono::steady_clock::now() < patience)
      if (!hear()) std::this_thread::sleep_for(nap);
    return home_ + 1 == job_.ranks;
  }

 private:
  struct Piece {
    bool done = false;
    int given = 0, failed = 0;
  };

  bool all_done() const {
    return std::all_of(state_.begin(), state_.end(), [](const Piece& piece) { return piece.done; });
  }

  /// The piece that was given to the fewest ranks.
  int next() {
    int best = no_piece;
    for (int p = 0; p < job_.pieces(); ++p) {
      const Piece& piece = state_[static_cast<std::size_t>(p)];
      if (!piece.done && (best == no_piece || piece.given < state_[static_cast<std::size_t>(best)].given))
        best = p;
    }
    if (best != no_piece) ++state_[static_cast<std::size_t>(best)].given;
    return best;
  }

  void take_in(int piece, int code) {
    constexpr int most_failures = 3;
    Piece& state = state_[static_cast<std::size_t>(piece)];
    if (code == 0)  // points that fail are in the store, with their reasons
      state.done = true;
    else if (code == bad_input || ++state.failed >= most_failures)
      error_ = code;
  }

  /// Answers a rank that is free.
  bool hear() {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag_free, MPI_COMM_WORLD, &there, &status);
    if (!there) return false;
    int answer[2];
    MPI_Recv(answer, 2, MPI_INT, status.MPI_SOURCE, tag_free, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (answer[0] != no_piece) take_in(answer[0], answer[1]);
    const int piece = error_ == 0 ? next() : no_piece;
    if (piece == no_piece) ++home_;
    MPI_Send(&piece, 1, MPI_INT, status.MPI_SOURCE, tag_piece, MPI_COMM_WORLD);
    return true;
  }

  bool look_after_own() {
    int status = 0;
    if (child_ > 0 && ::waitpid(child_, &status, WNOHANG) != child_) return false;
    if (child_ > 0) take_in(own_, exit_code(status));
    child_ = -1;
    own_ = error_ == 0 ? next() : no_piece;
    if (own_ == no_piece) return false;
    child_ = start(command_of(job_, own_), true);
    return true;
  }

  const Job& job_;
  std::vector<Piece> state_;
  pid_t child_ = -1;
  int own_ = no_piece, error_ = 0, home_ = 0;
};

/// Joins the ranks' stores. @returns what the whole job ends with
int join(const Job& job) {
  std::vector<std::string> command{"merge", "--out", job.out.string()};
  if (job.fresh) command.push_back("--fresh");
  for (int rank = 0; rank < job.ranks; ++rank)
    if (fs::exists(job.folder(rank) / "results.sqlite")) command.push_back(job.folder(rank).string());
  const int code = run_to_end(command, false);
  std::error_code error;
  if (code == 0) fs::remove_all(job.out / ".convoy-pieces", error);
  return code;
}

int lead(const Job& job, bool& all_home) {
  Dealer dealer(job);
  int code = dealer.deal();
  if (code == 0)
    code = join(job);
  else  // once more, for its words
    run_to_end(command_of(job, 0), false);
  all_home = dealer.dismiss();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::optional<Job> job = read_arguments(argc, argv, rank, ranks);
  if (!job) {
    MPI_Finalize();
    return rank == 0 ? bad_input : 0;
  }
  std::error_code error;
  if (rank == 0 && job->fresh) fs::remove_all(job->out / ".convoy-pieces", error);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!job->fresh) seed(*job);
  if (rank != 0) {
    work(*job);
    MPI_Finalize();
    return 0;
  }
  bool all_home = false;
  const int code = lead(*job, all_home);
  if (!all_home) MPI_Abort(MPI_COMM_WORLD, code);  // a rank is lost: nobody would leave MPI_Finalize
  MPI_Finalize();
  return code;
}
