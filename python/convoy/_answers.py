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
    """convoy.validate/1 (docs/compare.md): `rows`, `summary`, `terms`."""


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
        self.rows = wrapped(json.loads(rows))

    def __repr__(self):
        return f"<Calibration: {len(self.rows)} rows, mean error of the fit {100 * self.mean_error:.1f} %>"
