// The parts of a section that are text: paragraphs, lists, facts and tables.

const origin = (name) => h('span', { class: 'origin' }, name);

/** Where a figure is from, in a word, and the rest of what is said of it. */
function originParts(text) {
  const at = text.search(/[:,]/);
  return at < 0 ? origin(text) : [origin(text.slice(0, at)), h('small', {}, text.slice(at + 1).trim())];
}

function paragraph({ text, tone }) {
  return h('p', { class: tone === 'plain' ? null : tone }, tone === 'missing' ? [origin('unavailable'), ' '] : null, text);
}

function bullets({ items }) { return h('ul', {}, items.map((item) => h('li', {}, item))); }

/** Figures are cards, each with its origin; properties are rows of a table. */
function facts(block, selection, title) {
  if (!block.facts.some((fact) => fact.origin))
    return table({ caption: '', columns: [{ header: 'what', style: 'name' }, { header: 'value', style: 'wide' }],
      rows: block.facts.map((fact) => [fact.label, fact.value]) }, selection, title);
  return h('dl', { class: 'facts' }, block.facts.map((fact) => h('div', {}, h('dt', {}, fact.label),
    h('dd', {}, h('strong', {}, fact.value || '–'), fact.origin ? originParts(fact.origin) : null))));
}

/** A row that stands for something that charts show too has a button in its first cell, for those who use no mouse. */
function tableRow(block, i, selection) {
  const key = block.keys?.[i] ?? null, chosen = key !== null && key === selection.key;
  return h('tr', { 'data-key': key, class: chosen ? 'selected' : null, on: key === null ? {} : { click: () => selection.select(key) } },
    block.rows[i].map((cell, at) => h(at === 0 ? 'th' : 'td', { scope: at === 0 ? 'row' : null, class: block.columns[at].style, title: block.long && cell.length > 30 ? cell : null },
      at === 0 && key !== null ? h('button', { type: 'button', 'aria-pressed': String(chosen), 'aria-label': `Select ${cell}` }, cell) : cell)));
}

const headers = (block, content) => h('thead', {}, h('tr', {}, block.columns.map((column, i) =>
  h('th', { scope: 'col', class: column.style, title: column.what }, content(column, i)))));

/** Marks the row of the selected key and brings it into the table's own window, unless the reader is in it. */
function markRows(box, selection) {
  for (const row of box.querySelectorAll('tr[data-key]')) {
    const chosen = Number(row.dataset.key) === selection.key;
    row.classList.toggle('selected', chosen);
    row.querySelector('button').setAttribute('aria-pressed', String(chosen));
    if (chosen && !box.contains(document.activeElement)) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  }
}

/** Ties a table to the selection. `show` makes the row of a key visible. */
function addTable(block, box, selection, title, update, show = () => {}) {
  if (!block.keys) return;
  const at = (key) => block.keys.indexOf(key), row = (key) => box.querySelector(`tr[data-key="${key}"]`);
  selection.add({ title, update, has: (key) => box.isConnected && at(key) >= 0,
    tell: (key) => (block.columns.length > 8 || at(key) < 0 ? null
      : block.columns.map((column, i) => [column.header, block.rows[at(key)][i]]).filter(([, cell]) => cell).map((pair) => pair.join(': ')).join(' · ')),
    reveal: (key) => {
      if (!row(key)) show();
      openAll(box);
      markRows(box, selection);
      row(key)?.scrollIntoView({ block: 'center' });
      row(key)?.querySelector('button').focus({ preventScroll: true });
    } });
}

function table(block, selection, title) {
  if (block.long) return longTable(block, selection, title);
  const name = block.caption || title;
  const box = h('div', { class: 'scroll', role: 'group', tabindex: '0', 'aria-label': name }, h('table', { 'aria-label': name },
    headers(block, (column) => column.header), h('tbody', {}, block.rows.map((_, i) => tableRow(block, i, selection)))));
  addTable(block, box, selection, name, () => markRows(box, selection));
  return h('div', { class: 'table' }, block.caption ? h('p', { class: 'caption', 'aria-hidden': 'true' }, block.caption) : null,
    exportButtons(name, () => exportRows(block, block.rows)), box);
}

const rowsAtFirst = 50; // more are shown on request: a page of tens of thousands of cells is slow
const cellNumber = (text) => Number.parseFloat(text.replace(/,(?=\d{3})/g, '').replace(/^[^\d-]+/, '')); // "1,234", "[0.5, 2]"

/** Cells without a value stand last either way. */
function compareCells(a, b, column, descending) {
  const [left, right] = column.number ? [cellNumber(a), cellNumber(b)] : [a, b], none = (value) => value === '' || value === 'na' || Number.isNaN(value);
  if (none(left) || none(right)) return none(left) - none(right);
  const order = left < right ? -1 : left > right ? 1 : 0;
  return descending ? -order : order;
}

/** A table that is sorted by its headers and filtered by text, by the values of some columns and by the charts' filters. */
function longTable(block, selection, title) {
  const name = block.caption || title, state = { sort: null, descending: false, text: '', all: false, chosen: new Map() };
  const box = h('div', { class: 'tall', role: 'group', tabindex: '0', 'aria-label': name }), count = h('span', { role: 'status' });
  const isShown = (i) => !selection.hidden.has(block.keys?.[i]) && [...state.chosen].every(([at, value]) => block.rows[i][at] === value) &&
    (state.text === '' || block.rows[i].some((cell) => cell.toLowerCase().includes(state.text)));
  const sortBy = (column, i) => {
    Object.assign(state, state.sort === i ? { descending: !state.descending } : { sort: i, descending: Boolean(column.number) && i > 0 });
    draw();
    box.querySelectorAll('thead button')[i].focus();
  };
  /** The numbers of those that the filters leave, in their order. */
  const ordered = () => {
    const rows = [...block.rows.keys()].filter(isShown);
    return state.sort === null ? rows : rows.sort((a, b) => compareCells(block.rows[a][state.sort], block.rows[b][state.sort], block.columns[state.sort], state.descending));
  };
  const draw = () => {
    const rows = ordered(), sorted = block.columns.map((_, i) => (i !== state.sort ? 'none' : state.descending ? 'descending' : 'ascending'));
    const chosen = selection.key === null ? -1 : rows.findIndex((i) => block.keys?.[i] === selection.key);
    const shown = state.all ? rows : rows.slice(0, chosen < rowsAtFirst ? rowsAtFirst : chosen + rowsAtFirst);
    const head = headers(block, (column, i) => h('button', { type: 'button', on: { click: () => sortBy(column, i) } }, column.header + { none: '', descending: ' ↓', ascending: ' ↑' }[sorted[i]]));
    head.querySelectorAll('th').forEach((cell, i) => cell.setAttribute('aria-sort', sorted[i]));
    box.replaceChildren(h('table', { 'aria-label': name }, head, h('tbody', {}, shown.map((i) => tableRow(block, i, selection)))));
    count.textContent = `${shown.length} of ${block.rows.length} rows`;
    more.hidden = shown.length === rows.length;
  };
  const change = (changes) => { Object.assign(state, changes); draw(); };
  const more = h('button', { type: 'button', on: { click: () => change({ all: true }) } }, 'Show all');
  const filters = () => block.columns.flatMap((column, at) => {
    const values = [...new Set(block.rows.map((row) => row[at]))];
    return column.filter && values.length > 1 ? selectOf(column.header, ['all', ...values], (i) => {
      if (i === 0) state.chosen.delete(at);
      else state.chosen.set(at, values[i - 1]);
      draw();
    }) : [];
  });
  const exporting = exportButtons(name, () => exportRows(block, ordered().map((i) => block.rows[i])));
  const controls = h('div', { class: 'controls' }), drawControls = () => controls.replaceChildren(h('label', {}, h('span', {}, 'Contains'),
    h('input', { type: 'search', on: { input: (event) => change({ text: event.currentTarget.value.toLowerCase() }) } })), ...filters(), count, more, exporting);
  let hidden = selection.hidden;
  addTable(block, box, selection, name, () => {
    if (hidden !== selection.hidden || !box.querySelector(`tr[data-key="${selection.key}"]`)) draw();
    hidden = selection.hidden;
    markRows(box, selection);
  }, () => { // the table's own filters are taken off for a row that they hide
    change({ text: '', all: true, chosen: new Map() });
    drawControls();
  });
  drawControls();
  draw();
  return h('div', { class: 'table' }, block.caption ? h('p', { class: 'caption', 'aria-hidden': 'true' }, block.caption) : null, controls, box);
}
