# SPDX-License-Identifier: MIT
"""What all parts of the module share: errors, objects of the program's JSON, and calls into it."""

import collections.abc
import re

from . import _convoy


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
            return wrapped(self._fields[name])
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are {', '.join(self._fields)}") from None

    def __getitem__(self, name):
        return wrapped(self._fields[name])

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


def wrapped(value):
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    return value


def frame(page, height):
    """A page of the program's in a notebook, in a frame of its own so that its style stays there."""
    page = page.replace("&", "&amp;").replace('"', "&quot;")
    return f'<iframe srcdoc="{page}" style="width:100%;height:{height}em;border:0"></iframe>'


def call(function, *arguments):
    try:
        return function(*arguments)
    except _convoy.InputErrorText as error:
        text = str(error)
    except _convoy.OutputErrorText as error:
        raise OSError(str(error)) from None
    raise InputError(text)
