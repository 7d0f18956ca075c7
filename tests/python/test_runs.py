# SPDX-License-Identifier: MIT
"""Runs of the Python module are the program's, byte for byte."""

import json
import os
import pathlib
import random
import threading
import time
import unittest

import convoy
from in_folder import EXPERIMENT, InFolder


class Runs(InFolder):
    def test_a_run_is_the_commands_byte_for_byte(self):
        results = convoy.run("e.yaml", jobs=1)
        printed = self.program("run", "e.yaml", "--json")
        self.assertEqual(results.to_json(), printed)
        self.assertEqual(results.to_dict(), json.loads(printed))

    def test_settings_and_sweeps_are_those_of_the_command_on_any_number_of_jobs(self):
        for seed in range(8):
            with self.subTest(seed=seed):
                dice = random.Random(seed)
                values = {"strategy.bucket": dice.choice(["1MiB", "25MiB"]),
                          "training.batch_per_device": dice.randint(1, 64),
                          "strategy.overlap": dice.choice([True, False])}
                counts = dice.sample([1, 2, 3, 4, 8], 3)
                results = convoy.run("e.yaml", set=values, sweep={"cluster.nodes.0.count": counts},
                                     jobs=dice.randint(1, 4))
                settings = [f"{path}={str(value).lower() if isinstance(value, bool) else value}"
                            for path, value in values.items()]
                settings.append(f"sweep.cluster.nodes.0.count={json.dumps(counts)}")
                printed = self.program("run", "e.yaml", "--json",
                                       *[part for setting in settings for part in ("--set", setting)])
                self.assertEqual(results.to_json(), printed)

    def test_a_dict_is_read_as_the_file_with_its_content(self):
        of_dict, of_file = convoy.run(EXPERIMENT).to_dict(), convoy.run("e.yaml").to_dict()
        self.assertEqual(of_dict["runs"], of_file["runs"])
        self.assertEqual(of_dict["manifest"]["config_sha256"], of_file["manifest"]["config_sha256"])

    def test_fields_are_attributes(self):
        results = convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 4]})
        self.assertEqual(len(results), 2)
        first = results.to_dict()["runs"][0]
        for name, value in first.items():
            if not isinstance(value, (dict, list)):
                self.assertEqual(getattr(results[0], name), value)
        self.assertEqual(results[1].point["cluster.nodes.0.count"], 4)
        self.assertEqual(results[1].software.framework, first["software"]["framework"])
        self.assertEqual([run.id for run in results[:]], ["1", "2"])
        self.assertEqual(results.columns()["cluster.nodes.0.count"], [1, 4])
        self.assertEqual(results.columns()["step_time_s"], [run.step_time_s for run in results])
        with self.assertRaisesRegex(AttributeError, "there is no 'step_time'; there are id, "):
            results[0].step_time
        self.assertIn("<iframe", results._repr_html_())
        self.assertIn("ring all-reduce", str(results))

    def test_a_folder_is_the_commands_and_is_gone_on_with(self):
        convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 2]}, out="o")
        done = []
        convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 2, 4]}, out="o",
                   progress=lambda done_points, points: done.append((done_points, points)))
        self.assertEqual(done[-1], (1, 1))  # only the third was left
        self.program("run", "e.yaml", "--set", "sweep.cluster.nodes.0.count=[1, 2, 4]", "--out", "p")
        for name in ("results.json", "results.csv", "report.html"):
            self.assertEqual(pathlib.Path("o", name).read_bytes(), pathlib.Path("p", name).read_bytes(), name)

    def test_the_tasks_are_the_commands(self):
        convoy.run("e.yaml", tasks="module.json")
        self.program("run", "e.yaml", "--json", "--tasks", "command.json")
        self.assertEqual(pathlib.Path("module.json").read_bytes(), pathlib.Path("command.json").read_bytes())

    def test_a_timeline_is_the_commands_trace(self):
        results = convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 4]})
        os.chdir("/")  # it is the file's place that counts
        timeline = results[1].timeline()
        folder = pathlib.Path(results[1]._source[0]).parent
        os.chdir(folder)
        self.program("run", "e.yaml", "--set", "cluster.nodes.0.count=4", "--trace", "--out", "traced")
        timeline.save("t.json")
        self.assertEqual(pathlib.Path("t.json").read_bytes(), pathlib.Path("traced/trace.json").read_bytes())
        spans = timeline.spans()
        self.assertEqual(len({len(column) for column in spans.values()}), 1)
        self.assertAlmostEqual(max(spans["end_s"]), results[1].step_time_s)
        of_device = [i for i, thread in enumerate(spans["thread"])
                     if thread.endswith("compute") and spans["process"][i] == spans["process"][0]]
        self.assertAlmostEqual(sum(spans["end_s"][i] - spans["start_s"][i] for i in of_device),
                               results[1].compute_s)
        memory = timeline.memory()
        at = [sum(memory[name][i] for name in memory if name.endswith("_bytes"))
              for i in range(len(memory["time_s"]))]
        self.assertAlmostEqual(max(at), results[1].peak_memory_bytes, delta=1)
        traffic = timeline.traffic()
        self.assertGreater(max(traffic["sent_Bps"]), 0)
        self.assertIn("<svg", timeline._timeline.page())
        self.assertIn("iframe", timeline._repr_html_())
        # Another experiment under the same name is told, and not drawn as if it were the run's.
        pathlib.Path("e.yaml").write_text(json.dumps(dict(EXPERIMENT, training=dict(EXPERIMENT["training"],
                                                                                    batch_per_device=9))))
        with self.assertRaisesRegex(convoy.InputError, "has changed since"):
            results[1].timeline()
        self.assertAlmostEqual(max(convoy.run(EXPERIMENT)[0].timeline().spans()["end_s"]),
                               convoy.run(EXPERIMENT)[0].step_time_s)

    def test_arrows_of_a_trace_lead_from_the_end_of_a_span_to_the_beginning_of_one_that_waits_for_it(self):
        for strategy in ({"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring", "bucket": "1KiB"},
                         {"kind": "pipeline", "stages": 2, "micro_batches": 4},
                         {"kind": "data_parallel", "sync": "parameter_server", "servers": 2}):
            with self.subTest(strategy["kind"]):
                experiment = {**EXPERIMENT, "strategy": strategy}
                experiment["cluster"] = {**EXPERIMENT["cluster"], "nodes": [{"name": "n", "count": 2, "server": "box"}]}
                pathlib.Path("s.yaml").write_text(json.dumps(experiment))
                self.program("run", "s.yaml", "--trace", "--fresh", "--out", "o", "--set",
                             "sweep.training.batch_per_device=[8, 16]")
                events = json.loads(pathlib.Path("o/trace.json").read_text())["traceEvents"]
                spans, arrows = {}, {}
                for event in events:
                    if event["ph"] == "X":
                        spans.setdefault((event["pid"], event["tid"]), []).append(event)
                    elif event["ph"] in "sf":
                        arrows.setdefault(event["id"], []).append(event)
                self.assertGreater(len(arrows), 4)
                across_hosts = 0
                for pair in arrows.values():
                    begin, end = sorted(pair, key=lambda event: event["ph"] == "f")
                    self.assertEqual(begin["ph"] + end["ph"], "sf")
                    across_hosts += begin["pid"] != end["pid"]
                    source, sink = spans[begin["pid"], begin["tid"]], spans[end["pid"], end["tid"]]
                    # Times are written to the nanosecond.
                    self.assertGreaterEqual(end["ts"] - begin["ts"], -0.0011)
                    ends = [round(abs(begin["ts"] - span["ts"] - span["dur"]), 3) <= 0.002 for span in source]
                    begins = [round(end["ts"], 3) == round(span["ts"], 3) for span in sink]
                    if not (any(ends) and any(begins)):  # a message, from its sending's beginning to its receiving's end
                        self.assertIn(round(begin["ts"], 3), [round(span["ts"], 3) for span in source])
                        self.assertTrue(any(abs(end["ts"] - span["ts"] - span["dur"]) <= 0.0021 for span in sink))
                self.assertEqual(across_hosts > 0, strategy["kind"] != "data_parallel" or "servers" in strategy)

    def test_large_arrays_of_the_interpreter_are_not_counted_as_memory_of_a_point(self):
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        held = bytearray(machine // 32)  # pages that nobody touches
        self.assertEqual(len(convoy.run("e.yaml", jobs=64)), 1)  # a point may take a 64th of the machine
        self.assertEqual(len(held), machine // 32)

    def test_other_threads_go_on_while_a_run_is_under_way(self):
        ticks, stop = [], threading.Event()

        def tick():
            while not stop.wait(0.005):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        try:
            # On a fast machine a short run ends between two ticks; where others had to wait, no run would see any.
            for points in (40, 200, 1000, 5000):
                begun = time.monotonic()
                convoy.run("e.yaml", sweep={"training.batch_per_device": list(range(1, points + 1))}, jobs=1)
                ended = time.monotonic()
                during = sum(begun < at < ended for at in ticks)
                if during > 3:
                    break
        finally:
            stop.set()
            thread.join()
        self.assertGreater(during, 3)

    @unittest.skipUnless(__import__("importlib").util.find_spec("pandas"), "pandas is not installed")
    def test_pandas(self):
        frame = convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 4]}).to_pandas()
        self.assertEqual(list(frame["cluster.nodes.0.count"]), [1, 4])
        self.assertEqual(frame["step_time_s"].dtype, float)


if __name__ == "__main__":
    unittest.main()
