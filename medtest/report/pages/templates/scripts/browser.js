// A browser of cases; its data stands in the element after it.
function browse(root) {
  "use strict";
  const data = JSON.parse(root.nextElementSibling.textContent);
  const HASH = `#${root.dataset.name}:`;
  const { columns, names, systems, pictures } = data;
  const total = columns.address.length;
  const STEP = 60;
  const FACTORS = Object.keys(columns).filter((name) => name.startsWith("factor_") && columns[name].some((v) => v !== null));
  const DEFAULTS = {
    relation: "", severity: "", dataset: "", verdict: "", only: "", factor: "", from: "", to: "", least: "", most: "",
    sort: "loss", case: "", system: "0",
  };
  const SORTS = { loss: "largest loss", score: "lowest score", address: "address", relation: "relation", severity: "severity" };

  const state = { ...DEFAULTS };
  let chosen = [];
  let shown = STEP;
  const lens = makeLens();
  let flicked = false;
  const BINARY = systems.every((system) => system.columns.after.every((value) => value === null || value === 0 || value === 1));
  const OUTLINED = systems.some((system) => (system.names.outlines || []).length);
  const overlay = { expected: true, answered: true };

  // ------------------------------------------------------------------------------------------------------- elements

  const text = (column, row) => names[column][columns[column][row]] || "";
  const own = (row, column, system = Number(state.system)) => systems[system].columns[column][row];
  const ownText = (row, column, system = Number(state.system)) => systems[system].names[column][own(row, column, system)] || "";
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
    const failing = systems.filter((_, index) => ownText(row, "verdict", index) === "violation").length;
    if (systems.length > 3) caption.append(make("span", {}, `violated by ${failing} of ${systems.length} systems`));
    else systems.forEach((system, index) => {
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
    root.scrollIntoView();
    const stage = body.querySelector(".stage");
    if (stage) stage.focus({ preventScroll: true });
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

  function pane(row, which, name) {
    return make("figure", { class: `pane ${name.split(" ")[0]}` }, make("div", { class: "frame" }, face(row, which)), make("figcaption", {}, name));
  }

  function panes(row) {
    const stage = make("div", { class: "stage", tabindex: "0", role: "group", "aria-label": "Pictures: space flickers, arrow keys change the case" });
    const follow = flicked ? pane(row, "source", "source (flicker)") : pane(row, "picture", "follow-up");
    stage.append(pane(row, "source", "source"), follow);
    if (!data.prompts && own(row, "drawn") !== null) stage.append(pane(row, "drawn", "answer"));
    lens.follow(stage);
    return stage;
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
    const view = make("div", { class: "single" }, tools, heading, panes(row), legend, ...texts(row), facts(row), command(data.replay + quoted(address(row))));
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
    if (lens.zoomed() && moves[key] && document.activeElement === stage) {
      lens.move(stage, moves[key]);
      return true;
    }
    if (key === "ArrowLeft") go(row, -1);
    else if (key === "ArrowRight") go(row, 1);
    else if (key === "Escape") close();
    else if (key === "+" || key === "=") lens.enlarge(stage, 1.5);
    else if (key === "-") lens.enlarge(stage, 1 / 1.5);
    else if (key === "0") lens.enlarge(stage, 0);
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
  window.addEventListener("hashchange", () => { if (follow()) { redraw(false); root.scrollIntoView(); } });
}

for (const root of document.querySelectorAll(".browser")) browse(root);
