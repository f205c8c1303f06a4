// What few formulas use. Each block joins some operations to both algebras of `javascript.js`; a card takes the blocks that it needs.
const more = (make) => [[PLAIN, n], [WORDS, words]].forEach(([one, all]) => Object.assign(all, make(one, all)));

// The inverse of a matrix of plain numbers: by elimination, with the largest pivot.
const inverse = (matrix) => {
  const size = matrix.length, rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  for (let i = 0; i < size; i++) {
    const pivot = n.run(i, size - 1).reduce((best, k) => (Math.abs(rows[k][i]) > Math.abs(rows[best][i]) ? k : best), i);
    [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
    rows[i] = rows[i].map((x) => x / rows[i][i]);
    for (let k = 0; k < size; k++) if (k !== i) rows[k] = rows[k].map((x, j) => x - rows[k][i] * rows[i][j]);
  }
  return rows.map((row) => row.slice(size));
};
more((one, { each, times }) => ({
  power: (x, exponent) => {
    if (!isMatrix(x)) return each((y) => one.power(y, exponent), x);
    const count = one.value(exponent);
    const base = count < 0 ? each((y) => one.number(y), inverse(each(one.value, x))) : x;
    return count === 0 ? { identity: one.number(1) } : times(...Array(Math.abs(count)).fill(base));
  },
}));

// The largest singular value of a matrix of plain numbers: by Jacobi's rotations of the products of its columns.
const largest = (matrix) => {
  const a = n.columns(matrix).map((x) => n.columns(matrix).map((y) => n.dot(x, y)));
  for (let round = 0; round < 30; round++) for (let p = 0; p < a.length; p++) for (let q = p + 1; q < a.length; q++) {
    if (a[p][q] === 0) continue;
    const angle = 0.5 * Math.atan2(2 * a[p][q], a[q][q] - a[p][p]), c = Math.cos(angle), s = Math.sin(angle);
    for (const row of a) [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
    [a[p], a[q]] = [a[p].map((x, k) => c * x - s * a[q][k]), a[p].map((x, k) => s * x + c * a[q][k])];
  }
  return Math.sqrt(Math.max(...a.map((row, k) => row[k])));
};
more((one, { each }) => {
  const norm = (x, kind = "") => {
    if (isMatrix(x) && kind === "2") return one.number(largest(each(one.value, x)));
    return kind === "1" ? one.plus(flat(x).map((y) => one.abs(y))) : one.sqrt(one.plus(flat(x).flat().map((y) => one.by([y, y]))));
  };
  return {
  norm,
  bars: (x) => (isNumber(x) ? one.abs(x) : norm(x)),
  };
});

// Of rows a number each, of a column its own.
more((one) => {
  const single = (x) => {
    const top = one.number(PLAIN.max(x.map(one.value)));
    if (!Number.isFinite(one.value(top))) return top;
    return one.plus([top, one.ln(one.plus(x.map((y) => one.exp(one.plus([y, one.neg(top)])))))]);
  };
  return {
  lse: (x) => (isMatrix(x) ? { column: x.map(single) } : single(flat(x))),
  };
});

more((one, { each, columns, softmax }) => ({
  columnSoftmax: (x) => columns(softmax(columns(x))),
  diag: (x) => (isMatrix(x) ? { column: x.map((row, place) => row[place]) } : flat(x).map((y, i) => flat(x).map((_, j) => (i === j ? y : one.number(0))))),
  trace: (x) => one.plus(x.map((row, place) => row[place])),
  strictlyLower: (x) => x.map((row, i) => row.map((y, j) => (j < i ? y : one.number(0)))),
  divergence: (a, b) => one.plus(flat(a).map((x, place) => one.by([x, one.ln(one.over(x, flat(b)[place]))]))),
  logit: (x) => each((y) => one.ln(one.over(y, one.plus([one.number(1), one.neg(y)]))), x),
  factorial: (x) => each((y) => one.factorial(y), x),
}));

// Kronecker's product of matrices, the outer product of vectors.
more((one) => ({
  outer: (a, b) => (isMatrix(a) ? a.flatMap((row) => b.map((other) => row.flatMap((x) => other.map((y) => one.by([x, y]))))) : flat(a).map((x) => flat(b).map((y) => one.by([x, y])))),
}));

more((one) => ({
  blocks: (rows) => {
    const table = (x) => (isNumber(x) ? [[x]] : x.column ? x.column.map((y) => [y]) : isRow(x) ? [x] : x), tallness = (x) => (x.ones === undefined ? table(x).length : 1);
    const cells = rows.flat(), lying = (x) => isNumber(x) || isRow(x), standing = (x) => isNumber(x) || x.column;
    if (rows.length === 1 && cells.every(lying)) return cells.flat();
    const joined = rows.flatMap((row) => {
      const tall = Math.max(...row.map(tallness));
      const tables = row.map((x) => (x.ones === undefined ? table(x) : Array(tall).fill([x.ones])));
      return n.run(0, tall - 1).map((place) => tables.flatMap((one) => one[place]));
    });
    return rows[0].length === 1 && cells.every(standing) ? { column: joined.flat() } : joined;
  },
}));

// Moments over finitely many outcomes: `make` takes the place of one of each group.
more((one, { add, times }) => {
  const mean = (weights, make) => {
    const many = (left, places) => (left.length ? left[0].flatMap((weight, place) => many(left.slice(1), [...places, [weight, place]])) : [places]);
    return add(...many(weights, []).map((places) => times(one.number(places.reduce((all, [weight]) => all * weight, 1)), make(...places.map(([, place]) => place)))));
  };
  return {
  mean,
  covariance: (weights, make, other = make) => {
    const [middle, second] = [mean(weights, make), mean(weights, other)];
    return mean(weights, (...places) => one.by([add(make(...places), one.neg(middle)), add(other(...places), one.neg(second))]));
  },
  };
});

// A derivative by one number or several, as `givens.py` takes it: by central differences of order 6. `places` may be fewer than there are axes.
const put = (x, [place, ...rest], value) => (place === undefined ? value : x.column ? { column: put(x.column, [place, ...rest], value) } : x.map((y, k) => (k === place ? put(y, rest, value) : y)));
const slope = ($, key, places, body) => {
  const at = n.entry($[key], ...places), step = 2 ** -11 * Math.max(0.25, Math.abs(at));
  const moved = (count) => body($.moved({ [key]: put($[key], places, at + count * step) }));
  return n.over(n.sum([[1, 3 / 4], [2, -3 / 20], [3, 1 / 60]].map(([count, weight]) => n.times(weight, n.add(moved(count), n.neg(moved(-count)))))), step);
};
more((one, { each }) => ({
  slope: ($, key, places, body) => {
    const by = n.entry($[key], ...places), found = n.each((_, more) => slope($, key, [...places, ...more], body), by), value = body($);
    if (isMatrix(by) && !isNumber(value)) throw new Error("a derivative by a matrix is one of a number");
    return each((x) => one.number(x), isNumber(value) || isNumber(by) ? found : n.columns(flat(found).map(flat)));
  },
}));
