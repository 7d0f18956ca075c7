# SPDX-License-Identifier: MIT
"""What pages and drawings show, for scripts/golden: of each heading the texts and numbers of every kind of element of its pictures and of
every column of its tables; and the laws that pictures keep, whatever they show."""

import json
import re
import xml.parsers.expat

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewbox", "transform", "points"}
AT_EACH_END = {"x1": "x", "x2": "x", "cx": "x", "y1": "y", "y2": "y", "cy": "y"}
LEAST_WIDTH = 0.5  # of a bar of a timeline, so that a short task is seen
WRITTEN_TO = 0.011  # coordinates have two digits, and an end is a sum of two


class Element:
    def __init__(self, tag, attributes, heading, column, picture):
        self.tag, self.attributes, self.heading, self.column, self.picture = tag, attributes, heading, column, picture
        self.text = ""

    def number(self, name):
        return float(self.attributes.get(name, 0))

    @property
    def place(self):
        inner = f"column {self.column}" if self.column else self.tag
        return f"{self.heading}: {inner}" if self.heading else inner


class Reader:
    """All elements of a page, in their order, without style and program. Pages are XHTML: an error where one is not well-formed."""

    def __init__(self, text):
        self.elements, self.open, self.heading, self.columns, self.cell, self.picture = [], [], "", [], 0, None
        parser = xml.parsers.expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = self.begin, self.end, self.add_text
        parser.Parse(text, True)

    def begin(self, tag, attributes):
        if tag == "table":
            self.columns = []
        if tag == "tr":
            self.cell = 0
        column = None
        if tag == "td":
            self.cell += 1
            column = self.columns[self.cell - 1] if self.cell <= len(self.columns) else str(self.cell)
        inside = self.open[-1].column if self.open else None
        element = Element(tag, {name.lower(): value for name, value in attributes.items()}, self.heading, column or inside, self.picture)
        if tag == "svg":
            self.picture = element
        self.elements.append(element)
        self.open.append(element)

    def end(self, tag):
        element = self.open.pop()
        if tag == "th":
            self.columns.append(re.sub(r"\d+", "#", element.text.strip()))
        if tag == "h2":
            self.heading = re.sub(r"\d+", "#", element.text.strip())
        if tag == "svg":
            self.picture = None

    def add_text(self, data):
        self.open[-1].text += data


def elements(text):
    return [e for e in Reader(text).elements
            if e.tag not in ("style", "meta") and (e.tag != "script" or e.attributes.get("type") == "application/json")]


def figures(page):
    """Places of a page with what is there: a text, numbers, or a part of the data of its runs.
    page: its elements"""
    for element in page:
        numbers = [(name, value) for name, value in element.attributes.items() if name in NUMBERS]
        if numbers:
            yield f"{element.place}@", [float(number) for _, value in numbers for number in NUMBER.findall(value)]
        words = [f"{name}={NUMBER.sub('#', value or '') if name in NUMBERS else value}" for name, value in element.attributes.items()]
        if words:
            yield f"{element.place}@", " ".join(words)
        if element.tag == "script":
            data = json.loads(element.text)
            for column in data.pop("columns", []):
                yield f"data of the page: {column['title']}", column
            yield "data of the page", data
        elif element.text.strip():
            yield element.place, element.text.strip()


# ---- laws of pictures

def within(element):
    """Whether an element lies in the frame of its picture."""
    frame = [float(each) for each in element.picture.attributes["viewbox"].split()]
    ends = {"x": [], "y": []}
    for name, axis in AT_EACH_END.items():
        if name in element.attributes:
            ends[axis].append(element.number(name))
    if element.tag == "rect":
        ends = {"x": [element.number("x"), element.number("x") + element.number("width")],
                "y": [element.number("y"), element.number("y") + element.number("height")]}
    if element.tag == "text":
        ends = {"x": [element.number("x")], "y": [element.number("y")]}
    if element.tag == "path" and re.fullmatch(r"[ML\d. ]+", element.attributes["d"]):
        numbers = [float(each) for each in NUMBER.findall(element.attributes["d"])]
        ends = {"x": numbers[0::2], "y": numbers[1::2]}
    return all(frame[i] - WRITTEN_TO <= end <= frame[i] + frame[i + 2] + WRITTEN_TO
               for i, axis in enumerate("xy") for end in ends[axis])


def of_frames(shapes):
    """What is drawn lies in its picture, and no bar is turned over."""
    for shape in shapes:
        if not within(shape):
            yield f"{shape.tag} {shape.attributes} lies outside of {shape.picture.attributes['viewbox']}"
        if shape.tag == "rect" and (shape.number("width") < 0 or shape.number("height") < 0):
            yield f"rect {shape.attributes} is less than nothing"


def of_bars(shapes):
    """Bars of one row do not overlap, unless one is the background of another."""
    bars = [s for s in shapes if s.tag == "rect" and s.attributes.get("class", "").startswith("bar") and "faint" not in s.attributes["class"]]
    by_row = {}
    for bar in bars:
        by_row.setdefault(bar.attributes["y"], []).append((bar.number("x"), bar.number("x") + bar.number("width")))
    for y, spans in by_row.items():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            if begin < end - LEAST_WIDTH - WRITTEN_TO:
                yield f"bars of the row at y {y} overlap: one ends at {end}, another begins at {begin}"


def broken(page):
    """The laws that the pictures of a page break.
    page: its elements"""
    by_picture = {}
    for element in page:
        if element.picture:
            by_picture.setdefault(id(element.picture), []).append(element)
        if re.search(r"\b(?:nan|inf)\b", " ".join(value or "" for name, value in element.attributes.items() if name != "class")):
            yield f"{element.place} has no number: {element.attributes}"
    for shapes in by_picture.values():
        for law in (of_frames, of_bars):
            yield from law(shapes)
