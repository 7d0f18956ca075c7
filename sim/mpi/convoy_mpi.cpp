// SPDX-License-Identifier: MIT
// mpirun -np N convoy-mpi run FILE --out DIR [options of `convoy run`]
//
// The sweep is cut into pieces (`convoy run --shard`), more than there are ranks. Rank 0 hands them out as
// ranks become free; what one rank has not answered is given to another when nothing else is left, so that a
// lost rank costs time only. Each rank keeps a store of its own in DIR/.convoy-pieces; at the end rank 0
// joins them (`convoy merge`), which gives the bytes of a run in one process. A job that was ended goes on
// from these stores, whatever number of ranks it had.
#define OMPI_SKIP_MPICXX 1
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
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
constexpr int tag_free = 1, tag_piece = 2, tag_words = 3;
constexpr int no_piece = -1;
constexpr int bad_input = 2;

struct Job {
  std::vector<std::string> options;  ///< for `convoy run`, the file among them
  fs::path out;
  bool fresh = false;
  int rank = 0, ranks = 1;
  int pieces() const { return ranks * pieces_per_rank; }
  fs::path stores() const { return out / ".convoy-pieces"; }
  fs::path folder(int of_rank) const { return stores() / fmt::format("rank-{}", of_rank); }
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

/// What a program says on its standard error.
class Words {
 public:
  Words() : file_(::memfd_create("words", MFD_CLOEXEC)) {}
  ~Words() { ::close(file_); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  int descriptor() const { return file_; }
  void clear() {
    if (::ftruncate(file_, 0) == 0) ::lseek(file_, 0, SEEK_SET);
  }
  std::string text() const {
    constexpr std::size_t most = 4096;
    std::string text(most, '\0');
    const ssize_t size = ::pread(file_, text.data(), most, 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }

 private:
  int file_;
};

/// Starts the program; it ends with this process.
/// @param words where its standard error goes
pid_t start(const std::vector<std::string>& arguments, int words) {
  const std::string name = program();
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  ::execv(name.c_str(), argv.data());
  ::_exit(127);
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int run_to_end(const std::vector<std::string>& arguments, int words = STDERR_FILENO) {
  const pid_t child = start(arguments, words);
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

/// Takes what the ranks of former jobs have finished, however many they were, into the store of the whole,
/// and begins the ranks' folders anew. @returns what went wrong, or 0
int gather(const Job& job) {
  std::vector<std::string> command{"merge", "--store-only", "--out", job.out.string()};
  const std::size_t without = command.size();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(job.stores(), error))
    if (!entry.is_symlink() && fs::exists(entry.path() / "results.sqlite"))
      command.push_back(entry.path().string());
  if (!job.fresh && !fs::is_symlink(job.stores()) && command.size() > without)
    if (const int code = run_to_end(command)) return code;
  fs::remove_all(job.stores(), error);
  if (!error) fs::create_directories(job.out, error);
  if (!error && fs::create_directory(job.stores(), error)) return 0;
  fmt::print(stderr, "convoy-mpi: {}: cannot be made: {}\n", job.stores().string(), error.message());
  return bad_input;
}

/// A rank's store begins with what former jobs have finished: it is there as a whole or not at all.
void seed(const Job& job) {
  const fs::path former = job.out / "results.sqlite", own = job.folder(job.rank);
  const fs::path making = own.string() + ".new";
  std::error_code error;
  fs::create_directory(making, error);
  if (fs::is_regular_file(fs::symlink_status(former)))
    fs::copy_file(former, making / "results.sqlite", error);
  if (error) fs::remove(making / "results.sqlite", error);  // the points are computed again
  fs::rename(making, own, error);
}

void work(const Job& job) {
  int answer[2] = {no_piece, 0};  // the piece that was done, and how it ended
  std::string said;
  for (;;) {
    int piece = no_piece;
    MPI_Send(answer, 2, MPI_INT, 0, tag_free, MPI_COMM_WORLD);
    MPI_Send(said.data(), static_cast<int>(said.size()), MPI_CHAR, 0, tag_words, MPI_COMM_WORLD);
    MPI_Recv(&piece, 1, MPI_INT, 0, tag_piece, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (piece == no_piece) return;
    Words words;
    answer[0] = piece;
    answer[1] = run_to_end(command_of(job, piece), words.descriptor());
    said = words.text();
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

  /// @param said by who did it
  void take_in(int piece, int code, const std::string& said) {
    constexpr int most_failures = 3;
    Piece& state = state_[static_cast<std::size_t>(piece)];
    if (code == 0) {  // points that fail are in the store, with their reasons
      state.done = true;
    } else if (error_ == 0 && (code == bad_input || ++state.failed >= most_failures)) {
      error_ = code;
      fmt::print(stderr, "{}", said);
    }
  }

  /// Answers a rank that is free.
  bool hear() {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, tag_free, MPI_COMM_WORLD, &there, &status);
    if (!there) return false;
    int answer[2];
    MPI_Recv(answer, 2, MPI_INT, status.MPI_SOURCE, tag_free, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Status words;
    MPI_Probe(status.MPI_SOURCE, tag_words, MPI_COMM_WORLD, &words);
    int size = 0;
    MPI_Get_count(&words, MPI_CHAR, &size);
    std::string said(static_cast<std::size_t>(size), '\0');
    MPI_Recv(said.data(), size, MPI_CHAR, status.MPI_SOURCE, tag_words, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (answer[0] != no_piece) take_in(answer[0], answer[1], said);
    const int piece = error_ == 0 ? next() : no_piece;
    if (piece == no_piece) ++home_;
    MPI_Send(&piece, 1, MPI_INT, status.MPI_SOURCE, tag_piece, MPI_COMM_WORLD);
    return true;
  }

  bool look_after_own() {
    int status = 0;
    if (child_ > 0 && ::waitpid(child_, &status, WNOHANG) != child_) return false;
    if (child_ > 0) take_in(own_, exit_code(status), words_.text());
    child_ = -1;
    own_ = error_ == 0 ? next() : no_piece;
    if (own_ == no_piece) return false;
    words_.clear();
    child_ = start(command_of(job_, own_), words_.descriptor());
    return true;
  }

  const Job& job_;
  std::vector<Piece> state_;
  Words words_;
  pid_t child_ = -1;
  int own_ = no_piece, error_ = 0, home_ = 0;
};

/// Joins the ranks' stores. @returns what the whole job ends with
int join(const Job& job) {
  std::vector<std::string> command{"merge", "--out", job.out.string()};
  if (job.fresh) command.push_back("--fresh");
  for (int rank = 0; rank < job.ranks; ++rank)
    if (fs::exists(job.folder(rank) / "results.sqlite")) command.push_back(job.folder(rank).string());
  return run_to_end(command);
}

int lead(const Job& job, bool& all_home) {
  Dealer dealer(job);
  int code = dealer.deal();
  if (code == 0) code = join(job);
  all_home = dealer.dismiss();
  std::error_code error;
  if (code == 0)
    fs::remove_all(job.stores(), error);  // ranks that came late have written to theirs until now
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
  int refused = rank == 0 ? gather(*job) : 0;
  MPI_Bcast(&refused, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (refused != 0) {
    MPI_Finalize();
    return rank == 0 ? refused : 0;
  }
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
