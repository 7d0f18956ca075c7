# SPDX-License-Identifier: MIT
"""Experiments, as Python has them, in the words of the program."""

import collections.abc
import json
import os
import re


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


def texts_of(experiment, settings, sweep):
    """File, text and settings as the module takes them; a mapping is read as the text of its JSON."""
    lines = [_setting(path, value) for path, value in settings.items()]
    lines += [_setting("sweep." + path, list(values)) for path, values in sweep.items()]
    if isinstance(experiment, collections.abc.Mapping):
        return "experiment", json_of(experiment), lines
    return os.fspath(experiment), "", lines
