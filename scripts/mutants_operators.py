# SPDX-License-Identifier: MIT
"""Where C++ sources can be changed, and how: the operators of scripts/mutants.

Works on text, with what stands in comments, strings and preprocessor lines blanked out, and a stack of brackets that tells blocks
of code from classes, initializers and lambdas. A place that is misread does not compile, and scripts/mutants passes it over.

Every change is made beside what it changes (scripts/mutants.h): its edits keep what was written and ask, while the program runs,
whether the change of that number is in force. No edit has a line break, so that lines keep their numbers."""

import dataclasses
import re

NUMBER = "@N@"  # in an edit's text: the number of the change


@dataclasses.dataclass(frozen=True)
class Change:
    """One place of a file and what happens there. Edits: (begin, end, text) in characters of the file."""
    file: str
    line: int  # from 0
    kind: str
    what: str  # for people: the line as it is written, and what becomes of it
    edits: tuple

    def __str__(self):
        return f"{self.file}:{self.line + 1}: {self.kind}: {self.what}"


@dataclasses.dataclass
class Block:
    """A `{` or `(` or `[` that is open."""
    bracket: str
    at: int
    code: bool = False      # a body of statements
    function: bool = False  # that of a function
    loop: bool = False
    void: bool = False      # of a function that returns nothing
    lambda_: bool = False
    const: bool = False     # of a function that does not change its object


@dataclasses.dataclass
class Statement:
    begin: int
    end: int   # behind its `;` or `}`
    text: str  # blanked
    blocks: list
    first: bool         # of its block
    after_exit: bool    # what stands before it in its block may leave

    def innermost(self, wanted):
        """The nearest block around it for which `wanted` holds, not looking out of a lambda; None: there is none."""
        for block in reversed(self.blocks):
            if wanted(block):
                return block
            if block.lambda_:
                return None
        return None


class Source:
    """A file's text, the same without comments, strings and preprocessor lines, and its statements."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.blank = blanked(text)
        self.partner = partners(self.blank)
        self.statements = list(statements(self.blank, self.partner))

    def line_of(self, at):
        return self.text.count("\n", 0, at)

    def written(self, at):
        begin = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        return self.text[begin:end if end >= 0 else None].strip()

    def change(self, at, kind, becomes, *edits):
        return Change(self.file, self.line_of(at), kind, f"`{self.written(at)}`: {becomes}", tuple(edits))


def blanked(text):
    """Spaces for comments, literals of text and preprocessor lines; everything else where it was."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*',
                         re.DOTALL | re.MULTILINE)

    def spaces(match):
        found = match.group(0)
        fill = re.sub(r"[^\n]", " ", found)
        # A literal is still a value: quotes stay.
        return found[0] + fill[1:-1] + found[-1] if found[0] in "\"'" and len(found) > 1 else fill
    return pattern.sub(spaces, text)


def partners(blank):
    """By position of each bracket: that of the one that closes or opens it."""
    result, open_ = {}, []
    for at, c in enumerate(blank):
        if c in "([{":
            open_.append(at)
        elif c in ")]}" and open_:
            result[at] = open_.pop()
            result[result[at]] = at
    return result


LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(\([^{}]*\))?\s*(mutable\s*)?(->[^{};]*)?$")
NO_CODE = re.compile(r"(^|[\s;}>])(class|struct|namespace|enum|union)\s[^()]*$")


def opened(blank, at, parents):
    """What kind of block the `{` at `at` opens."""
    block = Block("{", at)
    before = blank[:at].rstrip()
    start = max(before.rfind(c) for c in ";{}") + 1
    head = before[start:]
    whole = before[-600:]
    if LAMBDA.search(whole[max(whole.rfind(";"), whole.rfind("{"), 0):]):
        block.code = block.lambda_ = True
        return block
    if NO_CODE.search(head):
        return block
    in_code = any(b.code for b in parents)
    top = parents[-1] if parents else None
    if top and top.bracket != "{":
        return block  # an initializer among arguments
    control = re.search(r"\b(for|while|if|switch|catch|else|do|try)\b", head)
    if in_code:
        block.code = bool(control) or not head.strip()
        block.loop = bool(re.match(r"\s*(else\s+)?(for|while|do)\b", head))
        return block
    if re.search(r"(\)|\b(const|override|noexcept|final)|->\s*[\w:<>,&*\s]+|\)\s*:.*[)}])$", head, re.DOTALL) and "(" in head \
            and not re.search(r"=\s*$", head):
        name = re.search(r"([\w:~]+)\s*\(", head)
        parts = name.group(1).split("::") if name else [""]
        constructor = len(parts) > 1 and parts[-1].lstrip("~") == parts[-2] or re.match(r"\s*(explicit\s+)?\w+\s*\($", head[:name.end()] if name else "")
        block.code = block.function = True
        block.void = bool(re.search(r"\bvoid\s+[\w:~<>]+\s*\(", head)) or bool(constructor)
        block.const = bool(re.search(r"\)\s*const\b", head))
    return block


def statements(blank, partner):
    """Every statement that begins a line of a block of code, with the blocks around it."""
    open_ = []
    exits = {}   # by block: whether something in it may leave
    fresh = set()
    at = 0
    begins_line = False
    for at, c in enumerate(blank):
        if c == "\n":
            begins_line = True
            continue
        if c.isspace():
            continue
        top = open_[-1] if open_ else None
        if begins_line and top and top.code and c not in "{}":
            previous = blank[:at].rstrip()[-1:]
            if previous in ";{}" and partner.get(top.at) is not None:
                end = end_of_statement(blank, partner, at)
                text = blank[at:end]
                yield Statement(at, end, text, list(open_), top.at not in fresh, exits.get(top.at, False))
                fresh.add(top.at)
                exits[top.at] = bool(re.search(r"\b(return|continue|break|throw)\b", text))
        begins_line = False
        if c == "{":
            open_.append(opened(blank, at, open_))
        elif c in "([":
            open_.append(Block(c, at))
        elif c in ")]}" and open_:
            open_.pop()


def end_of_statement(blank, partner, at):
    """Behind the `;` that ends it, or the `}` of a block, else-branches included."""
    control = re.match(r"(if|for|while|switch|do|else|try)\b", blank[at:])
    while at < len(blank):
        c = blank[at]
        if c in "([{":
            close = partner.get(at, len(blank) - 1)
            at = close + 1
            if c == "{" and control:
                following = re.match(r"\s*(else|while|catch)\b", blank[at:])
                if not following or (following.group(1) == "while" and control.group(1) != "do"):
                    return at
            continue
        if c == ";":
            at += 1
            if control and re.match(r"\s*else\b", blank[at:]):
                continue
            return at
        if c in ")]}":
            return at
        at += 1
    return at


# ---- what can be deleted, left or forgotten

SIMPLE = r"[A-Za-z_]\w*(?:(?:\.|->|::)\w+|\[\w+\])*(?:\(\))?"
EXPRESSION = re.compile(r"(\+\+|--|\*?\(?\*?)?[\w:.\->\[\]()*&+, ]*$")


def is_expression(text):
    """An assignment or a call, no declaration."""
    head = re.split(r"(?<![=!<>])=(?!=)|\(", text, maxsplit=1)[0].strip()
    if re.match(r"(return|throw|using|static|constexpr|const|auto|case|default|else|break|continue|goto|delete|struct|class|enum|typedef|do|try|if|for|while|switch|template|friend|public|private)\b", text):
        return False
    head = re.sub(r"\[[^\]]*\]", "[]", head)
    head = re.sub(r"\s*(\+|-|\*|/|%|&|\||\^|<<|>>)$", "", head)
    return bool(re.fullmatch(r"(\+\+|--|\*)*[\w:.\->\[\]]+(\+\+|--)?;?", head)) and bool(re.search(r"=|\(|\+\+|--", text))


def deletions(source):
    for s in source.statements:
        what = re.match(r"\w*", s.text).group(0)
        if is_expression(s.text) or what in ("if", "for", "while") and "constexpr" not in s.text[:14]:
            kind = "statement deleted" if what not in ("for", "while") else "loop deleted"
            if what == "if":
                kind = "branch deleted"
            yield source.change(s.begin, kind, "is not done", (s.begin, s.begin, f"if (mutants::kept<{NUMBER}>()) "))


def early_exits(source):
    for s in source.statements:
        if s.text.startswith(("return", "break", "continue", "case", "default", "else")):
            continue
        loop = s.innermost(lambda b: b.loop)
        if loop and not s.first and loop is s.blocks[-1]:
            yield source.change(s.begin, "early exit", "the rest of the loop's body is left out before it",
                                (s.begin, s.begin, f"if (mutants::leaves<{NUMBER}>()) continue; "))
        body = s.innermost(lambda b: b.function)
        if body and not (s.first and body.void):
            value = "" if body.void else " {}"
            yield source.change(s.begin, "early exit", "the function returns before it",
                                (s.begin, s.begin, f"if (mutants::leaves<{NUMBER}>()) return{value}; "))


def resets(source):
    blank = source.blank
    for s in source.statements:
        found = re.match(r"([\w.\->\[\]]+) (\+=) ", s.text)
        if found:
            at = s.begin + found.start(2)
            yield source.change(s.begin, "state forgotten", "`=` for `+=`",
                                (at, at + 2, f"+= mutants::forgets<{NUMBER}> +="))
        found = re.match(r"([\w.\->\[\]]+) = std::(max|min)\(\1, ", s.text)
        if found:
            call = s.begin + s.text.index("std::")
            open_ = blank.index("(", call)
            yield source.change(s.begin, "state forgotten", "only the last one counts",
                                (call, open_ + 1, f"mutants::last_{found.group(2)}<{NUMBER}>("))
    yield from resets_in_loops(source)
    yield from resets_in_functions(source)


def resets_in_loops(source):
    """A variable made before a loop is made anew in each turn."""
    for i, s in enumerate(source.statements):
        if not re.match(r"(for|while)\b", s.text) or "{" not in s.text:
            continue
        brace = s.begin + s.text.index("{")
        body = source.blank[brace:s.end]
        for before in source.statements[max(0, i - 8):i]:
            if not before.blocks or before.blocks[-1].at != s.blocks[-1].at:
                continue
            found = re.match(r"(?!const|return)[\w:<>, *]+ (\w+)( = [^;,]*|\{[^;]*\})?;$", before.text)
            if found and re.search(rf"\b{found.group(1)}\b(\s*([-+*/|]?=[^=])|\+\+|\.push_back|\.insert|\.emplace)|(\+\+|--){found.group(1)}\b", body):
                yield source.change(s.begin, "state forgotten", f"`{found.group(1)}` begins anew in each turn",
                                    (brace + 1, brace + 1, f" mutants::reset<{NUMBER}>({found.group(1)});"))


def resets_in_functions(source):
    """A member that a function goes on with begins anew whenever the function does."""
    for s in source.statements:
        body = s.blocks[-1]
        if not (s.first and body.function) or body.const:
            continue
        text = source.blank[body.at:source.partner.get(body.at, body.at)]
        for name in sorted(set(re.findall(r"\b(\w+_)(?: (?:\+=|-=)|\.push_back|\.insert|\.emplace)", text) + re.findall(r"(?:\+\+|--)(\w+_)\b", text))):
            yield source.change(s.begin, "state forgotten", f"`{name}` begins anew here",
                                (s.begin, s.begin, f"mutants::reset<{NUMBER}>({name}); "))


# ---- what can be taken for something else

CALL = re.compile(r"(?<![\w.])((?:[\w]+(?:::|\.|->))*\w+)(?:<[\w:, ]+>)?\(")
NO_CALL = {"if", "for", "while", "switch", "return", "sizeof", "catch", "static_assert", "decltype", "alignof", "noexcept", "static_cast",
           "defined"}


def arguments(blank, partner, open_):
    """(begin, end) of each argument of the call whose bracket is at `open_`."""
    close = partner.get(open_)
    result, begin, at = [], open_ + 1, open_ + 1
    while close is not None and at < close:
        if blank[at] in "([{" and partner.get(at, close) < close:
            at = partner[at]
        elif blank[at] == ",":
            result.append((begin, at))
            begin = at + 1
        at += 1
    if close is not None and blank[begin:close].strip():
        result.append((begin, close))
    strip = lambda b, e: (b + len(blank[b:e]) - len(blank[b:e].lstrip()), e - (len(blank[b:e]) - len(blank[b:e].rstrip())))
    return [strip(b, e) for b, e in result]


def inside_code(source):
    """Whether a position is in a function, and in no statement that only says what is wrong."""
    code = bytearray(len(source.blank) + 1)
    for s in source.statements:
        if s.blocks[-1].function:
            code[s.begin:s.end] = b"\1" * (s.end - s.begin)
    for found in re.finditer(r"\bthrow |\bInputError\(|\bfail\(", source.blank):
        end = end_of_statement(source.blank, source.partner, found.start())
        code[found.start():end] = bytes(end - found.start())
    return lambda at: bool(code[at])


def argument_changes(source):
    blank, partner, is_code = source.blank, source.partner, inside_code(source)
    for found in CALL.finditer(blank):
        if found.group(1) in NO_CALL or not is_code(found.start()):
            continue
        given = arguments(blank, partner, found.end() - 1)
        simple = [re.fullmatch(SIMPLE, blank[b:e]) is not None for b, e in given]
        for i, (begin, end) in enumerate(given):
            if simple[i] and len(given) > 1:
                yield source.change(begin, "argument dropped", f"nothing for `{blank[begin:end]}`",
                                    (begin, begin, f"mutants::dropped<{NUMBER}>("), (end, end, ")"))
            if i and simple[i] and simple[i - 1] and not found.group(1).startswith("std::m"):
                first, second = blank[given[i - 1][0]:given[i - 1][1]], blank[begin:end]
                if first != second:
                    yield source.change(begin, "arguments swapped", f"`{first}` and `{second}`",
                                        (*given[i - 1], f"mutants::first<{NUMBER}>({first}, {second})"),
                                        (begin, end, f"mutants::first<{NUMBER}>({second}, {first})"))


def index_changes(source):
    blank, is_code = source.blank, inside_code(source)
    found = [m for m in re.finditer(r"(?<=[\w\])])\[(\w+)\]", blank) if is_code(m.start()) and not m.group(1).isdigit()]
    for i, here in enumerate(found):
        others = {m.group(1) for m in found[max(0, i - 3):i + 4] if abs(source.line_of(m.start()) - source.line_of(here.start())) <= 3}
        for other in sorted(others - {here.group(1)}):
            yield source.change(here.start(), "other index", f"`[{other}]` for `[{here.group(1)}]`",
                                (here.start(1), here.end(1), f"mutants::first<{NUMBER}>({here.group(1)}, {other})"))


MEMBERS = [("first", "second"), ("from", "to"), ("begin", "end"), ("sent_bytes", "received_bytes"), ("push", "pull"),
           ("forward", "backward"), ("forward_s", "backward_s"), ("up", "down"), ("h", "w"), ("row", "column"),
           ("start_s", "end_s"), ("begin_s", "end_s"), ("in", "out"), ("low", "high"), ("min", "max"), ("inputs", "outputs"),
           ("push_bytes", "pull_bytes"), ("send", "receive"), ("senders", "receivers"), ("device", "host"), ("source", "target"),
           ("peak_power_w", "idle_power_w"), ("mean", "max"), ("lower", "upper"), ("devices", "hosts")]
OTHER_MEMBER = {**dict(MEMBERS), **{b: a for a, b in reversed(MEMBERS)}}


def member_changes(source):
    blank, is_code = source.blank, inside_code(source)
    for found in re.finditer(r"(?<![\w.>\])])((?:\w+(?:\[\w+\])?(?:\.|->))+)(\w+)\b(?!\s*(?:\(|[-+*/]?=[^=]|\+\+|--|\.|->|\[))", blank):
        other = OTHER_MEMBER.get(found.group(2))
        if other and is_code(found.start()) and blank[found.start() - 2:found.start()] not in ("++", "--"):
            yield source.change(found.start(), "other member", f"`{found.group(1)}{other}`",
                                (found.start(), found.end(), f"mutants::first<{NUMBER}>({found.group(0)}, {found.group(1)}{other})"))
    for found in re.finditer(r"\b(\w+(?:\.|->))(front|back)\(\)", blank):
        other = "back" if found.group(2) == "front" else "front"
        if is_code(found.start()) and blank[found.end():found.end() + 1] != "." and not re.match(r"\s*[-+*/]?=[^=]", blank[found.end():]):
            yield source.change(found.start(), "other member", f"`{other}()`",
                                (found.start(), found.end(), f"mutants::first<{NUMBER}>({found.group(0)}, {found.group(1)}{other}())"))


# ---- operators, conditions and constants

OPERATORS = [
    ("min and max", r"\bstd::max\(", "std::min(", "mutants::greatest<N>("),
    ("min and max", r"\bstd::min\(", "std::max(", "mutants::least<N>("),
    ("sign", r" \+= ", " -= ", " += mutants::add<N> += "),
    ("sign", r"(?<=[\w\)\]]) - (?=[a-z(])", " + ", " - mutants::minus<N> - "),
    ("sign", r"(?<=[\w\)\]]) \+ (?=[a-z(])", " - ", " + mutants::plus<N> + "),
    ("off by one", r" \+ 1(?=[\s;,)\]])", "nothing", " + mutants::one<N>()"),
    ("off by one", r" - 1(?=[\s;,)\]])", "nothing", " - mutants::one<N>()"),
    ("factor", r"(?<=[\w\)\]]) \* (?=[a-z(])", " / ", " * mutants::times<N> * "),
    ("factor", r"(?<=[\w\)\]]) / (?=[a-z(])", " * ", " / mutants::over<N> / "),
    ("edge", r"(?<=[\w\)\]]) < (?=[\w(])", " <= ", " < mutants::less<N> < "),
    ("edge", r"(?<=[\w\)\]]) > (?=[\w(])", " >= ", " > mutants::greater<N> > "),
]


def operator_changes(source):
    is_code = inside_code(source)
    for kind, pattern, becomes, both in OPERATORS:
        for found in re.finditer(pattern, source.blank):
            if is_code(found.start()) and not source.written(found.start()).startswith(("template", "using")):
                yield source.change(found.start(), kind, f"`{becomes.strip()}` for `{found.group(0).strip()}`",
                                    (found.start(), found.end(), both.replace("N", NUMBER)))


def conditions(source):
    """(at, begin, end) of every condition of an `if` that is an expression: of the `if` and of what is asked."""
    is_code = inside_code(source)
    for found in re.finditer(r"\bif \(", source.blank):
        begin, end = found.end(), source.partner.get(found.end() - 1)
        if end is None or not is_code(found.start()):
            continue
        asked = source.blank[begin:end]
        if ";" not in asked and not re.match(r"(const|auto|std::optional)\b", asked) and not re.search(r"[\w>&*] \*?\w+ = ", asked):
            yield found.start(), begin, end


def condition_changes(source):
    blank, partner, is_code = source.blank, source.partner, inside_code(source)
    for at, begin, end in conditions(source):
        yield source.change(at, "condition", "denied", (begin, begin, f"mutants::denied<{NUMBER}>() != static_cast<bool>("), (end, end, ")"))
    for found in re.finditer(r" (&&|\|\|)(?=\s)", blank):
        if not is_code(found.start()):
            continue
        begin = found.end() + len(blank[found.end():]) - len(blank[found.end():].lstrip())
        end = end_of_operand(blank, partner, begin, stops=("&&", "||") if found.group(1) == "&&" else ("||",))
        keeps = f"(mutants::lifted<{NUMBER}>() || (" if found.group(1) == "&&" else f"(!mutants::lifted<{NUMBER}>() && ("
        yield source.change(found.start(), "condition", f"without `{' '.join(blank[begin:end].split())}`", (begin, begin, keeps), (end, end, "))"))
    for found in re.finditer(r"\s\? ", blank):
        if not is_code(found.start()):
            continue
        end = end_of_operand(blank, partner, found.end(), stops=(" : ", "\n"))
        colon = re.match(r"\s* : ", blank[end:])
        if colon:
            at = end + colon.end()
            yield source.change(found.start(), "condition", "always what stands before the colon",
                                (at, at, f"mutants::lifted<{NUMBER}>() ? {source.text[found.end():end]} : "))


def end_of_operand(blank, partner, at, stops):
    while at < len(blank):
        if blank.startswith(stops, at) or (blank[at] == "?" and " : " not in stops) or blank[at] in ",;)]}":
            break
        at = partner.get(at, at) + 1 if blank[at] in "([{" else at + 1
    return at - (len(blank[:at]) - len(blank[:at].rstrip()))


LITERAL = re.compile(r"(?<![\w.'])(\d[\d']*(?:\.\d*)?(?:[eE][+-]?\d+)?[uUfF]*)(?![\w.'])")


def constant_changes(source):
    is_code = inside_code(source)
    for found in LITERAL.finditer(source.blank):
        begin = source.blank.rfind("\n", 0, found.start()) + 1
        before = source.blank[begin:found.start()]
        constant = re.search(r"\bconstexpr\b", before)
        if re.search(r"\bcase |<$|<\w+, $| \[$", before) or not (is_code(found.start()) or constant):
            continue
        real = bool(re.search(r"[.eEfF]", found.group(1)))
        edits = [(found.start(), found.end(), f"mutants::number<{NUMBER}>({found.group(1)})")]
        if constant:
            edits.insert(0, (begin + constant.start(), begin + constant.end(), "const"))
        yield source.change(found.start(), "constant", f"{found.group(1)} {'doubled' if real else 'and one'}", *edits)


def changes(file, text):
    """Every change that an operator makes in a file."""
    source = Source(file, text)
    result = []
    for operator in (deletions, early_exits, resets, argument_changes, index_changes, member_changes, operator_changes,
                     condition_changes, constant_changes):
        result += operator(source)
    return result


def marks(file, text):
    """A mark where each stretch of code begins that may be left out: blocks, branches and what follows them."""
    source = Source(file, text)
    call = f"mutants::meets<{NUMBER}>()"
    result = []
    for s in source.statements:
        if s.first or s.after_exit:
            result.append(source.change(s.begin, "line", "", (s.begin, s.begin, call + "; ")))
    for at, begin, end in conditions(source):
        result.append(source.change(at, "branch", "", (begin, begin, "("), (end, end, f") && {call}")))
    return result


def written(text, numbered):
    """The text with changes: {number: change}; numbers whose edits meet another's are left out. Returns (text, numbers written)."""
    edits, taken = [], []
    for number, change in sorted(numbered.items()):
        if any(overlaps(mine, other) for mine in change.edits for other in edits):
            continue
        edits += [(begin, end, fill.replace(NUMBER, str(number))) for begin, end, fill in change.edits]
        taken.append(number)
    # Of those at one place, what closes a bracket stands before what opens one.
    for begin, end, fill in sorted(edits, key=lambda e: (e[0], e[1], not e[2].startswith(")")), reverse=True):
        text = text[:begin] + fill + text[end:]
    return text, taken


def overlaps(one, other):
    if one[0] == one[1] and other[0] == other[1]:
        return one[0] == other[0]
    return one[0] < other[1] and other[0] < one[1] or one[:2] == other[:2]
