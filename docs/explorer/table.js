/* A table of counts as it is typed or pasted: rows are values of W, columns values of X. */
"use strict";

const cvxTable = (() => {
  const ROWS = [2, 6], COLUMNS = [2, 8];
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

  /** Cells of a line: separated by tabs, else by commas or semicolons, else by spaces. */
  function cells(line) {
    const separator = line.includes("\t") ? "\t" : /[,;]/.test(line) ? /[,;]/ : /\s+/;
    return (separator instanceof RegExp && separator.source === "\\s+" ? line.trim() : line)
      .split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  }

  /** Counts and names of a table, or an Error that says where it is wrong and what to do. */
  function read(text) {
    const fail = (place, what, remedy) => { throw new Error(`${place}: ${what}. ${remedy}.`); };
    const lines = text.split(/\r?\n/).map((line, i) => ({ cells: cells(line), number: i + 1, line }))
      .filter(({ line }) => line.trim());
    if (!lines.length) fail("The table", "is empty", "Type counts, a line for each value of W");
    const isNumber = (cell) => NUMBER.test(cell);
    const first = lines[0].cells, later = lines.slice(1);
    // a first line names columns: its first cell is empty, or a later one is no number though those below are
    const headed = later.length > 0 && (first[0] === "" || (first.slice(1).some((c) => !isNumber(c))
      && (first.every((c) => !isNumber(c)) || first.slice(1).every((c) => !isNumber(c)))));
    const body = headed ? later : lines;
    const named = body.every((row) => !isNumber(row.cells[0])) && body.every((row) => row.cells.length > 1);
    const width = body[0].cells.length - Number(named);
    const within = (count, [low, high], what, where) => {
      if (count < low || count > high) {
        fail("The table", `has ${count} ${what}`, `This page solves ${low} to ${high} ${what}; ${where}`);
      }
    };
    within(body.length, ROWS, "rows", "give larger tables to the package");
    within(width, COLUMNS, "columns", "give larger tables to the package");
    const counts = body.map(({ cells: row, number }) => {
      const values = row.slice(Number(named));
      if (values.length !== width) {
        fail(`Line ${number}`, `has ${values.length} counts, the first row of counts has ${width}`,
          "Give every line as many counts, separated by tabs, commas or spaces");
      }
      return values.map((cell, j) => {
        const place = `Line ${number}, count ${j + 1}`;
        if (!isNumber(cell)) fail(place, cell ? `“${cell}” is no number` : "is empty", "Write a count: a whole number, 0 or more");
        const count = Number(cell);
        if (count < 0) fail(place, `${cell} is negative`, "Write a count: a whole number, 0 or more");
        if (!Number.isInteger(count)) fail(place, `${cell} is no whole number`, "Write the count of records, not their share");
        if (count > 1e9) fail(place, `${cell} is too large for floating point here`, "Write a count up to 1 000 000 000");
        return count;
      });
    });
    let x = counts[0].map((_, j) => `x${j + 1}`);
    if (headed) {
      const labels = first.length === width + 1 ? first.slice(1) : first;
      if (labels.length !== width) {
        fail(`Line ${lines[0].number}`, `names ${labels.length} columns, the rows have ${width}`, "Name every column once");
      }
      x = labels;
    }
    const w = named ? body.map(({ cells: row }) => row[0]) : counts.map((_, i) => `w${i + 1}`);
    for (const [what, names] of [["row", w], ["column", x]]) {
      names.forEach((name, i) => {
        if (!name) fail(`The name of ${what} ${i + 1}`, "is empty", "Name all or none");
        const twin = names.indexOf(name);
        if (twin < i) fail(`The name of ${what} ${i + 1}`, `“${name}” is that of ${what} ${twin + 1}`, "Give each its own name");
      });
    }
    counts.forEach((row, i) => {
      if (!row.some(Boolean)) fail(`Row ${i + 1} (${w[i]})`, "holds no record", "Leave this row out");
    });
    x.forEach((name, j) => {
      if (!counts.some((row) => row[j])) fail(`Column ${j + 1} (${name})`, "holds no record", "Leave this column out");
    });
    return { counts, w, x };
  }

  /** The lines of Python that solve a table with a certificate. */
  function python({ counts, w, x, cost }, budget) {
    const d = cost === "hamming" ? "cpv.hamming(source.x)"
      : `[[abs(i - j) for j in range(${x.length})] for i in range(${x.length})]`;
    return ["import cvxprivacy as cpv", "",
      "source = cpv.DiscreteSource.from_counts(",
      `    ${JSON.stringify(counts)},`, `    w=${JSON.stringify(w)},`, `    x=${JSON.stringify(x)},`, ")",
      `d = ${d}`, `problem = cpv.PrivacyDistortion(source, d, budget=${budget})`,
      "print(problem.solve())", "curve = cpv.frontier(problem, tol=1e-3)", 'curve.to_json("mine.json")', ""].join("\n");
  }

  return { python, read };
})();
