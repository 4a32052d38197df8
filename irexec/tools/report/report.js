// Sorting and searching of tables. Without it the page says the same, in the order of the file.
(() => {
  "use strict";

  const LIMIT = 500; // Rows that are shown unless all are asked for, so that long tables stay quick.
  const collator = new Intl.Collator(undefined, { numeric: true });
  const count = (number) => number.toLocaleString("en");

  const create = (tag, properties, ...content) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...content);
    return element;
  };

  // What a row is sorted by: the number of the cell, or else its text; null where it has none.
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.order !== undefined) return Number(cell.dataset.order);
    const text = (cell.querySelector("summary") ?? cell).textContent.trim();
    return text === "" || text === "?" ? null : isFinite(text) ? Number(text) : text;
  };

  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b));

  // The rows by a column; rows without a value are last in either direction.
  const sorted = (rows, column, sign) =>
    rows
      .map((row) => [key(row, column), row])
      .sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)))
      .map(([, row]) => row);

  // What a search looks at: all of a row but the names of the layers that its inputs come from, which would find their readers too.
  const textOf = (row) => {
    const pieces = [...row.cells].flatMap((cell) => {
      const inside = [...cell.querySelectorAll(".inside")].flatMap((one) => [...one.childNodes]);
      return inside.length ? [cell.querySelector("summary"), ...inside.filter((node) => node.nodeName !== "A")] : [cell];
    });
    return pieces.map((piece) => piece.textContent).join(" ").toLowerCase();
  };

  class Table {
    constructor(table) {
      this.body = table.tBodies[0];
      this.original = [...this.body.rows];
      this.rows = this.original;
      this.headers = table.tHead ? [...table.tHead.rows[0].cells] : [];
      this.limit = LIMIT;
      this.words = [];
      this.headers.forEach((header, column) => this.makeSortable(header, column));
      if (table.classList.contains("searchable") && this.original.length > 10) this.makeSearchable(table);
    }

    makeSortable(header, column) {
      if (header.textContent === "") return;
      const button = create("button", { type: "button" }, ...header.childNodes);
      button.addEventListener("click", () => this.sort(header, column));
      header.append(button);
      // Chromium does not repeat a header with buttons on every sheet of paper.
      addEventListener("beforeprint", () => header.replaceChildren(...button.childNodes));
      addEventListener("afterprint", () => {
        button.append(...header.childNodes);
        header.append(button);
      });
    }

    // A click sorts, the next one turns the order around, a third one restores that of the file. Numbers begin with the largest.
    sort(header, column) {
      const directions = header.classList.contains("number") ? ["descending", "ascending"] : ["ascending", "descending"];
      const before = header.getAttribute("aria-sort");
      const next = before === null ? directions[0] : before === directions[0] ? directions[1] : null;
      for (const other of this.headers) other.removeAttribute("aria-sort");
      if (next !== null) header.setAttribute("aria-sort", next);
      this.rows = next === null ? this.original : sorted(this.original, column, next === "ascending" ? 1 : -1);
      this.show();
      this.body.append(...this.rows);
    }

    makeSearchable(table) {
      const label = table.parentElement.getAttribute("aria-label");
      this.texts = new Map(this.original.map((row) => [row, textOf(row)]));
      this.input = create("input", { type: "search", placeholder: `Search ${label}`, ariaLabel: `Search ${label}` });
      this.status = create("span", { role: "status" });
      this.all = create("button", { type: "button", hidden: true }, "Show all");
      this.input.addEventListener("input", () => this.search());
      this.all.addEventListener("click", () => {
        this.limit = Infinity;
        this.show();
      });
      table.parentElement.before(create("div", { className: "tools" }, this.input, this.status, this.all));
      addEventListener("beforeprint", () => this.show(Infinity));
      addEventListener("afterprint", () => this.show());
      this.show();
    }

    search() {
      this.words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.show();
    }

    // Hide the rows without one of the words, and those beyond the limit.
    show(limit = this.limit) {
      if (!this.input) return;
      let found = 0;
      for (const row of this.rows) {
        const matches = this.words.every((word) => this.texts.get(row).includes(word));
        found += matches;
        const hidden = !matches || found > limit;
        if (row.hidden !== hidden) row.hidden = hidden;
      }
      const shown = Math.min(found, limit);
      const parts = [this.words.length ? `${count(found)} of ${count(this.rows.length)} found` : ""];
      if (shown < found) parts.push(`the first ${count(shown)} are shown`);
      this.status.textContent = parts.filter(Boolean).join(", ");
      this.all.hidden = shown === found;
    }

    reveal(row) {
      if (row.hidden && this.input) {
        this.input.value = "";
        this.search();
      }
      row.hidden = false;
    }
  }

  const tables = [...document.querySelectorAll("table.sortable")].map((table) => new Table(table));

  // A link to a layer unfolds it, and shows it where a search has hidden it.
  const unfold = () => {
    const row = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (!(row instanceof HTMLTableRowElement)) return;
    tables.find((table) => table.original.includes(row))?.reveal(row);
    const details = row.querySelector("details");
    if (details) details.open = true;
    row.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
