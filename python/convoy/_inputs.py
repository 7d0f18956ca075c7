# SPDX-License-Identifier: MIT
"""Experiments, as Python has them, in the words of the program."""

import collections.abc
import contextlib
import csv
import json
import operator
import os
import re
import tempfile

from ._records import InputError


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


def json_of(value):
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _setting(path, value):
    return f"{path}={value if isinstance(value, str) and _is_plain(value) else json_of(value)}"


def _is_plain(text):
    """Whether YAML reads the text, without quotes, as the text or the quantity that it is: "ring", "25MiB"."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./%+-]*", text) or text in ("true", "false", "null"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _values(path, values):
    if isinstance(values, str) or not isinstance(values, collections.abc.Iterable):
        raise InputError(f"sweep: {path}: must be a list of values to try, found {values!r}")
    return list(values)


def texts_of(experiment, settings, sweep):
    """File, text and settings as the module takes them; a mapping is read as the text of its JSON."""
    lines = [_setting(path, value) for path, value in settings.items()]
    lines += [_setting("sweep." + path, _values(path, values)) for path, values in sweep.items()]
    if isinstance(experiment, collections.abc.Mapping):
        return "experiment", json_of(experiment), lines
    if not isinstance(experiment, (str, os.PathLike)):
        raise TypeError(f"an experiment is a file's path or a dict, not {type(experiment).__name__}")
    return os.fspath(experiment), "", lines


def jobs_of(jobs):
    """Processes at a time as the module takes them; None: as many as there are cores."""
    if jobs is None:
        return None
    jobs = operator.index(jobs)
    if not 1 <= jobs <= 4096:
        raise InputError(f"jobs: must be 1 to 4096, found {jobs}")
    return jobs


def _cell(value):
    return "" if value is None or value != value else value  # a table of pandas has NaN where nothing is said


@contextlib.contextmanager
def table_file(rows):
    """The path of a table (CSV): `rows` itself, or a file of what it holds (dicts, or a DataFrame) while it is read."""
    if isinstance(rows, (str, os.PathLike)):
        yield os.fspath(rows)
        return
    if hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    rows = list(rows)
    if not all(isinstance(row, collections.abc.Mapping) for row in rows):
        raise TypeError("rows are a file's path, dicts, or a DataFrame")
    with tempfile.TemporaryDirectory(prefix="convoy-rows-") as folder:
        file = os.path.join(folder, "rows")
        with open(file, "w", newline="") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(column for row in rows for column in row)))
            writer.writeheader()
            writer.writerows({column: _cell(value) for column, value in row.items()} for row in rows)
        try:
            yield file
        except InputError as error:  # its place is in the rows, not in a file of the user's
            raise InputError(str(error).replace(folder + os.sep, "")) from None
