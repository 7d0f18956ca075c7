# SPDX-License-Identifier: MIT
"""Columns by Arrow's C interfaces, read with ctypes as their specification says, and by NumPy, without copies."""

import ctypes
import importlib.util
import json
import pathlib
import pickle
import struct
import tempfile
import unittest
import warnings

import convoy
from in_folder import EXPERIMENT

POINT = ctypes.POINTER
pythonapi = ctypes.pythonapi
pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


# https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html
ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                        ("children", POINT(POINT(ArrowSchema))), ("dictionary", POINT(ArrowSchema)),
                        ("release", ctypes.CFUNCTYPE(None, POINT(ArrowSchema))), ("private_data", ctypes.c_void_p)]
ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                       ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                       ("buffers", POINT(ctypes.c_void_p)), ("children", POINT(POINT(ArrowArray))),
                       ("dictionary", POINT(ArrowArray)), ("release", ctypes.CFUNCTYPE(None, POINT(ArrowArray))),
                       ("private_data", ctypes.c_void_p)]
ArrowArrayStream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, POINT(ArrowArrayStream), POINT(ArrowSchema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, POINT(ArrowArrayStream), POINT(ArrowArray))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, POINT(ArrowArrayStream))),
    ("release", ctypes.CFUNCTYPE(None, POINT(ArrowArrayStream))), ("private_data", ctypes.c_void_p)]


def stream_of(capsule):
    place = pythonapi.PyCapsule_GetPointer(capsule, b"arrow_array_stream")
    return ctypes.cast(place, POINT(ArrowArrayStream)).contents


def bit(place, row):
    return ctypes.string_at(place + row // 8, 1)[0] >> row % 8 & 1


def values(schema, array):
    """The values of a column, and where its buffer of them is."""
    form, rows, buffers = schema.format, array.length, array.buffers
    if form == b"U":
        ends = struct.unpack(f"{rows + 1}q", ctypes.string_at(buffers[1], 8 * (rows + 1)))
        texts = ctypes.string_at(buffers[2], ends[-1])
        found = [texts[ends[row]:ends[row + 1]].decode() for row in range(rows)]
    elif form == b"b":
        found = [bool(bit(buffers[1], row)) for row in range(rows)]
    else:
        code = {b"g": "d", b"l": "q"}[form]
        found = list(struct.unpack(f"{rows}{code}", ctypes.string_at(buffers[1], 8 * rows)))
    assert (array.null_count > 0) == bool(buffers[0]), schema.name
    if buffers[0]:
        found = [value if bit(buffers[0], row) else None for row, value in enumerate(found)]
        assert found.count(None) == array.null_count, schema.name
    return found, buffers[1]


class Reader:
    """Reads what an object offers as a consumer does: the schema, one batch, the end; then releases all."""

    def __init__(self, offering):
        self.capsule = offering.__arrow_c_stream__()
        self.stream = stream_of(self.capsule)
        self.schema, self.array, end = ArrowSchema(), ArrowArray(), ArrowArray()
        assert self.stream.get_schema(self.stream, self.schema) == 0
        assert self.stream.get_next(self.stream, self.array) == 0
        assert self.stream.get_next(self.stream, end) == 0
        assert not end.release
        assert self.schema.format == b"+s" and self.schema.n_children == self.array.n_children
        self.names = [self.schema.children[c].contents.name.decode() for c in range(self.schema.n_children)]

    def column(self, name):
        c = self.names.index(name)
        return values(self.schema.children[c].contents, self.array.children[c].contents)

    def release(self):
        for held in (self.schema, self.array, self.stream):
            held.release(held)
            assert not held.release


SWEEP = {"cluster.nodes.0.count": [1, 2, 4], "strategy.bucket": ["1MiB", "25MiB"], "strategy.overlap": [True, False]}


class Arrow(unittest.TestCase):
    def setUp(self):
        # Points with and without a data set: one of them has an epoch's time, the others have none.
        self.results = convoy.run(EXPERIMENT, sweep={**SWEEP, "training.dataset": [None, {"samples": 1000}]})

    def test_a_reader_of_arrow_finds_the_columns(self):
        reader, columns = Reader(self.results), self.results.columns()
        self.assertEqual(reader.names, list(columns))
        for name in columns:
            self.assertEqual(reader.column(name)[0], columns[name], name)
        forms = {reader.schema.children[c].contents.name.decode(): reader.schema.children[c].contents.format
                 for c in range(len(reader.names))}
        self.assertEqual([forms[name] for name in ("cluster.nodes.0.count", "strategy.bucket", "strategy.overlap",
                                                   "step_time_s", "devices", "fits", "model")],
                         [b"l", b"U", b"b", b"g", b"l", b"b", b"U"])
        self.assertEqual(columns["epoch_time_s"].count(None), len(self.results) // 2)
        reader.release()

    def test_columns_are_those_of_results_csv(self):
        import csv
        with tempfile.TemporaryDirectory() as folder:
            results = convoy.run(EXPERIMENT, sweep=SWEEP, out=folder)
            with open(pathlib.Path(folder, "results.csv"), newline="") as file:
                rows = list(csv.DictReader(file))
        columns = results.columns()
        self.assertEqual(list(columns), list(rows[0]))
        for name, column in columns.items():
            for value, row in zip(column, rows):
                text = row[name]
                if isinstance(value, bool):
                    self.assertEqual(text, str(value).lower())
                elif isinstance(value, (int, float)):
                    self.assertEqual(float(text), value)
                else:
                    self.assertEqual(text, "" if value is None else value)
        for index, run in enumerate(results):
            self.assertEqual(columns["step_time_s"][index], run.step_time_s)
            self.assertEqual(columns["bottleneck_text"][index], run.bottleneck.text)
            self.assertEqual(columns["interval_step_time_s_low"][index] if "interval" in run else None,
                             run.interval.step_time_s[0] if "interval" in run else None)

    def test_nothing_is_copied_and_readers_keep_what_they_read(self):
        first, second = Reader(self.results), Reader(self.results)
        place = first.column("step_time_s")[1]
        self.assertEqual(place, second.column("step_time_s")[1])
        second.release()
        expected = [run.step_time_s for run in self.results]
        del self.results
        first.capsule = None  # the stream goes, the batch stays
        self.assertEqual(first.column("step_time_s"), (expected, place))
        # A reader may move a child out, release its parent, and keep the child.
        c = first.names.index("step_time_s")
        moved = ArrowArray.from_buffer_copy(first.array.children[c].contents)
        first.array.children[c].contents.release = type(moved.release)()
        first.array.release(first.array)
        self.assertEqual(struct.unpack(f"{len(expected)}d", ctypes.string_at(moved.buffers[1], 8 * len(expected))),
                         tuple(expected))
        moved.release(moved)
        first.schema.release(first.schema)

    def test_what_nobody_reads_is_released(self):
        for _ in range(3):
            self.results.__arrow_c_stream__(None)
            self.results.__arrow_c_schema__()
        capsule = self.results.__arrow_c_schema__()
        place = pythonapi.PyCapsule_GetPointer(capsule, b"arrow_schema")
        self.assertEqual(ctypes.cast(place, POINT(ArrowSchema)).contents.format, b"+s")

    def test_no_row(self):
        traffic = convoy.run(EXPERIMENT, set={"cluster.nodes.0.count": 1})[0].timeline().traffic()
        reader = Reader(traffic)
        self.assertEqual(reader.names, ["process", "time_s", "sent_Bps", "received_Bps"])
        self.assertEqual([reader.column(name)[0] for name in reader.names], [[], [], [], []])
        reader.release()

    def test_a_timeline(self):
        timeline = self.results[8].timeline()
        reader = Reader(timeline)
        self.assertEqual(reader.column("end_s")[0], timeline.spans()["end_s"])
        self.assertEqual(reader.column("critical")[0], timeline.spans()["critical"])
        reader.release()

    def test_a_timeline_that_was_cut_says_so(self):
        whole = self.results[8].timeline()
        self.assertEqual(whole.left_out, 0)

        class Cut:
            left_out = 12345
            spans, memory, traffic = whole._timeline.spans, whole._timeline.memory, whole._timeline.traffic

        cut = type(whole)(Cut)
        for columns in (cut.spans, cut.memory, cut.traffic):
            with self.assertWarnsRegex(convoy.ConvoyWarning, "12,345 of its smallest"):
                columns()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            whole.spans()

    def test_pickled_results_are_the_same(self):
        again = pickle.loads(pickle.dumps(self.results))
        self.assertEqual(again.to_json(), self.results.to_json())
        self.assertEqual(convoy.compare(again, self.results).same, len(again))
        self.assertEqual(again[3].timeline().step_time_s, self.results[3].step_time_s)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "NumPy is not installed")
    def test_numpy_looks_at_them_where_they_are(self):
        import numpy
        arrays, reader = self.results.to_numpy(), Reader(self.results)
        for name in ("step_time_s", "devices", "cluster.nodes.0.count"):
            self.assertEqual(arrays[name].__array_interface__["data"], (reader.column(name)[1], True), name)
            self.assertEqual(arrays[name].tolist(), self.results.columns()[name])
        reader.release()
        self.assertEqual(arrays["fits"].dtype, bool)
        self.assertEqual(numpy.isnan(arrays["epoch_time_s"]).sum(), len(self.results) // 2)
        self.assertEqual(arrays["strategy.bucket"].tolist(), self.results.columns()["strategy.bucket"])
        step_times = arrays["step_time_s"]
        expected = [run.step_time_s for run in self.results]
        del self.results, arrays
        self.assertEqual(step_times.tolist(), expected)


class Stubs(unittest.TestCase):
    """__init__.pyi has what the program writes, and what the module has."""

    def test_runs(self):
        import ast
        stub = ast.parse(pathlib.Path(convoy.__file__).with_name("__init__.pyi").read_text())
        members = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                members[node.name] = {item.target.id if isinstance(item, ast.AnnAssign) else item.name
                                      for item in node.body if isinstance(item, (ast.AnnAssign, ast.FunctionDef))}
            elif isinstance(node, ast.FunctionDef):
                members[node.name] = [argument.arg for argument in node.args.args]
        self.assertEqual(sorted(name for name in members if not name.startswith("_")), sorted(convoy.__all__))
        # What is always there, by the schemas that are made of the fields by which it is written.
        written = convoy.show("schema", "results").to_dict()["properties"]["runs"]["items"]["required"]
        self.assertEqual(set(written) - members["Run"], set())
        for name, document in (("Plan", "plan-answer"), ("Comparison", "comparison"), ("Validation", "validation"),
                               ("Diagnosis", "doctor"), ("TraceDiagnosis", "diagnosis")):
            written = set(convoy.show("schema", document).to_dict()["required"]) - {"schema"}
            self.assertEqual(written - members[name], set(), name)
        for name in ("run", "check", "plan", "compare", "validate", "doctor", "diagnose", "show", "from_torch", "calibrate",
                     "save_trace"):
            function = getattr(convoy, name)
            self.assertEqual(members[name], list(function.__code__.co_varnames[:function.__code__.co_argcount]), name)
            self.assertGreater(len(function.__doc__), 30)
        for name in ("Results", "Timeline", "Columns"):
            own = {member for member in vars(getattr(convoy, name)) if not member.startswith("_")}
            self.assertEqual(own - members[name], set(), name)


if __name__ == "__main__":
    unittest.main()
