// Elements of a page, built from texts and never from HTML.

const SVG = "http://www.w3.org/2000/svg";

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

const words = (name) => name.replace(/_/g, " ");
const fixed = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

function boxes(list) {
  return (list || []).map(([[left, top, right, bottom], label]) => {
    const box = make("span", { class: "box" }, make("span", {}, label));
    Object.assign(box.style, { left: `${100 * left}%`, top: `${100 * top}%`, width: `${100 * (right - left)}%`, height: `${100 * (bottom - top)}%` });
    return box;
  });
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

// A command with a button that copies it.
function command(line) {
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
