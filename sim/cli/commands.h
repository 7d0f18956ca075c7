// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/calibration/calibration.h"
#include "sim/calibration/kineto_trace.h"
#include "sim/cli/progress.h"
#include "sim/results/origin.h"
#include "sim/results/sweep_results.h"
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

/// What `convoy run` is given.
struct RunArguments {
  std::string file;                      ///< the experiment
  std::vector<std::string> settings;     ///< --set
  std::string out;                       ///< "": default_folder()
  bool json = false;                     ///< print JSON
  bool trace = false;                    ///< write a trace of each run
  bool require_fit = false;              ///< Exit::does_not_fit where a run needs more memory than there is
  bool fresh = false;                    ///< compute everything anew
  bool full = false;                     ///< results of each device and link, not of classes of equal ones
  bool explain = false;                  ///< say what faster parts would gain
  std::string tasks;                     ///< file for the tasks that were replayed; "": none
  std::string chakra;                    ///< folder for execution traces of Chakra; "": none
  std::string goal;                      ///< file for a schedule in GOAL; "": none
  bool monitor = false;                  ///< write monitor.csv
  std::string monitor_every;             ///< a quantity; "": a minute
  std::string monitor_for;               ///< a quantity; "": an epoch or ten intervals
  std::string network_model = "convoy";  ///< or "simgrid"
  std::size_t jobs = 1;                  ///< processes at a time
  Shard shard{};                         ///< which points
  std::string point_memory;              ///< a quantity; "": its share of the machine's
  std::string point_time;                ///< a quantity; "": no limit
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy check` is given.
struct CheckArguments {
  std::string file;                   ///< the experiment
  std::vector<std::string> settings;  ///< --set
  bool prove = false;                 ///< that the plans compute what one device computes
  std::size_t jobs = 1;               ///< processes at a time
};

/// What `convoy plan` is given.
struct PlanArguments {
  std::string file;                   ///< the plan
  std::vector<std::string> settings;  ///< --set
  std::string out;                    ///< "": runs/EXPERIMENT
  std::string prices;                 ///< a price table; "": the program's own
  std::string skypilot;               ///< file for the task that rents the choice; "": none
  bool json = false;                  ///< print JSON
  bool exhaustive = false;            ///< simulate all set-ups
  std::size_t jobs = 1;               ///< processes at a time
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy study` is given.
struct StudyArguments {
  std::string file;                                       ///< the experiment
  std::vector<std::string> settings;                      ///< --set
  std::string out;                                        ///< "": default_folder()
  bool json = false;                                      ///< print JSON
  bool fresh = false;                                     ///< compute everything anew
  std::size_t jobs = 1;                                   ///< processes at a time
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy show` is given.
struct ShowArguments {
  std::string what;                    ///< one of show_subjects()
  std::string name;                    ///< "": list them all
  bool json = false;                   ///< print JSON
  bool dot = false;                    ///< print a drawing for Graphviz
  bool svg = false;                    ///< print a drawing
  std::string device;                  ///< of one model's times; "": none
  std::string precision = "fp32";      ///< of one model's times
  std::string optimizer = "momentum";  ///< of one model's times
  std::int64_t batch = 32;             ///< images of a step, likewise
  std::int64_t ranks = 8;              ///< of an algorithm's messages
  std::int64_t ranks_per_host = 1;     ///< of an algorithm's messages
};

/// What `convoy calibrate` is given.
struct CalibrateArguments {
  std::vector<std::string> profiles;  ///< traces of PyTorch's profiler, and tables of measured times
  std::string device;                 ///< of the catalogue or of `experiment`
  std::string experiment;             ///< file whose cluster has the device; "" for one of the catalogue
  std::string catalogue;  ///< folder that the fit of the whole catalogue is written to; "" for one device
  std::string leave_out;  ///< one of leave_out_names; "" for a fit to all rows
};

/// What `convoy reproduce` is given.
struct ReproduceArguments {
  std::vector<std::string> names;  ///< of reproductions; empty: all
  bool json = false;               ///< print JSON
  bool where = false;  ///< for which unknown inputs the claims of theses hold, in place of the comparison
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy validate` is given.
struct ValidateArguments {
  std::string file;      ///< measured rows, CSV
  std::string out;       ///< folder for a page, its numbers and refits; "": none
  bool json = false;     ///< print JSON
  std::size_t jobs = 1;  ///< processes at a time
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy doctor` is given.
struct DoctorArguments {
  std::string file;                                       ///< an experiment or a plan
  std::vector<std::string> settings;                      ///< --set
  std::string prices;                                     ///< of a plan: a price table; "": the program's own
  std::uint64_t draws = 0;                                ///< of unmeasured numbers; 0: none
  std::uint64_t seed = 1;                                 ///< of the draws
  bool json = false;                                      ///< print JSON
  std::size_t jobs = 1;                                   ///< processes at a time
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy diagnose` is given.
struct DiagnoseArguments {
  std::string trace;                  ///< of PyTorch's profiler
  std::string file;                   ///< the experiment that the trace is of
  std::string joint_trace;            ///< a file for both steps side by side; "": none
  std::vector<std::string> settings;  ///< --set
  bool json = false;                  ///< print JSON
  bool html = false;                  ///< print a page
  std::size_t jobs = 1;               ///< processes at a time
};

/// What `convoy from-torch` is given.
struct FromTorchArguments {
  std::string file;  ///< ONNX
  std::string out;   ///< "": standard output
};

/// What `convoy report` is given.
struct ReportArguments {
  std::string folder;  ///< of a finished run
};

/// What `convoy compare` is given.
struct CompareArguments {
  std::string a;      ///< results: a folder of a run, a store or a results.json
  std::string b;      ///< the others, likewise
  bool json = false;  ///< print JSON
  bool html = false;  ///< print a page
};

/// What `convoy merge` is given.
struct MergeArguments {
  std::vector<std::string> folders;  ///< of shards
  std::string out;                   ///< folder for the joint results
  bool fresh = false;                ///< forget what `out` has
  bool store_only = false;           ///< what can be read of the shards, and no results of it
  Progress::Style progress = Progress::Style::automatic;  ///< how it is shown
};

/// What `convoy partition` is given.
struct PartitionArguments {
  std::string graph;                      ///< operations, or an experiment whose training graph is meant
  std::string method = "pardnn";          ///< one of partition_method_names()
  std::uint32_t parts = 0;                ///< number of devices
  std::string memory;                     ///< of a part, as a quantity; "": no limit
  std::string bandwidth = "130GB/s";      ///< between devices
  std::string latency = "25us";           ///< of a message
  std::string host_bandwidth = "12GB/s";  ///< between a device and its host
  std::uint64_t seed = 1;                 ///< of methods that draw
  bool json = false;                      ///< print JSON
};

class ResultsPlace;

/// What an experiment came to, for whoever prints it.
struct FinishedRun {
  std::shared_ptr<ResultsPlace> place;  ///< where the runs of a large sweep are read
  SweepResults results;                 ///< of its points
  std::optional<Origin> origin;       ///< nothing in memory
  std::vector<std::string> warnings;  ///< of its models
  bool whole = true;                  ///< false: stopped before all points were done
};

/// Computes what `path` does not have of an experiment, and writes its results there; of a shard only the
/// store.
/// @param path a folder; "": in memory
/// @param most_whole of load_sweep
/// @throws InputError, OutputError; InputError too where all points are wrong
FinishedRun run_points(const Experiment& experiment, const RunArguments& arguments, const std::string& path,
                       const SweepOptions& options, std::size_t most_whole = most_kept_whole);

/// The value of an option that is a quantity above 0; `otherwise` where it is "". @throws InputError
double quantity_option(const char* name, const std::string& text, Dimension dimension, double otherwise);

/// The options of a sweep that its arguments say. @throws InputError
SweepOptions sweep_options(const RunArguments& arguments);

/// What a device's, or an experiment's device's, measured times give. @throws InputError
/// @param told of each trace that was read
CalibrationReport calibrated_device(
    const CalibrateArguments& arguments,
    const std::function<void(const KinetoTrace& trace, const std::string& file)>& told);

/// A command. Data goes to standard output, messages to standard error. @throws InputError, OutputError
///@{
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
Exit report_command(const ReportArguments& arguments);
Exit compare_command(const CompareArguments& arguments);
Exit merge_command(const MergeArguments& arguments);
Exit partition_command(const PartitionArguments& arguments);
///@}
/// Writes the network of an ONNX file as a model in YAML. @throws InputError
Exit from_torch_command(const FromTorchArguments& arguments);

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
