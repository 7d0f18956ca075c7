// SPDX-License-Identifier: MIT
// What a page of results can do where scripts run: sort and filter tables, choose columns and axes, pick points of the sweep, keep ranges
// of parallel coordinates, zoom into time lines. A page reads the same without it. It loads nothing and stores nothing.
"use strict";
(() => {
  const rowsAPage = 25, cellsOnPaper = 5000, sortableFrom = 4, filterableFrom = 12;

  // ---- elements

  /** An element with attributes and children; functions become listeners. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (typeof value === "function") element.addEventListener(key, value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function chooser(label, names, chosen, change) {
    const options = names.map((name, i) => make("option", {value: i, selected: i === chosen}, name));
    return make("label", {}, label + " ", make("select", {change: (event) => change(Number(event.target.value))}, ...options));
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ---- numbers as text, in the words of sim/page/text.cpp and sim/base/quantity.cpp

  /** As printf does it: a value exactly between two others goes to the even one. */
  function fixed(value, digits) {
    const below = Math.floor(Math.abs(value) * 10 ** digits);
    const between = Math.abs(value) * 2 ** (digits + 1) % 2 === 1;  // exact, as such values are odd multiples of a power of two
    return between && below % 2 === 0 ? (Math.sign(value) * below / 10 ** digits).toFixed(digits) : value.toFixed(digits);
  }

  function withPrefix(value, base, suffixes) {
    let i = 0;
    for (; i + 1 < suffixes.length && Math.abs(value) >= base * 0.9995; ++i) value /= base;
    const size = Math.abs(value);
    const digits = size >= 99.95 || (i === 0 && value === Math.floor(value)) ? 0 : size >= 9.995 ? 1 : 2;
    return `${fixed(value, digits)} ${suffixes[i]}`;
  }

  const plain = (value) => fixed(value, Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);

  function time(seconds) {
    if (seconds === 0) return "0 s";
    return Math.abs(seconds) >= 1 ? withPrefix(seconds, 1e300, ["s"]) : withPrefix(seconds * 1e9, 1000, ["ns", "us", "ms"]);
  }

  function duration(seconds) {
    if (seconds < 120) return time(seconds);
    if (seconds < 7200) return `${plain(seconds / 60)} min`;
    return seconds < 172800 ? `${plain(seconds / 3600)} h` : `${plain(seconds / 86400)} d`;
  }

  const share = (value) => `${fixed(100 * value, value > 0 && value < 0.0995 ? 1 : 0)} %`;

  const forms = {
    count: (value) => String(value),
    number: plain,
    time,
    duration,
    bytes: (value) => withPrefix(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
    share,
  };

  const units = {
    ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, "%": 0.01, k: 1e3,
    b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
  };
  const rates = {"": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12};

  /** Of bits and bytes in a second, the capital B is a byte; NaN if there is no such unit. */
  function unitOf(word) {
    const [, prefix, size] = /^([kmgt]?)(b|bit)(?:ps|\/s)$/i.exec(word) ?? [];
    return size ? rates[prefix.toLowerCase()] / (size === "B" ? 1 : 8) : units[word.toLowerCase()] ?? NaN;
  }

  /** "16GiB" or "12 ms" in the unit of the column's numbers; NaN if it is no number. */
  function quantity(text) {
    const parts = /^([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-zµ%/]*)$/i.exec(text.trim());
    if (!parts) return NaN;
    return Number(parts[1]) * (parts[2] ? unitOf(parts[2]) : 1);
  }

  // ---- filters: words, all of which must be met: "ring", "-ring", "step<20ms", "devices=8"

  const compact = (text) => text.toLowerCase().replace(/\s+/g, "");

  /** Of columns ({title, text(row), number(row)}): {test(row), wrong}. */
  function filterOf(text, columns) {
    const tests = [], wrong = [];
    const terms = text.match(/(?:"[^"]*"|[^\s"])+/g) ?? [];
    for (const term of terms) {
      const comparison = /^([^<>="]+)(<=|>=|<|>|=)(.+)$/.exec(term);
      if (!comparison) {
        const without = term.startsWith("-") && term.length > 1;
        const word = (without ? term.slice(1) : term).replace(/"/g, "").toLowerCase();
        tests.push((row) => columns.some((column) => column.text(row).toLowerCase().includes(word)) !== without);
        continue;
      }
      const [, name, sign] = comparison, value = comparison[3].replace(/"/g, "");
      const called = (one) => compact(one.title) === compact(name), begun = columns.filter((one) => compact(one.title).startsWith(compact(name)));
      const column = columns.find(called) ?? (begun.length === 1 ? begun[0] : undefined);
      if (!column) {
        const among = begun.length > 1 ? begun : columns;
        wrong.push(`${begun.length > 1 ? "more than one" : "no"} column is called '${name}': ${among.map((one) => compact(one.title)).join(", ")}`);
        continue;
      }
      const number = quantity(value);
      if (sign === "=") {
        tests.push((row) => compact(column.text(row)) === compact(value) || column.number(row) === number);
        continue;
      }
      if (Number.isNaN(number)) {
        wrong.push(`'${value}' is no number`);
        continue;
      }
      const holds = {"<": (x) => x < number, ">": (x) => x > number, "<=": (x) => x <= number, ">=": (x) => x >= number}[sign];
      tests.push((row) => holds(column.number(row)));
    }
    return {test: (row) => tests.every((one) => one(row)), wrong: wrong.join("; ")};
  }

  const inWords = new Intl.Collator("en", {numeric: true}).compare;

  /** Rows in the order of a column; rows without a value come last in both directions. */
  function sorted(rows, column, descending) {
    const unsaid = (row) => Number.isNaN(column.number(row)) && (column.numeric || ["", "-"].includes(column.text(row)));
    const numeric = rows.every((row) => unsaid(row) || !Number.isNaN(column.number(row)));
    const order = numeric ? (a, b) => a - b : inWords;
    return rows.map((row) => [unsaid(row) ? undefined : numeric ? column.number(row) : column.text(row), row]).sort(([a], [b]) => {
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
      return descending ? order(b, a) : order(a, b);
    }).map(([, row]) => row);
  }

  // ---- tables

  /** A heading that sorts when it is pressed. `press` gets whether the order is to be descending. */
  function sortHeading(heading, press) {
    const button = make("button", {type: "button", class: "sort"}, ...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      press(descending);
    });
  }

  function filterField(change) {
    const wrong = make("span", {class: "wrong", role: "status"});
    const field = make("input", {type: "search", placeholder: "filter: words, step<20ms, devices=8", "aria-label": "filter the rows",
                                 input: () => { wrong.textContent = change(field.value) ?? ""; }});
    return [field, wrong];
  }

  /** The number of a cell, which may have words behind it in a column of numbers: "987 s ± 14 %", ">= 89.6 ms", the second of "2 s -> 1 s". */
  function numberIn(text, among) {
    const last = text.replace(/^.* -> /, "").replace(/^(±|[<>]=? )/, "").replace(/,(?=\d{3})/g, "");
    return quantity(among ? /^[+-]?[0-9.]+(?:e[+-]?\d+)?(?: (?:[mnu]?s|min|h|d|%|[KMGTP]?i?B)(?= |$))?/.exec(last)?.[0] ?? "" : last);
  }

  /** Any other table of the page: sorts and filters the rows that are there. */
  function enhance(table) {
    const body = table.tBodies[0], headings = [...table.tHead?.rows[0]?.cells ?? []];
    const rows = [...body?.rows ?? []];
    if (rows.length < sortableFrom || rows.some((row) => row.cells.length !== headings.length)) return;
    const columns = headings.map((heading, i) => ({
      title: heading.textContent,
      text: (row) => row.cells[i].textContent,
      numeric: heading.classList.contains("n"),
      number: (row) => numberIn(row.cells[i].textContent, heading.classList.contains("n")),
    }));
    headings.forEach((heading, i) => sortHeading(heading, (descending) => body.append(...sorted(rows, columns[i], descending))));
    if (rows.length < filterableFrom) return;
    const [field, wrong] = filterField((text) => {
      const filter = filterOf(text, columns);
      for (const row of rows) row.hidden = !filter.test(row);
      return filter.wrong;
    });
    (table.closest(".charts") ?? table.parentNode).before(make("div", {class: "tools"}, field, wrong));
  }

  // ---- the runs

  function readRuns(element) {
    const data = JSON.parse(element.textContent);
    const columns = data.columns.map((column) => {
      const values = column.values;
      if (column.form === "text") {
        const sizes = column.sizes ?? [];
        return {...column, text: (run) => column.texts[values[run]], number: (run) => sizes[values[run]] ?? NaN,
                numeric: sizes.length > 0 && sizes.every((size) => size !== null)};
      }
      const word = forms[column.form];
      return {
        ...column,
        numeric: true,
        text: (run) => (values[run] === null || (column.dash && values[run] === 0) ? "-" : word(values[run])) +
                       (column.limit && over.has(run) ? " (!)" : ""),
        number: (run) => values[run] ?? NaN,
        word,
      };
    });
    const over = new Set(data.over), best = new Set(data.best);
    const all = Array.from({length: columns[0].values.length}, (_, run) => run);
    return {columns, over, best, all};
  }

  /** A heading of the page with what scripts put below it, in front of an element. */
  function section(before, title, words) {
    const into = make("section", {class: "worked"}, make("h2", {}, title), make("p", {class: "small"}, words));
    before.before(into);
    return into;
  }

  function runsTable(runs, box, listeners) {
    const shown = runs.columns.map((column) => column.shown !== false);
    const state = {rows: runs.all, page: 0, sort: null, descending: false, filter: {test: () => true, wrong: ""}, ranges: () => true, marked: null};
    const table = make("table"), counted = make("span", {role: "status"}), paper = make("p", {class: "small paper"});
    const back = make("button", {type: "button", click: () => turn(-1)}, "previous");
    const on = make("button", {type: "button", click: () => turn(1)}, "next");

    function turn(by) {
      state.page += by;
      draw();
    }

    function select() {
      state.rows = runs.all.filter((run) => state.filter.test(run) && state.ranges(run));
      if (state.sort) state.rows = sorted(state.rows, state.sort, state.descending);
      state.page = 0;
      draw();
      for (const listener of listeners) listener(state.rows);
    }

    function draw(onPaper = false) {
      const columns = runs.columns.filter((_, i) => shown[i]);
      const style = (column) => (column.form === "text" ? undefined : "n");
      const headings = columns.map((column) => {
        const heading = make("th", {class: style(column), scope: "col"}, column.title);
        sortHeading(heading, (descending) => {
          state.sort = column;
          state.descending = descending;
          select();
        });
        if (state.sort === column) heading.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
        return heading;
      });
      const first = onPaper ? 0 : state.page * rowsAPage;
      const some = state.rows.slice(first, first + (onPaper ? Math.floor(cellsOnPaper / columns.length) : rowsAPage));
      const rows = some.map((run) => make("tr", {class: runs.over.has(run) ? "over" : runs.best.has(run) ? "best" : undefined,
                                                 "aria-current": run === state.marked ? "true" : undefined},
                                          ...columns.map((column) => make("td", {class: style(column)}, column.text(run)))));
      const focused = [...table.querySelectorAll("button")].indexOf(document.activeElement);
      table.replaceChildren(make("thead", {}, make("tr", {}, ...headings)), make("tbody", {}, ...rows));
      if (focused >= 0) table.querySelectorAll("button")[focused]?.focus();
      counted.textContent = paper.textContent =
          (state.rows.length === 0 ? "no run" : `${first + 1} to ${first + some.length} of ${state.rows.length} runs`) +
          (state.rows.length < runs.all.length ? `, of ${runs.all.length} in all` : "");
      back.disabled = state.page === 0;
      on.disabled = first + rowsAPage >= state.rows.length;
    }

    const [field, wrong] = filterField((text) => {
      state.filter = filterOf(text, runs.columns);
      select();
      return state.filter.wrong;
    });
    const boxes = runs.columns.map((column, i) => make("label", {}, make("input", {type: "checkbox", checked: shown[i], change: (event) => {
      shown[i] = event.target.checked;
      draw();
    }}), " " + column.title));
    box.before(make("div", {class: "tools"}, field, make("details", {class: "choose"}, make("summary", {}, "columns"), ...boxes), counted, back, on, wrong));
    box.replaceChildren(table, paper);
    window.addEventListener("beforeprint", () => draw(true));
    window.addEventListener("afterprint", () => draw());
    for (const note of document.querySelectorAll(".part")) note.remove();
    draw();
    return {
      keep(test) {
        state.ranges = test;
        select();
      },
      mark(run, show = false) {
        state.marked = run;
        const at = state.rows.indexOf(run);
        if (at >= 0) state.page = Math.floor(at / rowsAPage);
        draw();
        if (show) table.querySelector("[aria-current]")?.scrollIntoView({block: "center"});
      },
    };
  }

  // ---- drawings on a canvas

  /** A canvas that is as wide as its place; `draw(context, width, height)` again whenever that changes. */
  function canvas(height, label, draw) {
    const element = make("canvas", {role: "img", "aria-label": label});
    const redraw = () => {
      const width = element.clientWidth, scale = window.devicePixelRatio || 1;
      if (width === 0) return;
      element.width = width * scale;
      element.height = height * scale;
      element.style.height = `${height}px`;
      const context = element.getContext("2d");
      context.scale(scale, scale);
      context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
      draw(context, width, height);
    };
    new ResizeObserver(redraw).observe(element);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    return {element, redraw};
  }

  /** Where the values of a column lie on an axis from 0 to 1: numbers by size, words in their order. */
  function scaleOf(runs, column) {
    if (!column.numeric) {
      const words = [...new Set(runs.all.map((run) => column.text(run)))];
      const places = new Map(words.map((word, i) => [word, words.length > 1 ? i / (words.length - 1) : 0.5]));
      const every = Math.ceil(words.length / 12);
      return {at: (run) => places.get(column.text(run)), words: words.length, ticks: words.map((word, i) => [places.get(word), word]).filter((_, i) => i % every === 0)};
    }
    let low = Infinity, high = -Infinity;
    for (const run of runs.all) {
      const value = column.number(run);
      if (Number.isNaN(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (!(low < high)) return {at: (run) => (Number.isNaN(column.number(run)) ? undefined : 0.5), ticks: low < Infinity ? [[0.5, wordOf(column, low)]] : []};
    const log = low > 0 && high / low > 30;
    const on = log ? Math.log : (value) => value;
    const place = (value) => (on(value) - on(low)) / (on(high) - on(low));
    const values = [...new Set(runs.all.map((run) => column.number(run)))].filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
    const every = Math.ceil(values.length / 8);  // of swept values, whose words are known
    const ticks = values.length <= 8 || column.form === "text" ? values.filter((_, i) => i % every === 0)
        : log ? Array.from({length: 5}, (_, i) => low * (high / low) ** (i / 4)) : roundTicks(low, high);
    return {at: (run) => (Number.isNaN(column.number(run)) ? undefined : place(column.number(run))),
            ticks: ticks.map((value) => [place(value), wordOf(column, value)]), ends: [low, high].map((value) => wordOf(column, value))};
  }

  /** The multiples of 1, 2 or 5 times a power of ten that lie between two numbers, about five of them. */
  function roundTicks(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough);
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; ++n) ticks.push(n * step);
    return ticks;
  }

  function wordOf(column, value) {
    if (column.form === "count") return plain(value).replace(/\.0+$/, "");
    if (column.word) return column.word(value);
    return column.texts[column.sizes.indexOf(value)];
  }

  const shortened = (text, longest) => (text.length > longest ? text.slice(0, longest - 1) + "…" : text);

  /** The texts, shortened by their ends; those that would then be alike, by their beginnings. */
  function toldApart(texts, longest) {
    const short = texts.map((text) => shortened(text, longest));
    return texts.map((text, i) =>
      short.indexOf(short[i]) === short.lastIndexOf(short[i]) || text.length <= longest ? short[i] : "…" + text.slice(1 - longest));
  }

  /** "run 12: ring all-reduce, 10Gbps: step 12.3 ms" */
  function describe(runs, run, columns) {
    const swept = runs.columns.filter((column) => column.swept || column.title === "strategy" || column.title === "model");
    const said = [...new Set([...swept, ...columns])].map((column) => `${column.title} ${column.text(run)}`);
    return `run ${runs.columns[0].text(run)}: ${said.join(", ")}`;
  }

  function scatter(runs, into, table) {
    const named = (title) => Math.max(0, runs.columns.findIndex((column) => column.title === title));
    const swept = runs.columns.findIndex((column) => column.swept && column.numeric);
    const axes = {x: swept >= 0 ? swept : named("devices"), y: named("images/s"), colour: named("strategy")};
    let rows = runs.all, points = [];
    const told = make("p", {class: "small", role: "status"}, "Point at a run to read it, press to find it in the table.");
    const plot = canvas(340, "The runs by the chosen axes; the table has their values", (context, width, height) => {
      const [x, y, c] = [axes.x, axes.y, axes.colour].map((i) => runs.columns[i]);
      const across = scaleOf(runs, x), up = scaleOf(runs, y), shade = scaleOf(runs, c);
      const left = 96, right = width - 20, top = 44, bottom = height - 44;
      context.clearRect(0, 0, width, height);
      context.strokeStyle = colour("--grid");
      context.fillStyle = colour("--soft");
      context.textAlign = "center";
      const apart = Math.ceil(across.ticks.length * 90 / (right - left));
      const below = toldApart(across.ticks.map(([, text]) => text), 14);
      across.ticks.forEach(([at], i) => {
        if (i % apart) return;
        const place = left + at * (right - left);
        line(context, place, top, place, bottom);
        const half = context.measureText(below[i]).width / 2;
        context.fillText(below[i], Math.min(place, width - half), bottom + 16);
      });
      context.fillText(x.title, (left + right) / 2, height - 8);
      context.textAlign = "right";
      const beside = toldApart(up.ticks.map(([, text]) => text), 13);
      let named = Infinity;  // where the last name stands: those of close values would lie on each other
      for (const [i, [at]] of up.ticks.entries()) {
        const place = bottom - at * (bottom - top);
        line(context, left, place, right, place);
        if (named - place < 14) continue;
        context.fillText(beside[i], left - 6, place + 4);
        named = place;
      }
      context.textAlign = "left";
      context.fillText(y.title, 4, 34);
      drawKey(context, shade, c, left, width);
      points = [];
      for (const run of rows) {
        const [px, py, tone] = [across.at(run), up.at(run), shade.at(run)];
        if (px === undefined || py === undefined) continue;
        const point = {run, x: left + px * (right - left), y: bottom - py * (bottom - top)};
        points.push(point);
        context.fillStyle = tone === undefined ? colour("--idle") : tint(shade, c, tone);
        context.beginPath();
        context.arc(point.x, point.y, rows.length > 2000 ? 2 : 4, 0, 2 * Math.PI);
        context.fill();
      }
    });
    const nearest = (event) => {
      const place = plot.element.getBoundingClientRect();
      const x = event.clientX - place.left, y = event.clientY - place.top;
      let best = null, least = 400;
      for (const point of points) {
        const far = (point.x - x) ** 2 + (point.y - y) ** 2;
        if (far < least) [best, least] = [point, far];
      }
      return best;
    };
    plot.element.addEventListener("pointermove", (event) => {
      const point = nearest(event);
      if (point) told.textContent = describe(runs, point.run, [axes.x, axes.y, axes.colour].map((i) => runs.columns[i]));
    });
    plot.element.addEventListener("click", (event) => {
      const point = nearest(event);
      if (point) table.mark(point.run, true);
    });
    const titles = runs.columns.map((column) => column.title);
    const choose = (axis) => (chosen) => {
      axes[axis] = chosen;
      plot.redraw();
    };
    into.append(make("div", {class: "tools"}, chooser("across", titles, axes.x, choose("x")), chooser("up", titles, axes.y, choose("y")),
                     chooser("colour", titles, axes.colour, choose("colour"))), plot.element, told);
    return (chosen) => {
      rows = chosen;
      plot.redraw();
    };
  }

  /** What the colours mean: each word, or the two ends of a range. */
  function drawKey(context, shade, column, left, width) {
    const words = shade.ends ? shade.ends.map((word, i) => [i, word]) : shade.ticks;
    let x = Math.max(left, 12 + context.measureText(`${column.title}:`).width);
    context.fillText(`${column.title}:`, 4, 12);
    const texts = toldApart(words.map(([, word]) => word), 30);
    for (const [i, [at]] of words.entries()) {
      const text = texts[i];
      if (x + 16 + context.measureText(text).width > width) break;
      context.fillStyle = tint(shade, column, at);
      context.fillRect(x, 3, 10, 10);
      context.fillStyle = colour("--soft");
      context.fillText(text, x + 14, 12);
      x += 30 + context.measureText(text).width;
    }
  }

  function line(context, x1, y1, x2, y2) {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }

  /** The page's colours for up to eight words, else from the first colour to the second. */
  function tint(scale, column, at) {
    if (scale.words <= 8) return colour(`--c${scale.ticks.findIndex(([place]) => place === at)}`);
    return `color-mix(in srgb, ${colour("--c1")} ${Math.round(100 * at)}%, ${colour("--c0")})`;
  }

  function parallel(runs, into, table) {
    const wanted = ["devices", "images/s", "step", "peak memory", "USD/epoch", "J/image"];
    const columns = runs.columns.filter((column) => column.swept || wanted.includes(column.title)).slice(0, 9);
    const scales = columns.map((column) => scaleOf(runs, column));
    const ranges = columns.map(() => null);
    let rows = runs.all, drag = null;
    const top = 34, foot = 20, height = 320;
    const fitting = (width) => columns.slice(0, Math.max(2, Math.floor((width - 120) / 80) + 1));
    const xOf = (i, width) => 60 + i * (width - 120) / Math.max(1, fitting(width).length - 1);
    const inside = (run) => ranges.every((range, i) => {
      if (!range) return true;
      const at = scales[i].at(run);
      return at !== undefined && at >= range[0] - 1e-9 && at <= range[1] + 1e-9;
    });
    const plot = canvas(height, "Runs as lines over parallel axes; the filter above the table keeps ranges too", (context, width) => {
      context.clearRect(0, 0, width, height);
      const kept = new Set(rows), yOf = (at) => height - foot - at * (height - foot - top);
      for (const [some, style, thick] of [[runs.all.filter((run) => !kept.has(run)), colour("--grid"), 0.6], [rows, colour("--c0"), 1]]) {
        context.strokeStyle = style;
        context.lineWidth = thick;
        context.globalAlpha = some.length > 500 ? 0.25 : 0.7;
        for (const run of some) {
          context.beginPath();
          let drawn = false;
          fitting(width).forEach((_, i) => {
            const at = scales[i].at(run);
            if (at === undefined) return;
            if (drawn) context.lineTo(xOf(i, width), yOf(at));
            else context.moveTo(xOf(i, width), yOf(at));
            drawn = true;
          });
          context.stroke();
        }
      }
      context.globalAlpha = 1;
      context.lineWidth = 1;
      context.textAlign = "center";
      fitting(width).forEach((column, i) => {
        const x = xOf(i, width);
        context.strokeStyle = colour("--axis");
        line(context, x, top, x, height - foot);
        context.fillStyle = colour("--ink");
        context.fillText(shortened(column.title, 16), x, 14);
        context.fillStyle = colour("--soft");
        if (scales[i].ticks.length) {
          const ends = scales[i].ends ?? [0, scales[i].ticks.length - 1].map((tick) => scales[i].ticks[tick][1]);
          context.fillText(shortened(ends[1], 14), x, 28);
          context.fillText(shortened(ends[0], 14), x, height - 6);
        }
        if (ranges[i]) {
          context.fillStyle = colour("--c1");
          context.globalAlpha = 0.35;
          context.fillRect(x - 7, yOf(ranges[i][1]), 14, yOf(ranges[i][0]) - yOf(ranges[i][1]));
          context.globalAlpha = 1;
        }
      });
    });
    const placeOf = (event) => {
      const box = plot.element.getBoundingClientRect();
      return [event.clientX - box.left, Math.min(1, Math.max(0, (height - foot - (event.clientY - box.top)) / (height - foot - top)))];
    };
    plot.element.addEventListener("pointerdown", (event) => {
      const [x, at] = placeOf(event), width = plot.element.clientWidth;
      const axis = fitting(width).findIndex((_, i) => Math.abs(xOf(i, width) - x) < 20);
      if (axis < 0) return;
      drag = {axis, from: at};
      plot.element.setPointerCapture(event.pointerId);
      ranges[axis] = null;
      plot.redraw();
    });
    plot.element.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const at = placeOf(event)[1];
      ranges[drag.axis] = [Math.min(at, drag.from), Math.max(at, drag.from)];
      plot.redraw();
    });
    plot.element.style.touchAction = "none";
    for (const end of ["pointerup", "pointercancel"]) plot.element.addEventListener(end, () => {
      if (!drag) return;
      const range = ranges[drag.axis];
      if (range && range[1] - range[0] < 0.01) ranges[drag.axis] = null;
      drag = null;
      table.keep(inside);
    });
    const all = make("button", {type: "button", click: () => {
      ranges.fill(null);
      table.keep(inside);
    }}, "all runs");
    into.append(plot.element, make("p", {class: "small"}, "Drag along an axis to keep a range, press it to let the range go. "), all);
    return (chosen) => {
      rows = chosen;
      plot.redraw();
    };
  }

  /** A slider for each number or word that was swept, and the figures of the run at that point. */
  function sliders(runs, before, table) {
    const swept = runs.columns.filter((column) => column.swept);
    if (swept.length === 0) return;
    const into = section(before, "One point of the sweep", "The figures of the run at the chosen values.");
    const values = swept.map((column) => {
      const words = [...new Set(runs.all.map((run) => column.text(run)))];
      if (column.numeric) {
        const sizes = new Map(runs.all.map((run) => [column.text(run), column.number(run)]));
        words.sort((a, b) => sizes.get(a) - sizes.get(b));
      }
      return words;
    });
    const key = (words) => words.join("\n");
    const at = new Map();
    for (const run of runs.all) {
      const place = key(swept.map((column) => column.text(run)));
      if (!at.has(place)) at.set(place, []);
      at.get(place).push(run);
    }
    const start = runs.all.find((run) => runs.best.has(run)) ?? 0;
    const chosen = swept.map((column, i) => values[i].indexOf(column.text(start)));
    const figures = runs.columns.filter((column) => column.form !== "text" && column.shown !== false && column.title !== "run");
    const told = make("p", {role: "status"});
    const read = () => {
      const here = at.get(key(chosen.map((value, i) => values[i][value]))) ?? [], run = here[0];
      told.textContent = run === undefined ? "This point was not simulated, or it failed."
          : `Run ${runs.columns[0].text(run)}${here.length > 1 ? `, the first of ${here.length} runs here` : ""}: ` + figures.map((column) => `${column.title} ${column.text(run)}`).join(", ") + ".";
      return run;
    };
    const bars = swept.map((column, i) => {
      const said = make("output", {}, values[i][chosen[i]]);
      return make("label", {class: "slider"}, column.title + " ", make("input", {type: "range", min: 0, max: values[i].length - 1, value: chosen[i],
        "aria-valuetext": values[i][chosen[i]],
        input: (event) => {
          chosen[i] = Number(event.target.value);
          said.textContent = values[i][chosen[i]];
          event.target.setAttribute("aria-valuetext", said.textContent);
          read();
        },
        change: () => {
          const run = read();
          if (run !== undefined) table.mark(run);
        }}), " ", said);
    });
    into.append(make("div", {class: "sliders"}, ...bars), told);
    read();
  }

  // ---- time lines

  /** Zooms all drawings of a step together: buttons, the wheel with Ctrl, dragging. */
  function zoomable(drawings) {
    const shown = {from: 0, to: 1};
    const parts = drawings.map((svg) => {
      const [left, right, end, unit] = ["left", "right", "end", "unit"].map((name) => Number(svg.dataset[name]));
      const drawn = (name) => document.createElementNS(svg.namespaceURI, name);
      const group = drawn("g"), outer = drawn("g"), clip = drawn("clipPath"), box = drawn("rect");
      clip.id = `time-${document.querySelectorAll("clipPath").length}`;
      for (const [name, value] of Object.entries({x: left, y: 0, width: right - left, height: svg.viewBox.baseVal.height})) box.setAttribute(name, value);
      clip.append(box);
      outer.setAttribute("clip-path", `url(#${clip.id})`);
      const shapes = [...svg.querySelectorAll(".over-time")];
      shapes[0]?.before(outer);
      group.append(...shapes);
      outer.append(group);
      svg.append(clip);
      return {svg, group, left, right, end, unit, ticks: [...svg.querySelectorAll(".time-tick")]};
    });

    function draw() {
      const size = 1 / (shown.to - shown.from);
      for (const part of parts) {
        const width = part.right - part.left;
        part.group.setAttribute("transform", `translate(${part.left * (1 - size) - shown.from * width * size} 0) scale(${size} 1)`);
        drawTicks(part);
      }
      out.disabled = whole.disabled = size <= 1;
    }

    function drawTicks(part) {
      const low = shown.from * part.end / part.unit, high = shown.to * part.end / part.unit;
      const needed = roundTicks(low, high), step = needed[1] - needed[0];
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      const lines = part.ticks.filter((tick) => tick.tagName === "line"), texts = part.ticks.filter((tick) => tick.tagName === "text");
      while (lines.length < needed.length) {
        for (const some of [lines, texts]) {
          const copy = some[0].cloneNode(true);
          some[0].after(copy);
          part.ticks.push(copy);
          some.push(copy);
        }
      }
      lines.forEach((tick, i) => place(tick, texts[i], needed[i], (value) => part.left + (value - low) / (high - low) * (part.right - part.left), digits));
    }

    function place(tick, text, value, at, digits) {
      tick.style.display = text.style.display = value === undefined ? "none" : "";
      if (value === undefined) return;
      for (const [element, name] of [[tick, "x1"], [tick, "x2"], [text, "x"]]) element.setAttribute(name, at(value));
      text.textContent = value.toFixed(digits);
    }

    /** Zooms by a factor around a place from 0 to 1 of what is shown. */
    function zoom(by, around = 0.5) {
      const width = Math.min(1, Math.max(1e-4, (shown.to - shown.from) / by));
      const from = shown.from + around * (shown.to - shown.from - width);
      shown.from = Math.min(Math.max(0, from), 1 - width);
      shown.to = shown.from + width;
      draw();
    }

    function move(by) {
      const width = shown.to - shown.from;
      shown.from = Math.min(Math.max(0, shown.from + by * width), 1 - width);
      shown.to = shown.from + width;
      draw();
    }

    const button = (text, label, click) => make("button", {type: "button", "aria-label": label, click}, text);
    const out = button("−", "zoom out", () => zoom(0.5)), whole = button("whole step", "show the whole step", () => zoom(0));
    const bar = make("div", {class: "tools"}, button("+", "zoom in", () => zoom(2)), out, button("←", "earlier", () => move(-0.25)),
                     button("→", "later", () => move(0.25)), whole);
    drawings[0].closest("figure").before(bar);
    for (const part of parts) {
      const share = (event) => {
        const box = part.svg.getBoundingClientRect(), drawn = part.svg.viewBox.baseVal.width;
        return ((event.clientX - box.left) * drawn / box.width - part.left) / (part.right - part.left);
      };
      let held = null;
      part.svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        zoom(event.deltaY < 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, share(event))));
      }, {passive: false});
      part.svg.addEventListener("pointerdown", (event) => { held = share(event); });
      part.svg.addEventListener("pointermove", (event) => {
        if (held === null || event.buttons === 0) return;
        move(held - share(event));
        held = share(event);
      });
    }
    draw();
  }

  // ---- the page

  const data = document.getElementById("runs-data"), box = document.getElementById("runs-table");
  if (data && box) {
    const runs = readRuns(data), listeners = [];
    const table = runsTable(runs, box, listeners);
    if (runs.all.length > 1) {
      const after = document.getElementById("runs-end");
      sliders(runs, after, table);
      listeners.push(scatter(runs, section(after, "Any two figures", "What the filter of the table leaves; the axes can be chosen."), table));
      listeners.push(parallel(runs, section(after, "Parallel coordinates", "A line a run, an axis a figure."), table));
    }
  }
  for (const table of document.querySelectorAll(".scroll > table")) if (!box?.contains(table)) enhance(table);
  for (const step of document.querySelectorAll(".step-drawings")) zoomable([...step.querySelectorAll("svg[data-end]")]);
})();
