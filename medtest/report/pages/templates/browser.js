// Script of reports and comparisons: folded sections and tables, and the browser of cases. One classic script without
// modules, so that the page works from disk.
(() => {
  "use strict";
  const ROWS = 12;

  // Rows after the twelfth are hidden until asked for; the sums at the end stay.
  for (const table of document.querySelectorAll("main table")) {
    const rows = [...table.rows].filter((row) => row.querySelector("td"));
    const sums = rows.findLastIndex ? rows.findLastIndex((row) => row.matches(".first")) : -1;
    const end = sums > 0 && rows.length - sums <= 4 ? sums : rows.length;
    const hidden = rows.slice(ROWS, end).filter((row) => !row.matches(".sum, .total"));
    if (hidden.length < 2) continue;
    for (const row of hidden) row.classList.add("folded");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "unfold";
    button.textContent = `Show ${hidden.length} more rows`;
    button.addEventListener("click", () => {
      for (const row of hidden) row.classList.remove("folded");
      button.remove();
    });
    (table.closest(".scroll") || table).after(button);
  }

  const unfold = () => {
    const name = location.hash.slice(1);
    const target = name && !name.includes(":") ? document.getElementById(name) : null;
    const details = target && target.querySelector(":scope > details");
    if (details && !details.open) {
      details.open = true;
      target.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", unfold);
  unfold();

  // What scrolls sideways can be reached and scrolled with the keyboard.
  const reachable = () => {
    for (const one of document.querySelectorAll(".scroll, .strip .picture, .command")) {
      if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    }
  };
  document.addEventListener("toggle", reachable, true);
  window.addEventListener("resize", reachable);
  reachable();

  // Paper shows everything.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
})();

// A browser of cases; its data stands in the element after it.
function browse(root) {
  "use strict";
  const data = JSON.parse(root.nextElementSibling.textContent);
  const HASH = `#${root.dataset.name}:`;
  const { columns, names, systems, pictures } = data;
  const total = columns.address.length;
  const SVG = "http://www.w3.org/2000/svg";
  const STEP = 60;
  const LARGEST = 8;
  const FACTORS = Object.keys(columns).filter((name) => name.startsWith("factor_") && columns[name].some((v) => v !== null));
  const DEFAULTS = {
    relation: "", severity: "", dataset: "", verdict: "", only: "", factor: "", from: "", to: "", least: "", most: "",
    sort: "loss", case: "", system: "0",
  };
  const SORTS = { loss: "largest loss", score: "lowest score", address: "address", relation: "relation", severity: "severity" };

  const state = { ...DEFAULTS };
  let chosen = [];
  let shown = STEP;
  let zoom = 1;
  let shift = [0, 0];
  let flicked = false;
  const BINARY = systems.every((system) => system.columns.after.every((value) => value === null || value === 0 || value === 1));
  const OUTLINED = systems.some((system) => (system.names.outlines || []).length);
  const overlay = { expected: true, answered: true };

  // ------------------------------------------------------------------------------------------------------- elements

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  function drawn(tag, attributes) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  const text = (column, row) => names[column][columns[column][row]] || "";
  const own = (row, column, system = Number(state.system)) => systems[system].columns[column][row];
  const ownText = (row, column, system = Number(state.system)) => systems[system].names[column][own(row, column, system)] || "";
  const words = (name) => name.replace(/_/g, " ");
  const fixed = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
  const address = (row) => columns.address[row];

  function sourceOf(number) {
    if (number === null || number === undefined) return "";
    const entry = pictures[number];
    return entry.startsWith("browser/") ? entry : `data:image/webp;base64,${entry}`;
  }

  // ---------------------------------------------------------------------------------------------- filters and order

  function inRange(value, least, most) {
    if (least === "" && most === "") return true;
    if (value === null) return false;
    return (least === "" || value >= Number(least)) && (most === "" || value <= Number(most));
  }

  const anyOf = (row, test) => systems.some((_, system) => test(system));

  function matches(row) {
    if (state.relation && text("relation", row) !== state.relation) return false;
    if (state.severity !== "" && String(columns.severity[row]) !== state.severity) return false;
    if (state.dataset && text("dataset", row) !== state.dataset) return false;
    if (state.verdict && !anyOf(row, (system) => ownText(row, "verdict", system) === state.verdict)) return false;
    if (state.only !== "" && ownText(row, "verdict", Number(state.only)) !== "violation") return false;
    if (state.factor && columns[state.factor] && !inRange(columns[state.factor][row], state.from, state.to)) return false;
    return inRange(own(row, "after"), state.least, state.most);
  }

  const worst = (row, column, sign) => {
    const values = systems.map((_, system) => own(row, column, system)).filter((value) => value !== null);
    return values.length ? sign * Math.max(...values.map((value) => sign * value)) : null;
  };

  const ORDER = {
    loss: (a, b) => (worst(b, "loss", 1) ?? -Infinity) - (worst(a, "loss", 1) ?? -Infinity),
    score: (a, b) => (worst(a, "after", -1) ?? Infinity) - (worst(b, "after", -1) ?? Infinity),
    address: (a, b) => (address(a) < address(b) ? -1 : 1),
    relation: (a, b) => text("relation", a).localeCompare(text("relation", b)) || ORDER.loss(a, b),
    severity: (a, b) => columns.severity[b] - columns.severity[a] || ORDER.loss(a, b),
  };

  function choose() {
    chosen = [];
    for (let row = 0; row < total; row += 1) if (matches(row)) chosen.push(row);
    chosen.sort((a, b) => (ORDER[state.sort] || ORDER.loss)(a, b) || a - b);
  }

  // ----------------------------------------------------------------------------------------------- links (the hash)

  function link() {
    const parts = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) if (value !== DEFAULTS[name]) parts.set(name, value);
    return HASH + parts;
  }

  function follow() {
    if (!location.hash.startsWith(HASH)) return false;
    const parts = new URLSearchParams(location.hash.slice(HASH.length));
    Object.assign(state, DEFAULTS);
    for (const name of Object.keys(DEFAULTS)) if (parts.has(name)) state[name] = parts.get(name);
    if (!systems[Number(state.system)]) state.system = "0";
    if (state.only !== "" && !systems[Number(state.only)]) state.only = "";
    return true;
  }

  // -------------------------------------------------------------------------------------------------------- filters

  const fields = {};

  function field(label, name, input) {
    fields[name] = input;
    input.addEventListener("change", () => {
      state[name] = input.value;
      shown = STEP;
      redraw();
    });
    return make("label", {}, make("span", {}, label), input);
  }

  function select(label, name, options, every = "all") {
    const known = [...new Set(options.map(String))];
    if (every !== null && known.length < 2 && !state[name]) return null;
    const list = make("select", { name });
    if (every !== null) list.append(make("option", { value: "" }, every));
    for (const value of known) list.append(make("option", { value }, words(SORTS[value] && name === "sort" ? SORTS[value] : value)));
    return field(label, name, list);
  }

  const number = (label, name) => field(label, name, make("input", { type: "number", step: "any", name, inputmode: "decimal" }));

  function filters() {
    const verdicts = systems.flatMap((system) => system.names.verdict || []);
    const form = make("form", { class: "filters", "aria-label": "Filter and sort cases", onsubmit: (event) => event.preventDefault() });
    const alone = make("select", { name: "only" }, make("option", { value: "" }, "any"));
    systems.forEach((system, index) => alone.append(make("option", { value: index }, system.name)));
    const factor = FACTORS.length ? make("select", { name: "factor" }, make("option", { value: "" }, "none")) : null;
    for (const name of FACTORS) factor.append(make("option", { value: name }, words(name.slice(7))));
    const all = [
      select("Relation", "relation", names.relation),
      select("Severity", "severity", [...new Set(columns.severity)].sort((a, b) => a - b)),
      select("Data set", "dataset", names.dataset),
      select("Verdict", "verdict", verdicts),
      systems.length > 1 ? field("Violated by", "only", alone) : null,
      BINARY ? null : number(`${data.score}, least`, "least"),
      BINARY ? null : number(`${data.score}, most`, "most"),
      factor ? field("Factor", "factor", factor) : null,
      factor ? number("Factor, least", "from") : null,
      factor ? number("Factor, most", "to") : null,
      select("Sort by", "sort", Object.keys(SORTS), null),
    ];
    form.append(...all.filter(Boolean));
    form.append(make("button", { type: "button", onclick: () => { Object.assign(state, DEFAULTS); shown = STEP; redraw(); } }, "Reset"));
    return form;
  }

  // ------------------------------------------------------------------------------------------------------- pictures

  function outlines(system, column, row) {
    const number = own(row, column, system);
    if (number === null || number === undefined) return null;
    const [width, height, ...paths] = systems[system].names.outlines[number].split(" ");
    const [expected, answered] = paths.map((path) => systems[system].names.paths[path]);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const [name, path] of [["expected", expected], ["answered", answered]]) {
      if (path && overlay[name]) svg.append(drawn("path", { d: path, class: name, "fill-rule": "evenodd" }));
    }
    return svg;
  }

  function boxes(list) {
    return (list || []).map(([[left, top, right, bottom], label]) => {
      const box = make("span", { class: "box" }, make("span", {}, label));
      Object.assign(box.style, { left: `${100 * left}%`, top: `${100 * top}%`, width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%` });
      return box;
    });
  }

  // The picture of a case: "source", "picture" (the follow-up) or "drawn" (an answer that is a picture).
  function face(row, which, system = Number(state.system)) {
    const prompt = data.prompts;
    const extra = own(row, "extra", system) || {};
    const isSource = which === "source";
    let image = columns[which] ? columns[which][row] : null;
    let marks = isSource ? "source_marks" : "marks";
    let list = [];
    if (prompt || which === "drawn") {
      image = own(row, isSource ? "source_drawn" : "drawn", system);
      marks = null;
      list = overlay.answered ? boxes(isSource ? extra.source_boxes : extra.boxes) : [];
    }
    const node = make("span", { class: "face" });
    const address = sourceOf(image);
    if (!address) {
      node.classList.add("none");
      node.append(make("span", {}, "no picture"));
      return node;
    }
    node.append(make("img", { src: address, alt: isSource ? "source" : which === "drawn" ? "answer" : "follow-up", draggable: "false" }));
    const svg = marks ? outlines(system, marks, row) : null;
    if (svg) node.append(svg);
    node.append(...list);
    return node;
  }

  // ----------------------------------------------------------------------------------------------------------- grid

  const status = make("p", { class: "faint count", role: "status" });
  const body = make("div", {});

  function scoreWords(row, system) {
    const verdict = ownText(row, "verdict", system);
    if (own(row, "after", system) === null) return `${verdict}${ownText(row, "reason", system) ? `: ${ownText(row, "reason", system)}` : ""}`;
    const short = (own(row, "extra", system) || {}).short;
    return short || `${fixed(own(row, "before", system))} → ${fixed(own(row, "after", system))}`;
  }

  function title(row) {
    const severity = columns.severity[row] ? `, severity ${columns.severity[row]}` : "";
    const item = text("item", row);
    return `${words(text("relation", row))}${severity}${item ? `: ${words(item)}` : ""}`;
  }

  function card(row) {
    const caption = make("span", { class: "caption" }, make("b", {}, title(row)));
    systems.forEach((system, index) => {
      const bad = ownText(row, "verdict", index) === "violation";
      caption.append(make("span", { class: bad ? "bad" : "" }, `${systems.length > 1 ? `${system.name}: ` : ""}${scoreWords(row, index)}`));
    });
    return make("li", {}, make("button", { type: "button", class: "card-button", "data-row": row, onclick: () => open(row) }, face(row, "picture"), caption));
  }

  function grid() {
    const list = make("ul", { class: "grid" });
    for (const row of chosen.slice(0, shown)) list.append(card(row));
    list.addEventListener("keydown", (event) => {
      const cards = [...list.querySelectorAll("button")];
      const at = cards.indexOf(document.activeElement);
      if (at < 0) return;
      const across = Math.max(1, cards.filter((one) => one.offsetTop === cards[0].offsetTop).length);
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
      if (!step || !cards[at + step]) return;
      event.preventDefault();
      cards[at + step].focus();
    });
    body.replaceChildren(list);
    if (chosen.length > shown) {
      body.append(make("button", { type: "button", onclick: () => {
        const next = chosen[shown];
        shown += STEP;
        redraw();
        focusOn(next);
      } }, `Show ${Math.min(STEP, chosen.length - shown)} more of ${chosen.length - shown}`));
    }
  }

  function focusOn(row) {
    const found = body.querySelector(`[data-row="${row}"]`);
    if (found) found.focus();
  }

  // ---------------------------------------------------------------------------------------------------- single view

  function open(row) {
    state.case = address(row);
    flicked = false;
    redraw();
    const stage = body.querySelector(".stage");
    if (stage) stage.focus();
  }

  function close() {
    const row = columns.address.indexOf(state.case);
    state.case = "";
    const at = chosen.indexOf(row);
    if (at >= shown) shown = STEP * Math.ceil((at + 1) / STEP);
    redraw();
    focusOn(row);
  }

  function go(row, step) {
    const at = chosen.indexOf(row) + step;
    if (at >= 0 && at < chosen.length) open(chosen[at]);
  }

  function place(stage) {
    const limit = (zoom - 1) / 2;
    shift = shift.map((value) => Math.max(-limit, Math.min(limit, value)));
    for (const one of stage.querySelectorAll(".face")) {
      one.style.transform = `translate(${100 * shift[0]}%, ${100 * shift[1]}%) scale(${zoom})`;
    }
  }

  function enlarge(stage, factor) {
    zoom = Math.max(1, Math.min(LARGEST, factor === 0 ? 1 : zoom * factor));
    place(stage);
  }

  function dragged(stage) {
    let from = null;
    stage.addEventListener("pointerdown", (event) => {
      if (zoom === 1) return;
      from = [event.clientX, event.clientY, ...shift];
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!from) return;
      const size = stage.querySelector(".pane").clientWidth;
      shift = [from[2] + (event.clientX - from[0]) / size, from[3] + (event.clientY - from[1]) / size];
      place(stage);
    });
    for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, () => { from = null; });
    stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && zoom === 1) return; // scrolls the page until something is enlarged
      event.preventDefault();
      enlarge(stage, event.deltaY < 0 ? 1.25 : 0.8);
    }, { passive: false });
  }

  function pane(row, which, name) {
    return make("figure", { class: `pane ${name.split(" ")[0]}` }, make("div", { class: "frame" }, face(row, which)), make("figcaption", {}, name));
  }

  function panes(row) {
    const stage = make("div", { class: "stage", tabindex: "0", role: "group", "aria-label": "Pictures: space flickers, arrow keys change the case" });
    const follow = flicked ? pane(row, "source", "source (flicker)") : pane(row, "picture", "follow-up");
    stage.append(pane(row, "source", "source"), follow);
    if (!data.prompts && own(row, "drawn") !== null) stage.append(pane(row, "drawn", "answer"));
    place(stage);
    dragged(stage);
    return stage;
  }

  // A text with its passages of evidence marked.
  function marked(content, passages) {
    const node = make("span", {});
    let rest = content;
    for (;;) {
      const next = passages.map((passage) => [rest.indexOf(passage), passage]).filter(([at]) => at >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      node.append(rest.slice(0, next[0]), make("mark", {}, next[1]));
      rest = rest.slice(next[0] + next[1].length);
    }
    node.append(rest);
    return node;
  }

  function bars(list) {
    const table = make("table", { class: "bars" }, make("caption", {}, "Class probabilities"));
    table.append(make("tr", {}, ...["class", "source", "follow-up"].map((name) => make("th", { scope: "col" }, name))));
    for (const [name, before, after, expected] of list) {
      const cell = (value) => {
        const bar = make("i", {});
        bar.style.width = `${100 * (value || 0)}%`;
        return make("td", {}, make("span", {}, fixed(value)), bar);
      };
      table.append(make("tr", {}, make("th", { scope: "row" }, name, expected ? make("b", {}, " expected") : null), cell(before), cell(after)));
    }
    return table;
  }

  function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'"'"'`)}'`;
  }

  function command(row) {
    const line = data.replay + quoted(address(row));
    const shownLine = make("code", { class: "command mono", tabindex: "0" }, line);
    const copied = make("span", { role: "status", class: "faint" });
    const copy = () => {
      const done = () => { copied.textContent = " copied"; };
      const byHand = () => {
        getSelection().selectAllChildren(shownLine);
        if (document.execCommand("copy")) done();
      };
      if (navigator.clipboard) navigator.clipboard.writeText(line).then(done, byHand);
      else byHand();
    };
    return make("div", { class: "replay" }, shownLine, make("button", { type: "button", onclick: copy }, "Copy command"), copied);
  }

  function facts(row) {
    const list = make("dl", {});
    const add = (name, value) => value !== "" && list.append(make("dt", {}, name), make("dd", {}, value));
    add("address", address(row));
    systems.forEach((system, index) => {
      const verdict = ownText(row, "verdict", index);
      const loss = own(row, "loss", index);
      const tag = make("span", { class: `tag ${verdict === "violation" ? "bad" : verdict === "no violation" ? "good" : "note"}` }, verdict);
      const said = own(row, "after", index) === null ? "" : `${BINARY ? "" : data.score} ${scoreWords(row, index)}${BINARY || loss === null ? "" : `, loss ${(100 * loss).toFixed(1)} %`}`;
      add(systems.length > 1 ? system.name : "verdict", make("span", {}, tag, said, ownText(row, "reason", index) ? ` ${ownText(row, "reason", index)}` : ""));
    });
    if (columns.scale[row] !== null) add("scale", String(columns.scale[row]));
    const strip = data.strips[address(row)];
    if (strip) add("at full size", make("a", { href: strip, target: "_blank" }, strip));
    for (const name of FACTORS) if (columns[name][row] !== null) add(words(name.slice(7)), String(columns[name][row]));
    return list;
  }

  function texts(row) {
    const extra = own(row, "extra") || {};
    const parts = [];
    if (extra.words) {
      const list = make("dl", { class: "words" });
      for (const [name, content] of extra.words) list.append(make("dt", {}, name), make("dd", {}, marked(content, extra.marked || [])));
      parts.push(list);
    }
    if (extra.bars && extra.bars.length) parts.push(bars(extra.bars));
    return parts;
  }

  function toggle(name, key, pressed, act) {
    return make("button", { type: "button", "aria-pressed": String(pressed), "aria-keyshortcuts": key, onclick: act }, name);
  }

  function single(row) {
    const at = chosen.indexOf(row);
    const again = (which) => () => act(which, row);
    const tools = make("div", { class: "tools", role: "toolbar", "aria-label": "Case" },
      make("button", { type: "button", onclick: close, "aria-keyshortcuts": "Escape" }, "All cases"),
      make("button", { type: "button", onclick: () => go(row, -1), disabled: at <= 0, "aria-keyshortcuts": "ArrowLeft" }, "Previous"),
      make("button", { type: "button", onclick: () => go(row, 1), disabled: at < 0 || at >= chosen.length - 1, "aria-keyshortcuts": "ArrowRight" }, "Next"),
      toggle("Flicker", "Space", flicked, again(" ")),
      OUTLINED ? toggle("Expected", "e", overlay.expected, again("e")) : "",
      OUTLINED || data.prompts ? toggle("Answer", "a", overlay.answered, again("a")) : "",
      make("button", { type: "button", onclick: again("+"), "aria-label": "Zoom in" }, "+"),
      make("button", { type: "button", onclick: again("-"), "aria-label": "Zoom out" }, "−"),
      make("button", { type: "button", onclick: again("0"), "aria-label": "Whole picture" }, "1:1"));
    if (systems.length > 1) {
      const list = make("select", { "aria-label": "Answers of", onchange: (event) => { state.system = event.target.value; redraw(); } });
      systems.forEach((system, index) => list.append(make("option", { value: index, selected: String(index) === state.system }, system.name)));
      tools.append(list);
    }
    const heading = make("h3", {}, title(row), " ", make("span", { class: "faint" }, at < 0 ? "" : `${at + 1} of ${chosen.length}`));
    const legend = make("p", { class: "legend" },
      OUTLINED ? make("span", {}, make("i", { class: "expected" }), data.expected) : null,
      OUTLINED ? make("span", {}, make("i", { class: "answered" }), "answered") : null,
      make("span", {}, "Keys: ← → case, space flicker, e and a outlines, + − 0 zoom, Esc back"));
    const view = make("div", { class: "single" }, tools, heading, panes(row), legend, ...texts(row), facts(row), command(row));
    view.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input")) return;
      if (event.key === " " && event.target.matches("button")) return;
      if (act(event.key, row)) event.preventDefault();
    });
    body.replaceChildren(view);
  }

  function act(key, row) {
    const stage = body.querySelector(".stage");
    const focused = document.activeElement && document.activeElement.textContent;
    const step = 0.1;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (zoom > 1 && moves[key] && document.activeElement === stage) {
      shift = [shift[0] + moves[key][0], shift[1] + moves[key][1]];
      place(stage);
      return true;
    }
    if (key === "ArrowLeft") go(row, -1);
    else if (key === "ArrowRight") go(row, 1);
    else if (key === "Escape") close();
    else if (key === "+" || key === "=") enlarge(stage, 1.5);
    else if (key === "-") enlarge(stage, 1 / 1.5);
    else if (key === "0") enlarge(stage, 0);
    else if (key === " " || key === "e" || key === "a") {
      if (key === " ") flicked = !flicked;
      if (key === "e") overlay.expected = !overlay.expected;
      if (key === "a") overlay.answered = !overlay.answered;
      single(row);
      const button = [...body.querySelectorAll(".tools button")].find((one) => one.textContent === focused);
      (button || body.querySelector(".stage")).focus();
    } else return false;
    return true;
  }

  // ---------------------------------------------------------------------------------------------------------- start

  function redraw(linking = true) {
    choose();
    for (const [name, input] of Object.entries(fields)) input.value = state[name];
    const row = state.case ? columns.address.indexOf(state.case) : -1;
    status.textContent = `${chosen.length.toLocaleString("en")} of ${total.toLocaleString("en")} cases`;
    form.hidden = row >= 0;
    status.hidden = row >= 0;
    if (row >= 0) single(row);
    else grid();
    if (linking) history.replaceState(null, "", link());
  }

  const linked = follow();
  if (!linked && systems.length === 1 && (systems[0].names.verdict || []).includes("violation")) state.verdict = "violation";
  const form = filters();
  root.append(form, status, body);
  if (data.note) root.append(make("p", { class: "faint" }, data.note));
  root.hidden = false;
  document.documentElement.classList.add("js");
  redraw(false);
  if (linked) root.scrollIntoView();
  window.addEventListener("hashchange", () => { if (follow()) redraw(false); });
}

for (const root of document.querySelectorAll(".browser")) browse(root);
