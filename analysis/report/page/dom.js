// Elements and numbers. Text from the result reaches the page through createTextNode only, never as markup.

/** An element. `attributes`: `on` holds listeners, what is null or false is left out. Children that are strings are text. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'on') for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The part of a section that a script fills, emptied. */
function body(id) {
  const element = document.querySelector('#' + id + ' > div');
  element.replaceChildren();
  return element;
}

const origin = (name) => h('span', { class: 'origin' }, name);
const note = (text) => h('p', { class: 'note' }, text);
const missing = (reason) => h('p', { class: 'missing' }, origin('unavailable'), ' ', reason || 'no reason recorded');
const swatch = (color) => h('span', { class: 'swatch', style: 'background:' + color, 'aria-hidden': 'true' });

/** At least `digits` significant digits, thousands separated, as the other reports write numbers. */
function significant(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return 'na';
  if (value === 0) return '0';
  const before = Math.floor(Math.log10(Math.abs(value) / (1 - 0.5 * 10 ** -digits))) + 1;
  const decimals = Math.min(9, Math.max(0, digits - before));
  return value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function prefixed(value, unit, last, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return 'na';
  const prefixes = ['', 'k', 'M', 'G', 'T'];
  let at = 0;
  while (Math.abs(value) >= 999.5 && prefixes[at] !== last) value /= 1000, ++at;
  return (significant(value, digits) + ' ' + prefixes[at] + unit).trim();
}
const bytesText = (bytes) => prefixed(bytes, 'B', 'G');
const flopRate = (flopPerS) => prefixed(flopPerS, 'FLOP/s', 'T');
const byteRate = (bytesPerS) => prefixed(bytesPerS, 'B/s', 'G');
const percent = (share) => (share === null ? 'na' : significant(100 * share, Math.abs(share) < 0.1 ? 2 : 3) + ' %');

function timeText(us) {
  if (us === null || us === undefined) return 'na';
  if (Math.abs(us) < 1e3) return significant(us) + ' us';
  return Math.abs(us) < 1e7 ? significant(us / 1e3) + ' ms' : significant(us / 1e6) + ' s';
}

/** A table of a few rows. `columns`: header, and class of its cells; cells are nodes or text. `isTitled`: a heading above
 * it says the same as its caption. */
function smallTable(caption, columns, rows, isTitled = false) {
  return h('div', {}, isTitled ? null : h('p', { class: 'caption', 'aria-hidden': 'true' }, caption), h('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': caption },
    h('table', { 'aria-label': caption },
      h('thead', {}, h('tr', {}, columns.map(([header, style]) => h('th', { scope: 'col', class: style }, header)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, i) =>
        h(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, class: columns[i][1] }, cell))))))));
}

/** Where a figure is from, in a word, and the rest of what is said of it. */
function originParts(text) {
  const at = text.search(/[:,]/);
  return at < 0 ? [origin(text)] : [origin(text.slice(0, at)), h('small', {}, text.slice(at + 1).trim())];
}

const blocks = {
  paragraph: (block) => (block.tone === 'missing' ? missing(block.text) : h('p', { class: block.tone === 'warning' ? 'warning' : null }, block.text)),
  bullets: (block) => h('ul', {}, block.items.map((item) => h('li', {}, item))),
  // Figures are cards, each with its origin; properties are rows.
  facts: (block, title, isTitled) => (block.facts.some((fact) => fact.origin)
    ? h('dl', { class: 'facts' }, block.facts.map((fact) => h('div', {}, h('dt', {}, fact.label),
      h('dd', {}, h('strong', {}, fact.value || '–'), fact.origin ? originParts(fact.origin) : null))))
    : smallTable(title, [['what'], ['value', 'wide']], block.facts.map((fact) => [fact.label, fact.value]), isTitled)),
  table: (block, title, isTitled) =>
    smallTable(block.caption || title, block.columns.map((column) => [column.header, column.style]), block.rows, isTitled && !block.caption),
};

/** A section of the document: what terminal and Markdown show too. Nothing for one that says nothing. */
function sectionParts(section, isTitled = false) {
  if (!section) return [];
  return [...section.blocks.map((block) => blocks[block.kind](block, section.title, isTitled)),
    ...section.sections.flatMap((below) => [h('h3', {}, below.title), ...sectionParts(below, true)])];
}

/** A choice among few: buttons of which one is pressed. `onChoose` gets the value. */
function choice(label, options, chosen, onChoose) {
  const group = h('div', { class: 'group', role: 'group', 'aria-label': label }, h('span', {}, label));
  for (const [value, text] of options)
    group.append(h('button', { type: 'button', 'aria-pressed': String(value === chosen), 'data-value': value,
      on: { click: (event) => {
        for (const button of group.querySelectorAll('button')) button.setAttribute('aria-pressed', String(button === event.currentTarget));
        onChoose(value);
      } } }, text));
  return group;
}

/** Buttons that each switch one thing on or off. `set` holds what is on. */
function switches(label, options, set, onChange) {
  return h('div', { class: 'group', role: 'group', 'aria-label': label }, h('span', {}, label),
    options.map(([value, ...content]) => h('button', { type: 'button', 'aria-pressed': String(set.has(value)), 'data-value': value,
      on: { click: (event) => {
        if (!set.delete(value)) set.add(value);
        event.currentTarget.setAttribute('aria-pressed', String(set.has(value)));
        onChange();
      } } }, ...content)));
}

function selectOf(label, options, chosen, onChoose) {
  return h('label', {}, h('span', {}, label), h('select', { on: { change: (event) => onChoose(event.currentTarget.value) } },
    options.map(([value, text]) => h('option', { value, selected: value === chosen }, text))));
}
