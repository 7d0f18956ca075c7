# SPDX-License-Identifier: MIT
"""Results in the process: runs, their columns and time lines."""

import collections.abc
import functools
import json
import os
import warnings

from . import _convoy
from ._records import ConvoyWarning, Record, call, frame, wrapped


class Columns(collections.abc.Mapping):
    """A table: lists of one value a row, by name.

    Readers of Arrow (pyarrow.table, polars.DataFrame, duckdb) take it as it is, without a copy, and so does NumPy.
    """

    def __init__(self, table):
        self._table, self._lists = table, {}

    def __getitem__(self, name):
        if name not in self._lists:
            self._lists[name] = self._table.values(name)
        return self._lists[name]

    def __iter__(self):
        return iter(self._table.names())

    def __len__(self):
        return len(self._table.names())

    def __arrow_c_schema__(self):
        return self._table.arrow_schema()

    def __arrow_c_stream__(self, requested_schema=None):
        """Arrow's PyCapsule interface: all rows in one batch. Another schema than its own is not made."""
        return self._table.arrow_stream()

    def to_numpy(self):
        """Arrays by name: of numbers without a copy (read-only; NaN where there is none), of truths and texts copies."""
        import numpy
        return {name: self._array(numpy, name) for name in self}

    def _array(self, numpy, name):
        buffer = self._table.buffer(name)
        if buffer is not None:
            return numpy.asarray(buffer)
        values = self[name]
        kinds = {type(value) for value in values}
        if kinds == {bool}:
            return numpy.array(values, bool)
        if kinds == {int, type(None)}:
            return numpy.array([numpy.nan if value is None else value for value in values])
        array = numpy.empty(len(values), object)
        array[:] = values
        return array

    def to_pandas(self):
        """As a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(self.to_numpy())

    def __repr__(self):
        return f"<Columns: {len(self._table)} rows of {', '.join(self)}>"


class Timeline:
    """What the streams of a run did in a step (docs/results.md, trace.json); times in s from its beginning.

    In a notebook it is the report's drawing of the streams, of memory and of the network.
    """

    def __init__(self, timeline):
        self._timeline = timeline

    @property
    def step_time_s(self):
        return self._timeline.step_time_s

    @property
    def left_out(self):
        """How many events were left out: a time line has at most 250,000, those on the critical path and the longest first
        (docs/results.md, trace.json)."""
        return self._timeline.left_out

    def _told_whole(self, table):
        if self.left_out:
            warnings.warn(f"timeline: {self.left_out:,} of its smallest spans, points and arrows are left out "
                          "(Timeline.left_out)", ConvoyWarning, stacklevel=3)
        return Columns(table)

    def spans(self):
        """Columns of one value a span: process (a host), thread (a stream), name, start_s, end_s, flops, memory_bytes,
        images, bytes (sent and received), critical (on the step's critical path). Where events were left out (left_out),
        a ConvoyWarning says so; so do memory and traffic."""
        return self._told_whole(self._timeline.spans())

    def memory(self):
        """Columns of one value a change of a device's memory: process, name, time_s, and the bytes of each class."""
        return self._told_whole(self._timeline.memory())

    def traffic(self):
        """Columns of one value a change of what a host exchanges with others: process, time_s, sent_Bps, received_Bps."""
        return self._told_whole(self._timeline.traffic())

    def __arrow_c_stream__(self, requested_schema=None):
        """The spans, for readers of Arrow."""
        return self.spans().__arrow_c_stream__(requested_schema)

    def to_pandas(self):
        """The spans as a pandas.DataFrame."""
        return self.spans().to_pandas()

    def save(self, file):
        """Writes trace.json, for https://ui.perfetto.dev."""
        call(self._timeline.save, os.fspath(file))

    def __repr__(self):
        return f"<Timeline: {len(Columns(self._timeline.spans())['name'])} spans, {self.step_time_s:.6g} s a step>"

    def _repr_html_(self):
        return frame(self._timeline.page(), 40)


class Run(Record):
    """The run of one point: the fields of docs/results.md as attributes, in SI units as named."""

    def __init__(self, fields, source=None):
        super().__init__(fields)
        self._source = source

    def timeline(self):
        """What the streams did in a step: the point is simulated again, and nothing is written. Raises InputError
        where the experiment's file has changed in between so that the step is another."""
        file, text, settings, _ = self._source
        return Timeline(call(_convoy.timeline, file, text, settings, self._fields["id"],
                              self._fields["step_time_s"]))

    def __repr__(self):
        fields = self._fields
        return (f"<Run {fields['id']}: {fields['model']} on {fields['devices']} x {fields['device_type']}, "
                f"{fields['step_time_s']:.6g} s a step>")


class Results(collections.abc.Sequence):
    """The runs of an experiment, in the order of its sweep; `failed` and `manifest` as in results.json."""

    def __init__(self, held, source):
        self._held, self._source = held, source  # what is in the process; JSON is made of it when it is asked for

    @functools.cached_property
    def _fields(self):
        return json.loads(self._held.json())

    @functools.cached_property
    def _runs(self):
        return [Run(run, self._source) for run in self._fields["runs"]]

    def __getitem__(self, index):
        return self._runs[index]

    def __len__(self):
        return len(self._held)

    @property
    def experiment(self):
        return self._fields["experiment"]

    @property
    def failed(self):
        return wrapped(self._fields["failed"])

    @property
    def manifest(self):
        return wrapped(self._fields["manifest"])

    @property
    def schedules(self):
        return wrapped(self._fields.get("schedules", []))

    def to_dict(self):
        """results.json as Python's json module reads it."""
        return self._fields

    def to_json(self):
        """results.json, byte for byte what `convoy run --json` prints."""
        return self._held.json()

    def columns(self):
        """The Columns of results.csv: the point's coordinates, and the runs' numbers and words."""
        return Columns(self._held.table())

    arrow = columns

    def __arrow_c_schema__(self):
        return self.columns().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema=None):
        """The columns for readers of Arrow, without a copy: pyarrow.table(results), polars.DataFrame(results)."""
        return self.columns().__arrow_c_stream__(requested_schema)

    def to_numpy(self):
        """The columns as arrays of NumPy by name, those of numbers without a copy."""
        return self.columns().to_numpy()

    def to_pandas(self):
        """The columns as a pandas.DataFrame, indexed by the runs' ids."""
        frame_of_runs = self.columns().to_pandas()
        return frame_of_runs.set_index("id", drop=False).rename_axis("run")

    def __str__(self):
        return self._held.words()

    def __repr__(self):
        return f"<Results of {self.experiment}: {len(self)} runs, {self._held.failed()} failed>"

    def _repr_html_(self):
        """The report's page."""
        return frame(self._held.page(), 40)
