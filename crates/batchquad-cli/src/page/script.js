"use strict";
(() => {
  const table = document.getElementById("evaluations");
  const download = document.getElementById("download");
  if (!table || !download) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const text = (cell) => cell.dataset.v ?? cell.textContent;

  // Numbers as export writes them; what is missing comes last in both directions.
  const number = (value) =>
    value === "" ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : Number(value);
  const compare = (a, b, numeric, sign) => {
    if (!numeric) return (a === "") - (b === "") || sign * a.localeCompare(b);
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  };

  heads.forEach((head, k) => {
    head.setAttribute("aria-sort", "none");
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const numeric = "number" in head.dataset;
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keyed = rows.map((row, i) => [text(row.cells[k]), i, row]);
      keyed.sort((a, b) => compare(a[0], b[0], numeric, up ? 1 : -1) || a[1] - b[1]);
      body.append(...keyed.map((entry) => entry[2]));
      const status = document.getElementById("sorted");
      status.textContent = `Sorted by ${head.textContent}, ${up ? "ascending" : "descending"}.`;
    });
  });

  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  download.addEventListener("click", () => {
    const lines = [heads.map((head) => head.textContent), ...rows.map((row) => Array.from(row.cells, text))];
    const csv = lines.map((line) => line.map(quoted).join(",") + "\n").join("");
    const url = URL.createObjectURL(new Blob([csv], { type: "text/csv;charset=utf-8" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = download.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  });
})();
