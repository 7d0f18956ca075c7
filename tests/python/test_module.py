# SPDX-License-Identifier: MIT
"""The Python module says what the program says, byte for byte, and fails as it does."""

import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time
import types
import unittest
import warnings

import convoy

PROGRAM = os.environ["CONVOY"]
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"

EXPERIMENT = {
    "experiment": "small",
    "model": {"name": "toy", "input": [3, 8, 8], "layers": [
        {"name": "conv", "kind": "conv2d", "out_channels": 8, "kernel": 3, "padding": 1},
        {"name": "relu", "kind": "relu"},
        {"name": "flat", "kind": "flatten"},
        {"name": "fc", "kind": "linear", "out_features": 10}]},
    "training": {"batch_per_device": 8, "precision": "fp32", "optimizer": "sgd"},
    "cluster": {
        "name": "lab",
        "nodes": [{"name": "n", "count": 4, "server": "box"}],
        "fabric": {"kind": "switch", "bandwidth": "10Gbps", "latency": "25us"},
        "servers": {"box": {"devices": [{"device": "ideal", "count": 1}], "interconnect": {"kind": "none"}}},
        "devices": {"ideal": {"peak": {"fp32": "10TFLOPS"}, "memory": "16GiB", "memory_bandwidth": "500GB/s",
                              "efficiency": 1.0}}},
    "strategy": {"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"},
}


class InFolder(unittest.TestCase):
    """Each test in an empty folder with the experiment in e.yaml."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("e.yaml").write_text(json.dumps(EXPERIMENT, indent=1))

    def program(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


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


class Errors(InFolder):
    def test_wrong_input_has_its_place_and_the_commands_words(self):
        pathlib.Path("wrong.yaml").write_text("experiment: e\nmodel: resnet50\ntraining: {batch_per_device: -1}\n"
                                              "cluster: {server: dgx2, nodes: 1}\nstrategy: {kind: single}\n")
        done = subprocess.run([PROGRAM, "run", "wrong.yaml", "--json"], capture_output=True, text=True)
        for function in (convoy.run, convoy.check):
            with self.assertRaises(convoy.InputError) as caught:
                function("wrong.yaml")
            self.assertEqual(str(caught.exception) + "\n", done.stderr)
            self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.column),
                             ("wrong.yaml", 3, 30))

    def test_keys_of_a_device_of_ones_own_are_told_without_a_file_that_nobody_wrote(self):
        pathlib.Path("speeds.csv").write_text("")
        with self.assertRaises(convoy.InputError) as caught:
            convoy.calibrate("speeds.csv", {"base": "v100-sxm2-16gb", "clok": "1GHz"})
        self.assertRegex(str(caught.exception), r"^device:1:\d+: devices\.calibrated\.clok: unknown key")

    def test_what_has_no_place_in_a_file(self):
        with self.assertRaises(convoy.InputError) as caught:
            convoy.run("nowhere.yaml")
        self.assertIsNone(caught.exception.line)
        with self.assertRaises(convoy.InputError) as caught:
            convoy.run("e.yaml", set={"strategy.kind": "nothing"})
        self.assertIn("nothing", str(caught.exception))
        with self.assertRaises(convoy.InputError):
            convoy.run({})
        with self.assertRaises(convoy.InputError):
            convoy.show("models", "resnet51")
        with self.assertRaises(convoy.InputError):
            convoy.show("gpus")
        with self.assertRaises(convoy.InputError):
            convoy.compare("e.yaml", "nowhere")
        with self.assertRaises(OSError):
            convoy.run("e.yaml", out="/proc/convoy")
        with self.assertRaises(TypeError):
            convoy.run({"experiment": object()})

    def test_a_point_that_is_wrong_fails_alone(self):
        results = convoy.run("e.yaml", sweep={"training.precision": ["fp32", "fp16"]})
        self.assertEqual(len(results), 1)
        self.assertEqual(results.failed[0].kind, "input")

    def test_an_exception_of_progress_ends_the_run(self):
        def refuse(done, points):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            convoy.run("e.yaml", progress=refuse)
        self.assertEqual(len(convoy.run("e.yaml")), 1)


class Interrupt(InFolder):
    def test_ctrl_c_raises_keyboard_interrupt_and_keeps_what_was_done(self):
        seen = []

        def progress(done, points):
            seen.append(done)
            if done == 3:
                os.kill(os.getpid(), signal.SIGINT)

        batches = list(range(1, 2001))
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            convoy.run("e.yaml", sweep={"training.batch_per_device": batches}, jobs=2, out="o", progress=progress)
        self.assertLess(time.monotonic() - begun, 60)
        kept = json.loads(pathlib.Path("o/results.json").read_text())
        self.assertGreaterEqual(kept["done"], 3)
        self.assertLess(kept["done"], 2000)
        # No worker is left behind, and the process can go on.
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        self.assertEqual(len(convoy.run("e.yaml")), 1)

    def test_a_signal_while_a_point_is_under_way(self):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        self.addCleanup(timer.join)
        with self.assertRaises(KeyboardInterrupt):
            for batch in range(1, 10000):  # one of them is under way after half a second
                convoy.run("e.yaml", set={"training.batch_per_device": batch}, jobs=1)


class Others(InFolder):
    def test_show(self):
        self.assertEqual(convoy.show("models"), json.loads(self.program("show", "models", "--json")))
        self.assertEqual(convoy.show("schema", "experiment").to_dict(),
                         json.loads(self.program("show", "schema", "experiment")))
        shown = convoy.show("models", "ResNet-50")
        self.assertEqual(shown.to_dict(), json.loads(self.program("show", "models", "resnet50", "--json")))

    def test_check(self):
        checked = convoy.check("e.yaml", sweep={"cluster.nodes.0.count": [1, 2]})
        self.assertEqual([point.id for point in checked.points], ["1", "2"])
        results = convoy.run("e.yaml", sweep={"cluster.nodes.0.count": [1, 2]})
        for point, run in zip(checked.points, results):
            self.assertAlmostEqual(point.peak_memory_bytes, run.peak_memory_bytes, delta=1)

    def test_compare(self):
        convoy.run("e.yaml", out="a")
        other = convoy.run("e.yaml", set={"training.batch_per_device": 16}, out="b")
        comparison = convoy.compare("a", "b")
        self.assertEqual(comparison.to_json(), self.program("compare", "a", "b", "--json"))
        self.assertEqual(comparison.changed[0].because, ["training.batch_per_device: 8 -> 16"])
        in_memory = convoy.compare(convoy.run("e.yaml"), other)
        self.assertEqual(in_memory.changed[0].because, ["training.batch_per_device: 8 -> 16"])
        self.assertEqual(in_memory.changed[0].terms.to_dict(), comparison.changed[0].terms.to_dict())

    def test_plan(self):
        plan = {"experiment": "p", "model": "resnet18",
                "training": {"optimizer": "sgd", "dataset": {"samples": 1000000}}, "goal": {"epochs": 1},
                "plan": {"objective": "cost", "servers": ["aws-p3.2xlarge"], "nodes": [1, 2],
                         "batch_per_device": [64],
                         "strategies": [{"kind": "data_parallel", "sync": "all_reduce", "algorithm": "ring"}]}}
        pathlib.Path("p.yaml").write_text(json.dumps(plan))
        answer = convoy.plan("p.yaml")
        self.assertEqual(answer.to_json(), self.program("plan", "p.yaml", "--json"))
        self.assertEqual(answer.choice.servers.to_dict(), {"aws-p3.2xlarge": answer.choice.devices})
        convoy.plan("p.yaml", out="o")
        self.program("plan", "p.yaml", "--out", "p")
        for name in ("plan.json", "report.html"):
            self.assertEqual(pathlib.Path("o", name).read_bytes(), pathlib.Path("p", name).read_bytes(), name)
        self.assertIn("<iframe", answer._repr_html_())
        self.assertIn(str(answer).rstrip(), self.program("plan", "p.yaml", "--out", "p"))

    def test_calibrate(self):
        measured = str(CONFIGS.parent / "results/published/single_device.csv")
        fit = convoy.calibrate(measured, device="k80")
        self.assertEqual(fit.yaml, self.program("calibrate", measured, "--device", "k80"))
        self.assertGreater(len(fit.rows), 10)
        rows = ["device,model,batch,precision,framework,images_per_s,role,source"]
        pathlib.Path("none.csv").write_text("\n".join(rows) + "\n")
        with self.assertRaises(convoy.InputError):
            convoy.calibrate("none.csv", device="k80")

    def test_calibrate_with_the_model_of_a_trace(self):
        trace = CONFIGS.parent / "tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz"
        own = {"base": "epyc-7763", "peak": {"fp32": "78.4GFLOPS"}, "memory_bandwidth": "20GB/s", "sms": 1}
        model = {"name": "resnet18", "input": [3, 32, 32]}
        fit = convoy.calibrate(trace=trace, device=own, model=model, training={"optimizer": "momentum"})
        self.assertEqual(fit.experiment["training"]["batch_per_device"], 8)
        self.assertEqual({key: fit.device[key] for key in own}, own)
        self.assertEqual(convoy.run(fit.experiment)[0].step_time_s, fit.diagnosis.step_time_s)
        self.assertGreater(fit.diagnosis.matched_share, 0.98)
        unfitted = {**fit.experiment, "cluster": {**fit.experiment["cluster"], "devices": {"calibrated": own}}}
        before = convoy.diagnose(trace, unfitted)
        for term in fit.diagnosis.terms:
            if term.name in ("update", "batch_norm", "add"):  # what the fit has a key for, and nothing stands against
                self.assertLess(abs(term.gap_s), 0.1 * term.measured_s, term.name)
        self.assertEqual(before.measured_step_time_s, fit.diagnosis.measured_step_time_s)
        self.assertNotEqual(before.step_time_s, fit.diagnosis.step_time_s)
        # As with the device in a file.
        pathlib.Path("lab.yaml").write_text(json.dumps({"cluster": {
            "nodes": [{"name": "n", "count": 1, "server": "own"}], "devices": {"lab-cpu": own},
            "servers": {"own": {"devices": [{"device": "lab-cpu", "count": 1}], "interconnect": {"kind": "none"}}}}}))
        self.assertEqual(convoy.calibrate(trace, device="lab-cpu", experiment="lab.yaml").yaml, fit.yaml)
        four = convoy.run({**fit.experiment, "strategy": {"kind": "data_parallel", "sync": "all_reduce"},
                           "cluster": fit.cluster(4, fabric={"kind": "switch", "bandwidth": "1Gbps", "latency": "50us"})})
        self.assertEqual(four[0].devices, 4)
        for wrong in ({}, {"trace": trace}, {"device": own}, {"profiles": trace, "device": own, "model": model},
                      {"trace": trace, "device": "lab-cpu", "experiment": "lab.yaml", "model": model}):
            with self.assertRaises(TypeError):
                convoy.calibrate(**wrong)
        with self.assertRaisesRegex(convoy.InputError, "another network"):
            convoy.calibrate(trace=trace, device=own, model="alexnet")

    def test_a_saving_of_money_is_no_gain_where_that_of_time_is_none(self):
        # An hour is so dear that 0.01 % of it is money.
        experiment = json.loads(json.dumps(EXPERIMENT))
        experiment["model"]["layers"][0]["out_channels"] = 64
        experiment["training"].update(batch_per_device=4096, dataset={"samples": 10 ** 9})
        cluster = experiment["cluster"]
        cluster["servers"]["box"]["price"] = "1000000USD/h"
        cluster["fabric"].update(bandwidth="100Gbps", latency="1us")
        cluster["devices"]["ideal"]["peak"] = {"fp32": "1TFLOPS"}
        experiment["strategy"]["bucket"] = "64KiB"
        pathlib.Path("dear.yaml").write_text(json.dumps(experiment))
        printed = self.program("run", "dear.yaml", "--explain", "--out", "o")
        rows = json.loads(pathlib.Path("o/results.json").read_text())["runs"][0]
        small = [row["change"] for row in rows["counterfactuals"]
                 if 0 < abs(row["gain_s"]) < 5e-4 * rows["step_time_s"] and abs(row["gain_usd_per_epoch"]) > 1]
        self.assertGreater(len(small), 1)
        for change in small:
            line = next(line for line in printed.splitlines() if line.strip().startswith(change))
            self.assertRegex(line, "no gain +as many USD an epoch")
        self.assertNotIn("(0.0 %)", printed)

    def test_learning_that_takes_long_is_told_before_it_begins(self):
        experiment = {**EXPERIMENT, "model": {"name": "resnet18", "input": [3, 32, 32]},
                      "numerics": {"data": {"kind": "drawn"}, "steps": 400}}
        with self.assertRaisesRegex(convoy.ConvoyWarning, "numerics: 400 steps of resnet18 with 32 images compute real "
                                    "values for about .* on one core"):
            with warnings.catch_warnings():
                warnings.simplefilter("error", convoy.ConvoyWarning)
                convoy.run(experiment)

    def test_save_trace(self):
        def event(number, name, start, us, shapes):
            return types.SimpleNamespace(
                name=name, thread=1, id=number, input_shapes=shapes,
                time_range=types.SimpleNamespace(start=start, elapsed_us=lambda: us))
        events = [event(1, "aten::conv2d", 0, 900, [[8, 64, 8, 8], [64, 64, 3, 3], []]),
                  event(2, "aten::convolution", 5, 890, [[8, 64, 8, 8], [64, 64, 3, 3], []]),
                  event(3, "aten::convolution_backward", 1000, 2000,
                        [[8, 64, 8, 8], [8, 64, 8, 8], [64, 64, 3, 3]])]
        profiler = types.SimpleNamespace(events=lambda: events)
        convoy.save_trace(profiler, "t.json")
        convoy.save_trace(profiler, pathlib.Path("t.json.gz"))
        self.assertEqual(gzip.open("t.json.gz", "rt").read(), pathlib.Path("t.json").read_text())
        fit = convoy.calibrate("t.json.gz", device="xeon-platinum-8480")
        self.assertEqual(len(fit.rows), 2)
        pathlib.Path("t.json.gz").write_bytes(pathlib.Path("t.json.gz").read_bytes()[:-9])
        with self.assertRaisesRegex(convoy.InputError, "is cut"):
            convoy.calibrate("t.json.gz", device="xeon-platinum-8480")

    def test_doctor(self):
        experiment = json.loads(json.dumps(EXPERIMENT))
        experiment["cluster"]["servers"]["box"]["devices"][0]["device"] = "v100-sxm2-16gb"
        experiment["model"] = "resnet18"
        experiment["training"]["input"] = {"kind": "jpeg", "library": "pil"}
        experiment["cluster"]["servers"]["box"]["vcpus"] = 8
        experiment["spread"] = {"cluster.fabric.latency": "50%"}
        pathlib.Path("doctor.yaml").write_text(json.dumps(experiment))
        diagnosis = convoy.doctor(experiment, set={"training.batch_per_device": 4})
        self.assertEqual(diagnosis.to_dict(), json.loads(
            self.program("doctor", "doctor.yaml", "--set", "training.batch_per_device=4", "--json")))
        self.assertEqual(str(diagnosis), self.program("doctor", "doctor.yaml", "--set", "training.batch_per_device=4"))
        for measured in diagnosis.runs[0].inputs:
            self.assertIn(f"<td>{measured.key}</td>", diagnosis._page)
        self.assertIn("<iframe", diagnosis._repr_html_())
        self.assertEqual(diagnosis.runs[0].interval.to_dict(),
                         convoy.run(experiment, set={"training.batch_per_device": 4})[0].interval.to_dict())
        inputs = diagnosis.runs[0].inputs
        self.assertAlmostEqual(sum(each.variance_share for each in inputs), 1)
        pasted = [each.measure for each in inputs if "<<'END'\n" in each.measure]
        self.assertGreaterEqual(len(pasted), 3)
        for lines in pasted:
            compile(lines.split("<<'END'\n")[1].rsplit("\nEND", 1)[0], "pasted", "exec")
        with self.assertRaises(convoy.InputError):
            convoy.doctor(experiment, set={"spread": {"cluster.fabric.loss": "5%"}})
        with self.assertRaises(convoy.InputError):
            convoy.doctor(experiment, prices="prices.csv")

    def test_diagnose(self):
        trace = CONFIGS.parent / "tests/calibration/traces/resnet18_batch8_32x32_cpu.json.gz"
        experiment = {"experiment": "lab", "model": {"name": "resnet18", "input": [3, 32, 32]},
                      "training": {"batch_per_device": 8}, "strategy": {"kind": "single"},
                      "cluster": {"nodes": [{"name": "n", "count": 1, "server": "box"}],
                                  "servers": {"box": {"devices": [{"device": "mine", "count": 1}],
                                                      "interconnect": {"kind": "none"}}},
                                  "devices": {"mine": {"base": "epyc-7763", "sms": 1}}}}
        pathlib.Path("lab.yaml").write_text(json.dumps(experiment))
        diagnosis = convoy.diagnose(trace, experiment)
        self.assertEqual(diagnosis.to_json(), self.program("diagnose", str(trace), "lab.yaml", "--json"))
        self.assertEqual(str(diagnosis), self.program("diagnose", str(trace), "lab.yaml"))
        self.assertIn("<iframe", diagnosis._repr_html_())
        convoy.diagnose(trace, experiment, joint_trace="both.json")
        events = json.loads(pathlib.Path("both.json").read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {1: "measured", 2: "predicted: n0"})
        ends = {pid: max(event["ts"] + event["dur"] for event in events if event["ph"] == "X" and event["pid"] == pid)
                for pid in names}
        # The first of five measured steps, from its first operation to the optimizer's end, and the predicted one.
        self.assertAlmostEqual(ends[1] * 1e-6 / diagnosis.measured_step_time_s, 1, delta=0.2)
        self.assertAlmostEqual(ends[2] * 1e-6, diagnosis.step_time_s, places=6)
        self.assertIn("aten::conv2d", {event["name"] for event in events if event["pid"] == 1})
        with self.assertRaisesRegex(convoy.InputError, "another network"):
            convoy.diagnose(trace, experiment, set={"training.batch_per_device": 16})

    def test_validate(self):
        pathlib.Path("rows.csv").write_text("device,model,batch_per_device,images_per_s\n"
                                            "k80,resnet18,16,90\nt4,alexnet,32,700\n")
        validation = convoy.validate("rows.csv")
        self.assertEqual(validation.to_dict(), json.loads(self.program("validate", "rows.csv", "--json")))
        self.assertEqual(str(validation), self.program("validate", "rows.csv"))
        self.assertEqual(validation._page.count("<tr>"), 1 + len(validation.rows))
        row = validation.rows[0]
        self.assertAlmostEqual(row.error, row.predicted / 90 - 1)

    def test_doubts_of_models_are_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            convoy.run("e.yaml")
        self.assertEqual([str(each.message) for each in caught], [])


if __name__ == "__main__":
    unittest.main()
