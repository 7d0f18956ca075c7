// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/cli/progress.h"
#include "sim/results/origin.h"
#include "sim/results/result.h"
#include "sim/run/sweep.h"

namespace convoy::inline cli {

/// What the program ends with.
enum class Exit : int {
  done = 0,
  check_failed = 1,
  bad_input = 2,
  does_not_fit = 3,
  out_of_resources = 4,  ///< memory or time of this machine, or of a point
  bug = 70               ///< and 128 + the signal after SIGINT and SIGTERM
};

// One struct a sub-command: its arguments as the command line gives them.

struct RunArguments {
  std::string file;
  std::vector<std::string> settings;  ///< --set
  std::string out;                    ///< "": default_folder()
  bool json = false, trace = false, require_fit = false, fresh = false, full = false, explain = false;
  // Files, and a folder, for what was replayed; "": none.
  std::string tasks, chakra, goal;
  bool monitor = false;                    ///< write monitor.csv
  std::string monitor_every, monitor_for;  ///< as quantities; "": a minute, an epoch or ten intervals
  std::string network_model = "convoy";    ///< or "simgrid"
  std::size_t jobs = 1;
  Shard shard{};
  std::string point_memory, point_time;  ///< as quantities; "": the machine's share, no limit
  Progress::Style progress = Progress::Style::automatic;
};

struct CheckArguments {
  std::string file;
  std::vector<std::string> settings;
  bool prove = false;  ///< that the plans compute what one device computes
  std::size_t jobs = 1;
};

struct PlanArguments {
  std::string file;
  std::vector<std::string> settings;
  std::string out;       ///< "": runs/EXPERIMENT
  std::string prices;    ///< a price table; "": the program's own
  std::string skypilot;  ///< file for the task that rents the choice; "": none
  bool json = false, exhaustive = false;
  std::size_t jobs = 1;
  Progress::Style progress = Progress::Style::automatic;
};

struct StudyArguments {
  std::string file;
  std::vector<std::string> settings;
  std::string out;  ///< "": default_folder()
  bool json = false, fresh = false;
  std::size_t jobs = 1;
  Progress::Style progress = Progress::Style::automatic;
};

struct ShowArguments {
  std::string what;  ///< one of show_subjects()
  std::string name;  ///< "": list them all
  bool json = false, dot = false, svg = false;
  std::string device;  ///< of one model's times; "": none
  std::string precision = "fp32";
  std::string optimizer = "momentum";
  std::int64_t batch = 32;
  std::int64_t ranks = 8, ranks_per_host = 1;  ///< of an algorithm's messages
};

struct CalibrateArguments {
  std::vector<std::string> profiles;
  std::string device;
  std::string experiment;  ///< file whose cluster has the device; "" for one of the catalogue
  std::string catalogue;   ///< folder that the fit of the whole catalogue is written to; "" for one device
  std::string leave_out;   ///< one of leave_out_names; "" for a fit to all rows
};

struct ReproduceArguments {
  std::vector<std::string> names;  ///< of reproductions; empty: all
  bool json = false;
  bool where = false;  ///< for which unknown inputs the claims of theses hold, in place of the comparison
  Progress::Style progress = Progress::Style::automatic;
};

struct ValidateArguments {
  std::string file;  ///< measured rows, CSV
  std::string out;   ///< folder for a page, its numbers and refits; "": none
  bool json = false;
  std::size_t jobs = 1;
  Progress::Style progress = Progress::Style::automatic;
};

struct DoctorArguments {
  std::string file;
  std::vector<std::string> settings;
  std::string prices;  ///< of a plan: a price table; "": the program's own
  std::uint64_t draws = 0, seed = 1;
  bool json = false;
  std::size_t jobs = 1;
  Progress::Style progress = Progress::Style::automatic;
};

struct DiagnoseArguments {
  std::string trace;
  std::string file;         ///< the experiment that the trace is of
  std::string joint_trace;  ///< a file for both steps side by side; "": none
  std::vector<std::string> settings;
  bool json = false, html = false;
  std::size_t jobs = 1;
};

struct FromTorchArguments {
  std::string file;  ///< ONNX
  std::string out;   ///< "": standard output
};

struct ReportArguments {
  std::string folder;  ///< of a finished run
};

struct CompareArguments {
  std::string a, b;  ///< results: folders of runs, stores or results.json
  bool json = false, html = false;
};

struct MergeArguments {
  std::vector<std::string> folders;  ///< of shards
  std::string out;
  bool fresh = false;
  bool store_only = false;  ///< what can be read of the shards, and no results of it
};

struct PartitionArguments {
  std::string graph;
  std::string method = "pardnn";  ///< one of partition_method_names()
  std::uint32_t parts = 0;
  std::string memory;  ///< of a part, as a quantity; "": no limit
  std::string bandwidth = "130GB/s", latency = "25us", host_bandwidth = "12GB/s";
  std::uint64_t seed = 1;
  bool json = false;
};

/// What an experiment came to, for whoever prints it.
struct FinishedRun {
  Results results;
  std::optional<Origin> origin;       ///< nothing in memory
  std::vector<std::string> warnings;  ///< of its models
  bool whole = true;                  ///< false: stopped before all points were done
};

/// Computes what `path` does not have of an experiment, and writes its results there; of a shard only the
/// store.
/// @param path a folder; "": in memory
/// @throws InputError, OutputError; InputError too where all points are wrong
FinishedRun run_points(const Experiment& experiment, const RunArguments& arguments, const std::string& path,
                       const SweepOptions& options);

/// The value of an option that is a quantity above 0; `otherwise` where it is "". @throws InputError
double quantity_option(const char* name, const std::string& text, Dimension dimension, double otherwise);

/// The options of a sweep that its arguments say. @throws InputError
SweepOptions sweep_options(const RunArguments& arguments);

/// What a device's, or an experiment's device's, measured times give. @throws InputError
/// @param told of each trace that was read
CalibrationReport calibrated_device(
    const CalibrateArguments& arguments,
    const std::function<void(const KinetoTrace& trace, const std::string& file)>& told);

// The commands. Data goes to standard output, talk to standard error. @throws InputError, OutputError

Exit run_command(const RunArguments& arguments);
Exit check_command(const CheckArguments& arguments);
Exit plan_command(const PlanArguments& arguments);
Exit study_command(const StudyArguments& arguments);
Exit show_command(const ShowArguments& arguments);
Exit calibrate_command(const CalibrateArguments& arguments);
Exit reproduce_command(const ReproduceArguments& arguments);
Exit validate_command(const ValidateArguments& arguments);
Exit doctor_command(const DoctorArguments& arguments);
Exit diagnose_command(const DiagnoseArguments& arguments);
/// Writes the network of an ONNX file as a model in YAML. @throws InputError
Exit from_torch_command(const FromTorchArguments& arguments);
Exit report_command(const ReportArguments& arguments);
Exit compare_command(const CompareArguments& arguments);
Exit merge_command(const MergeArguments& arguments);
Exit partition_command(const PartitionArguments& arguments);

/// `convoy check DIR`: which points of a results folder are sound. @throws InputError, OutputError
Exit check_folder(const std::string& folder);

/// What `convoy show` prints. @throws InputError
void show(std::ostream& out, const ShowArguments& arguments);
std::vector<std::string> show_subjects();  ///< "models", "devices", ...
/// What there is of a subject; empty where there is no such subject.
std::vector<std::string> names_to_show(const std::string& subject);
std::vector<std::string> partition_method_names();  ///< "pardnn", "heft", ...
std::vector<std::string> reproduction_names();      ///< "single-device", "scaling"

/// Reads the command line and calls the command. What goes wrong ends as one line on standard error.
Exit convoy_main(int argc, char** argv);

}  // namespace convoy::cli
