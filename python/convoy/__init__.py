# SPDX-License-Identifier: MIT
"""Simulates distributed training of convolutional networks (docs/python.md).

    import convoy
    results = convoy.run("lab.yaml", set={"cluster.nodes": 16})
    results[0].step_time_s

The functions do what the commands of the same names do, with the same engine in this process: the same
values, byte for byte. What is wrong with an input is an InputError with its place.
"""

import collections.abc
import gzip
import json
import os
import re
import shutil
import tempfile
import warnings
import weakref

from . import _convoy

__all__ = ["Calibration", "Check", "Comparison", "ConvoyWarning", "Diagnosis", "InputError", "Plan", "Results", "Run",
           "Timeline", "TorchModel", "TraceDiagnosis", "Validation", "calibrate", "check", "compare", "diagnose",
           "doctor", "from_torch", "plan", "run", "save_trace", "show", "validate"]
__version__ = _convoy.version


class InputError(ValueError):
    """The input is wrong: `file`, `line` and `column` say where, as far as that is known (else None)."""

    def __init__(self, text):
        super().__init__(text)
        place = re.match(r"(.+?):(\d+):(\d+): (.*)", text, re.DOTALL)
        self.file = place[1] if place else None
        self.line = int(place[2]) if place else None
        self.column = int(place[3]) if place else None
        self.message = place[4] if place else text


class ConvoyWarning(UserWarning):
    """What results rest on that is doubtful, such as parts of a model that were read without."""


class Record(collections.abc.Mapping):
    """An object of the JSON that the command prints; its fields are attributes and items."""

    def __init__(self, fields):
        self._fields = fields

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _wrapped(self._fields[name])
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are {', '.join(self._fields)}") from None

    def __getitem__(self, name):
        return _wrapped(self._fields[name])

    def __iter__(self):
        return iter(self._fields)

    def __len__(self):
        return len(self._fields)

    def __dir__(self):
        return [*super().__dir__(), *self._fields]

    def __repr__(self):
        return f"{type(self).__name__}({self._fields!r})"

    def __eq__(self, other):
        return isinstance(other, Record) and self._fields == other._fields

    __hash__ = None

    def to_dict(self):
        """The object as Python's json module reads it."""
        return self._fields


def _wrapped(value):
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


def _frame(page, height):
    """A page of the program's in a notebook, in a frame of its own so that its style stays there."""
    page = page.replace("&", "&amp;").replace('"', "&quot;")
    return f'<iframe srcdoc="{page}" style="width:100%;height:{height}em;border:0"></iframe>'


class Timeline:
    """What the streams of a run did in a step (docs/results.md, trace.json); times in s from its beginning.

    In a notebook it is the report's drawing of the streams, of memory and of the network.
    """

    def __init__(self, timeline):
        self._timeline = timeline

    @property
    def step_time_s(self):
        return self._timeline.step_time_s

    def spans(self):
        """Lists of one value a span: process (a host), thread (a stream), name, start_s, end_s, flops, memory_bytes,
        images, bytes (sent and received), critical (on the step's critical path)."""
        return self._timeline.spans()

    def memory(self):
        """Lists of one value a change of a device's memory: process, name, time_s, and the bytes of each class."""
        return self._timeline.memory()

    def traffic(self):
        """Lists of one value a change of what a host exchanges with others: process, time_s, sent_Bps, received_Bps."""
        return self._timeline.traffic()

    def to_pandas(self):
        """The spans as a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(self.spans())

    def save(self, file):
        """Writes trace.json, for https://ui.perfetto.dev."""
        _call(self._timeline.save, os.fspath(file))

    def __repr__(self):
        return f"<Timeline: {len(self.spans()['name'])} spans, {self.step_time_s:.6g} s a step>"

    def _repr_html_(self):
        return _frame(self._timeline.page(), 40)


class Run(Record):
    """The run of one point: the fields of docs/results.md as attributes, in SI units as named."""

    def __init__(self, fields, source=None):
        super().__init__(fields)
        self._source = source

    def timeline(self):
        """What the streams did in a step: the point is simulated again, and nothing is written. Raises InputError
        where the experiment's file has changed in between so that the step is another."""
        file, text, settings, _ = self._source
        return Timeline(_call(_convoy.timeline, file, text, settings, self._fields["id"],
                              self._fields["step_time_s"]))

    def __repr__(self):
        fields = self._fields
        return (f"<Run {fields['id']}: {fields['model']} on {fields['devices']} x {fields['device_type']}, "
                f"{fields['step_time_s']:.6g} s a step>")


class Results(collections.abc.Sequence):
    """The runs of an experiment, in the order of its sweep; `failed` and `manifest` as in results.json."""

    def __init__(self, text, origin, source):
        self._text, self._origin = text, origin
        self._fields = json.loads(text)
        self._runs = [Run(run, source) for run in self._fields["runs"]]

    def __getitem__(self, index):
        return self._runs[index]

    def __len__(self):
        return len(self._runs)

    @property
    def experiment(self):
        return self._fields["experiment"]

    @property
    def failed(self):
        return _wrapped(self._fields["failed"])

    @property
    def manifest(self):
        return _wrapped(self._fields["manifest"])

    @property
    def schedules(self):
        return _wrapped(self._fields.get("schedules", []))

    def to_dict(self):
        """results.json as Python's json module reads it."""
        return self._fields

    def to_json(self):
        """results.json, byte for byte what `convoy run --json` prints."""
        return self._text

    def columns(self):
        """Lists of one value a run by name: the point's coordinates, and the runs' numbers and words."""
        columns = {}
        for index, run in enumerate(self._fields["runs"]):
            for name, value in _flat(run):
                columns.setdefault(name, [None] * index).append(value)
            for values in columns.values():
                values.extend([None] * (index + 1 - len(values)))
        return columns

    def to_pandas(self):
        """The columns as a pandas.DataFrame, indexed by the runs' ids."""
        import pandas
        columns = self.columns()
        return pandas.DataFrame(columns, index=columns.get("id", [])).rename_axis("run")

    def __str__(self):
        return _convoy.table(self._text)

    def __repr__(self):
        return f"<Results of {self.experiment}: {len(self)} runs, {len(self._fields['failed'])} failed>"

    def _repr_html_(self):
        """The report's page."""
        return _frame(_convoy.report(self._text), 40)


def _flat(run):
    """What of a run is a single value; the point's coordinates under their paths."""
    for name, value in run.items():
        if name == "point":
            for path, coordinate in value.items():
                yield path, coordinate if not isinstance(coordinate, (dict, list)) else json.dumps(coordinate)
        elif isinstance(value, dict) and name in ("software", "bottleneck", "interval", "staleness", "partition"):
            for inner, single in value.items():
                if isinstance(single, list) and len(single) == 2:
                    yield f"{name}_{inner}_low", single[0]
                    yield f"{name}_{inner}_high", single[1]
                elif not isinstance(single, (dict, list)):
                    yield f"{name}_{inner}", single
        elif not isinstance(value, (dict, list)):
            yield name, value


class Check(Record):
    """What `convoy check` says: `points` with the memory that each needs, or what a plan would try."""


class _Answer(Record):
    """What a command answers: its JSON as fields, its words as a text, and its page in notebooks."""

    def __init__(self, text, page, words):
        super().__init__(json.loads(text))
        self._text, self._page, self._words = text, page, words

    def to_json(self):
        """As the command with --json prints it, byte for byte."""
        return self._text

    def __str__(self):
        return self._words

    def _repr_html_(self):
        return _frame(self._page, 30)


class Plan(_Answer):
    """plan.json: `choice`, `front`, `runners_up` and more (docs/planning.md)."""


class Validation(_Answer):
    """convoy.validate/1 (docs/compare.md): `rows`, `summary`, `terms`, `refits`."""


class Diagnosis(_Answer):
    """convoy.doctor/1 (docs/doctor.md): `runs` with their `inputs`, of a plan `flip` too."""


class TraceDiagnosis(_Answer):
    """convoy.diagnose/1 (docs/diagnose.md): `terms`, `operations`, `remedies`."""


class Comparison(_Answer):
    """convoy.compare/1 (docs/compare.md): `same`, `only_a`, `only_b`, `changed`."""


class Calibration:
    """A device fitted to measured times: `yaml` has its keys, `rows` the measurements beside the fit."""

    def __init__(self, yaml, mean_error, worst_error, rows):
        self.yaml, self.mean_error, self.worst_error = yaml, mean_error, worst_error
        self.rows = _wrapped(json.loads(rows))

    def __repr__(self):
        return f"<Calibration: {len(self.rows)} rows, mean error of the fit {100 * self.mean_error:.1f} %>"


def _call(function, *arguments):
    try:
        return function(*arguments)
    except _convoy.InputErrorText as error:
        text = str(error)
    except _convoy.OutputErrorText as error:
        raise OSError(str(error)) from None
    raise InputError(text)


def _plain(value):
    """Numbers of NumPy and the like as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, collections.abc.Iterable):
        return list(value)
    raise TypeError(f"{value!r} is no value of an experiment")


def _json(value):
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _setting(path, value):
    return f"{path}={value if isinstance(value, str) and _is_plain(value) else _json(value)}"


def _is_plain(text):
    """Whether YAML reads the text, without quotes, as the text or the quantity that it is: "ring", "25MiB"."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./%+-]*", text) or text in ("true", "false", "null"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _experiment(experiment, settings, sweep):
    """File, text and settings as the module takes them; a mapping is read as the text of its JSON."""
    lines = [_setting(path, value) for path, value in settings.items()]
    lines += [_setting("sweep." + path, list(values)) for path, values in sweep.items()]
    if isinstance(experiment, collections.abc.Mapping):
        return "experiment", _json(experiment), lines
    return os.fspath(experiment), "", lines


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
    file, text, settings = _experiment(experiment, set, sweep)
    results, origin, doubts = _call(_convoy.run, file, text, settings, jobs,
                                    "" if out is None else os.fspath(out),
                                    "" if tasks is None else os.fspath(tasks), progress)
    for doubt in doubts:
        warnings.warn(doubt, ConvoyWarning, stacklevel=2)
    # A replay (Run.timeline) reads the same file wherever the interpreter is by then; the objects live as long, since a
    # model of PyTorch's takes its file with it.
    place = file if text else os.path.abspath(file)
    return Results(results, origin, (place, text, settings, (experiment, dict(set), dict(sweep))))


def check(experiment, set={}, sweep={}, jobs=None):
    """Reads and plans an experiment without simulating it, as `convoy check` does."""
    file, text, settings = _experiment(experiment, set, sweep)
    return Check(json.loads(_call(_convoy.check, file, text, settings, jobs)))


def plan(experiment, set={}, jobs=None, out=None, prices=None, exhaustive=False, progress=None):
    """What to rent for a goal, as `convoy plan` does; `choice` is None where nothing meets the constraints.

    out     a folder for plan.json and report.html; None: nothing is written
    prices  a table of prices (CSV) in place of the program's own
    """
    file, text, settings = _experiment(experiment, set, {})
    return Plan(*_call(_convoy.plan, file, text, settings, "" if prices is None else os.fspath(prices), exhaustive,
                       jobs, "" if out is None else os.fspath(out), progress))


def compare(a, b):
    """What two results differ in, point by point, and why: Results, or paths of folders, stores or results.json."""
    def side(results, name):
        if isinstance(results, Results):
            return name, results._text, results._origin
        return os.fspath(results), "", ""
    return Comparison(*_call(_convoy.compare, side(a, "a"), side(b, "b")))


def validate(rows, jobs=None):
    """Measured training steps of your own (a CSV file) beside their predictions, as `convoy validate` does."""
    return Validation(*_call(_convoy.validate, os.fspath(rows), jobs))


def doctor(experiment, set={}, jobs=None, prices=None):
    """Which unmeasured numbers the answer of an experiment or a plan depends on, as `convoy doctor` says.

    prices  of a plan: a table of prices (CSV) in place of the program's own
    """
    file, text, settings = _experiment(experiment, set, {})
    return Diagnosis(*_call(_convoy.doctor, file, text, settings, "" if prices is None else os.fspath(prices), jobs))


def diagnose(trace, experiment, set={}, jobs=None):
    """A trace of torch.profiler beside the prediction of its step, as `convoy diagnose` says.

    trace       .json, or packed: .json.gz, with record_shapes=True
    experiment  of one point: the step that the trace is of
    """
    file, text, settings = _experiment(experiment, set, {})
    return TraceDiagnosis(*_call(_convoy.diagnose, os.fspath(trace), file, text, settings, jobs))


def show(what, name=None):
    """What there is ("models", "devices", "servers", "clusters", "strategies", ...), or one of them in detail.

    A list of names, or the object that `convoy show WHAT NAME --json` prints.
    """
    return _wrapped(json.loads(_call(_convoy.show, what, "" if name is None else os.fspath(name))))


def calibrate(profiles, device, experiment=None):
    """Fits a device's efficiencies to measured times, as `convoy calibrate` does.

    profiles    a file or several: measured speeds (CSV, docs/cost_model.md) or traces of torch.profiler
                (.json, or packed: .json.gz)
    device      of the catalogue, or of the cluster of `experiment` (a file)
    """
    files = [profiles] if isinstance(profiles, (str, os.PathLike)) else profiles
    return Calibration(*_call(_convoy.calibrate, [os.fspath(file) for file in files], device,
                              "" if experiment is None else os.fspath(experiment)))


def save_trace(profiler, file):
    """Writes what torch.profiler.profile recorded as a trace that calibrate reads, packed where `file` ends in .gz.

    For a PyTorch without Kineto (Debian's), whose export_chrome_trace leaves out the shapes that record_shapes=True
    records. Operations of the host alone: on a GPU, export_chrome_trace writes the kernels too.
    """
    file = os.fspath(file)
    events = [{"ph": "X", "cat": "cpu_op", "name": event.name, "pid": 0, "tid": event.thread,
               "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
               "args": {"External id": event.id, "Input Dims": event.input_shapes}} for event in profiler.events()]
    text = json.dumps({"traceEvents": events}, separators=(",", ":"))
    with gzip.open(file, "wt") if file.endswith(".gz") else open(file, "w") as stream:
        stream.write(text)


class TorchModel(collections.abc.Mapping):
    """A model of an experiment, made of a module by from_torch: {"onnx": file}."""

    def __init__(self, folder, name):
        self._name = name
        self._file = os.path.join(folder, name + ".onnx")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __getitem__(self, key):
        return {"onnx": self._file}[key]

    def __iter__(self):
        return iter(("onnx",))

    def __len__(self):
        return 1

    def save(self, file):
        """Keeps the model as an ONNX file, with its weights below 2 GiB, for `model: {onnx: FILE}` and other tools."""
        shutil.copyfile(self._file, file)

    def show(self):
        """Its layers, parameters and multiply-adds, as `convoy show models FILE.onnx --json`."""
        return show("models", self._file)

    def __repr__(self):
        return f"<TorchModel {self._name}>"


def from_torch(module, sample):
    """A PyTorch module as the model of an experiment: convoy.run({..., "model": convoy.from_torch(net, images)}).

    module  a torch.nn.Module; what it computes in training mode counts, auxiliary heads included, whichever mode it is in
    sample  what it is called with: a tensor of images, or a tuple of tensors; sizes count, values do not

    The file that the model stands for is deleted with it (TorchModel.save keeps one). Stochastic depth is left out: it
    costs nothing here. What convoy has no kind of layer for is elementwise, with a ConvoyWarning when it is simulated.

    Raises InputError where PyTorch cannot trace or write the module.
    """
    from . import _torch  # the only one that needs PyTorch

    name = type(module).__name__
    folder = tempfile.mkdtemp(prefix="convoy-torch-")
    model = TorchModel(folder, name)
    try:
        _torch.export(module, sample, model["onnx"])
    except Exception as error:
        raise InputError(f"from_torch: {name} cannot be written as ONNX: {error}") from error
    return model
