# SPDX-License-Identifier: MIT
"""Simulates distributed training of convolutional networks (docs/python.md).

    import convoy
    results = convoy.run("lab.yaml", set={"cluster.nodes": 16})
    results[0].step_time_s

The functions do what the commands of the same names do, with the same engine in this process: the same
values, byte for byte. What is wrong with an input is an InputError with its place.
"""

import collections.abc
import json
import os
import tempfile
import warnings

from . import _convoy
from ._answers import Calibration, Check, Comparison, Diagnosis, Plan, TraceDiagnosis, Validation
from ._inputs import jobs_of, json_of, table_file, texts_of
from ._models import TorchModel, from_torch, save_trace
from ._records import ConvoyWarning, InputError, Record, call, wrapped
from ._results import Columns, Results, Run, Timeline

__all__ = ["Calibration", "Check", "Columns", "Comparison", "ConvoyWarning", "Diagnosis", "InputError", "Plan", "Record",
           "Results", "Run", "Timeline", "TorchModel", "TraceDiagnosis", "Validation", "calibrate", "check", "compare",
           "diagnose", "doctor", "from_torch", "plan", "run", "save_trace", "show", "validate"]
__version__ = _convoy.version

for _name in __all__:  # where users find them, in tracebacks and pickles too
    if _name in globals():
        globals()[_name].__module__ = __name__


def run(experiment, set={}, sweep={}, jobs=None, out=None, progress=None, tasks=None):
    """Simulates an experiment, all points of its sweep, as `convoy run` does.

    experiment  a file's path, or the file's content as a dict
    set         {"cluster.nodes": 16}: values that replace those of the file
    sweep       {"cluster.nodes": [1, 2, 4]}: lists of values to try
    jobs        processes at a time; None: as many as there are cores
    out         a folder for the results, where a later call goes on; None: in memory
    progress    called with the points done and all points
    tasks       a file for every task and message that was replayed, of one point; None: none

    Raises InputError, OSError where the folder cannot be written, and KeyboardInterrupt after Ctrl-C: what
    was done by then is in the folder.
    """
    file, text, settings = texts_of(experiment, set, sweep)
    held, doubts = call(_convoy.run, file, text, settings, jobs_of(jobs), "" if out is None else os.fspath(out),
                        "" if tasks is None else os.fspath(tasks), progress)
    for doubt in doubts:
        warnings.warn(doubt, ConvoyWarning, stacklevel=2)
    # A replay (Run.timeline) reads the same file wherever the interpreter is by then; the objects live as long, since a
    # model of PyTorch's takes its file with it.
    place = file if text else os.path.abspath(file)
    return Results(held, (place, text, settings, (experiment, dict(set), dict(sweep))))


def check(experiment, set={}, sweep={}, jobs=None):
    """Reads and plans an experiment without simulating it, as `convoy check` does."""
    file, text, settings = texts_of(experiment, set, sweep)
    return Check(json.loads(call(_convoy.check, file, text, settings, jobs_of(jobs))))


def plan(experiment, set={}, jobs=None, out=None, prices=None, exhaustive=False, progress=None):
    """What to rent for a goal, as `convoy plan` does; `choice` is None where nothing meets the constraints.

    out     a folder for plan.json and report.html; None: nothing is written
    prices  a table of prices (CSV) in place of the program's own
    """
    file, text, settings = texts_of(experiment, set, {})
    return Plan(*call(_convoy.plan, file, text, settings, "" if prices is None else os.fspath(prices), exhaustive,
                       jobs_of(jobs), "" if out is None else os.fspath(out), progress))


def compare(a, b):
    """What two results differ in, point by point, and why: Results, or paths of folders, stores or results.json."""
    def side(results, name):
        if isinstance(results, Results):
            return name, results._held
        return os.fspath(results), None
    return Comparison(*call(_convoy.compare, side(a, "a"), side(b, "b")))


def validate(rows, jobs=None):
    """Measured training steps of your own beside their predictions, as `convoy validate` does.

    rows  a CSV file, or its rows: a list of dicts or a DataFrame with those columns
    """
    with table_file(rows) as file:
        return Validation(*call(_convoy.validate, file, jobs_of(jobs)))


def doctor(experiment, set={}, jobs=None, prices=None):
    """Which unmeasured numbers the answer of an experiment or a plan depends on, as `convoy doctor` says.

    prices  of a plan: a table of prices (CSV) in place of the program's own
    """
    file, text, settings = texts_of(experiment, set, {})
    return Diagnosis(*call(_convoy.doctor, file, text, settings, "" if prices is None else os.fspath(prices), jobs_of(jobs)))


def diagnose(trace, experiment, set={}, jobs=None, joint_trace=None):
    """A trace of torch.profiler beside the prediction of its step, as `convoy diagnose` says.

    trace       .json, or packed: .json.gz, with record_shapes=True
    experiment  of one point: the step that the trace is of
    joint_trace  a file for the measured and the predicted step side by side, for https://ui.perfetto.dev; None: none
    """
    file, text, settings = texts_of(experiment, set, {})
    return TraceDiagnosis(*call(_convoy.diagnose, os.fspath(trace), file, text, settings, jobs_of(jobs),
                                "" if joint_trace is None else os.fspath(joint_trace)))


def show(what, name=None):
    """What there is ("models", "devices", "servers", "clusters", "strategies", ...), or one of them in detail.

    A list of names, or the object that `convoy show WHAT NAME --json` prints.
    """
    return wrapped(json.loads(call(_convoy.show, what, "" if name is None else os.fspath(name))))


def calibrate(profiles=None, device=None, experiment=None, trace=None, model=None, training={}):
    """Fits a device's efficiencies to measured times, as `convoy calibrate` does.

    profiles    a file or several: measured speeds (CSV, docs/cost_model.md) or traces of torch.profiler
                (.json, or packed: .json.gz)
    trace       the same, of traces
    device      a name of the catalogue, a device of the cluster of `experiment` (a file), or the keys of one's own:
                {"base": "epyc-7763", "sms": 1}
    model       what the first trace is of: its step is then predicted with the device that was fitted, beside the trace
                (Calibration.experiment and .diagnosis)
    training    of that step what differs from {"batch_per_device": that of the trace, "optimizer": "sgd"}
    """
    files = [os.fspath(file) for given in (profiles, trace) if given is not None
             for file in ([given] if isinstance(given, (str, os.PathLike)) else given)]
    if not files or device is None:
        raise TypeError("calibrate needs profiles or a trace, and the device that they are of")
    if model is not None and trace is None:
        raise TypeError("calibrate compares a model with a trace: trace= names none")
    with tempfile.TemporaryDirectory(prefix="convoy-device-") as folder:
        base = {"base": device}
        if isinstance(device, collections.abc.Mapping):
            base, experiment, device = dict(device), os.path.join(folder, "device"), "calibrated"
            with open(experiment, "w") as stream:
                stream.write(json_of({"cluster": {
                    "nodes": [{"name": "n", "count": 1, "server": "own"}], "devices": {"calibrated": base},
                    "servers": {"own": {"devices": [{"device": "calibrated", "count": 1}],
                                        "interconnect": {"kind": "none"}}}}}))
        elif experiment is not None:
            base = {}
        try:
            calibration = Calibration(base, *call(_convoy.calibrate, files, device,
                                                  "" if experiment is None else os.fspath(experiment)))
        except InputError as error:  # what is wrong with the keys is no place in a file of the user's
            raise InputError(str(error).replace(folder + os.sep, "")) from None
    if model is None:
        return calibration
    if not base:
        raise TypeError("calibrate predicts a model's step on a device of the catalogue or on keys, not on one of a file")
    step = {"optimizer": "sgd", **training}
    if "batch_per_device" not in step:
        batches = {row.batch for row in calibration.rows if row.kind == "convolution"}
        if len(batches) != 1:
            raise InputError(f"{files[0]}: its convolutions do not tell how many images a step has; say "
                             "training={'batch_per_device': N}")
        step["batch_per_device"] = int(batches.pop())
    calibration.experiment = {"experiment": "calibrated", "model": model, "cluster": calibration.cluster(),
                              "training": step, "strategy": {"kind": "single"}}
    first = trace if isinstance(trace, (str, os.PathLike)) else list(trace)[0]
    calibration.diagnosis = diagnose(first, calibration.experiment)
    return calibration
