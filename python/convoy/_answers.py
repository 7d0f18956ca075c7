# SPDX-License-Identifier: MIT
"""What commands answer beside results."""

import json

from ._records import Record, frame, wrapped


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
        return frame(self._page, 30)


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
    """A device fitted to measured times.

    yaml                     the keys that were fitted
    device                   the same with its base: an entry of a cluster's `devices`
    host_issue_factor        by what the host takes longer to issue an operation than a typical one
    rows                     the measurements beside the fit; mean_error and worst_error of it
    experiment, diagnosis    where a model was given: its step on the device, and the trace beside that prediction
    """

    def __init__(self, base, yaml, keys, mean_error, worst_error, host_issue_factor, rows):
        self.yaml, self.mean_error, self.worst_error = yaml, mean_error, worst_error
        self.device = {**base, **json.loads(keys)}
        self.host_issue_factor = host_issue_factor
        self.rows = wrapped(json.loads(rows))
        self.experiment = self.diagnosis = None

    def cluster(self, hosts=1, devices=1, fabric=None):
        """A cluster of hosts with this device and host, as an experiment has it.

        fabric  of several hosts: {"kind": "switch", "bandwidth": "10Gbps", "latency": "25us"}
        """
        server = {"devices": [{"device": "calibrated", "count": devices}],
                  "interconnect": {"kind": "none"} if devices == 1 else
                  {"kind": "pcie", "bandwidth": "12GB/s", "latency": "5us"},
                  "host": {"issue_factor": self.host_issue_factor}}
        cluster = {"name": "calibrated", "nodes": [{"name": "n", "count": hosts, "server": "own"}],
                   "servers": {"own": server}, "devices": {"calibrated": self.device}}
        return cluster if fabric is None else {**cluster, "fabric": fabric}

    def __repr__(self):
        return f"<Calibration: {len(self.rows)} rows, mean error of the fit {100 * self.mean_error:.1f} %>"
