# SPDX-License-Identifier: MIT
"""The Python module fails as the program does, with its words and places, and ends when it is interrupted."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import convoy
from in_folder import InFolder, PROGRAM


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
        with self.assertRaisesRegex(TypeError, "a file's path or a dict, not int"):
            convoy.run(42)
        for values in (3, "ring"):
            with self.assertRaisesRegex(convoy.InputError, "sweep: cluster.nodes: must be a list of values"):
                convoy.run("e.yaml", sweep={"cluster.nodes": values})
        for jobs in (-1, 0, 4097):
            with self.assertRaisesRegex(convoy.InputError, f"jobs: must be 1 to 4096, found {jobs}"):
                convoy.run("e.yaml", jobs=jobs)
        with self.assertRaisesRegex(TypeError, "integer"):
            convoy.run("e.yaml", jobs="2")

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


if __name__ == "__main__":
    unittest.main()
