// Folded sections and tables of reports and comparisons. The files of this folder are one classic script of a page,
// without modules, so that it works from disk.
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
