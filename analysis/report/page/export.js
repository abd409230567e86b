// Two small buttons at a table: its rows for a spreadsheet, through the clipboard or as a file.

/** The table with its headers, as text; numbers are without the commas of thousands, which a spreadsheet would split at. */
const exportRows = (block, rows) => [block.columns.map((column) => column.header),
  ...rows.map((cells) => cells.map((cell, i) => (block.columns[i].number && /^-?[\d,.]+$/.test(cell) ? cell.replace(/,/g, '') : cell)))];

/** A spreadsheet takes what begins so for a formula, unless an apostrophe goes before it. */
const asText = (cell) => (/^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell)) ? "'" + cell : cell);

const tabSeparated = (rows) => rows.map((row) => row.map((cell) => asText(cell).replace(/\s+/g, ' ')).join('\t')).join('\n');
const commaSeparated = (rows) => rows.map((row) => row.map(asText).map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell)).join(',') + '\r\n').join('');

/** The clipboard's interface is not there on a page from plain http, and may be refused. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'skip', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

function download(name, text) {
  const href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  h('a', { href, download: (name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'table') + '.csv' }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

/** `rows()`: what is to be exported now, the headers first. */
function exportButtons(name, rows) {
  const told = h('span', { role: 'status' });
  const copy = async ({ currentTarget: button }) => { // which the event forgets meanwhile
    told.textContent = (await copied(tabSeparated(rows()))) ? 'copied' : 'the browser refused';
    button.focus({ preventScroll: true });
    setTimeout(() => { told.textContent = ''; }, 2000);
  };
  return h('div', { class: 'export' }, told,
    h('button', { type: 'button', 'aria-label': `Copy the table ${name}`, title: 'Copy for a spreadsheet', on: { click: copy } }, 'Copy'),
    h('button', { type: 'button', 'aria-label': `Save the table ${name} as CSV`, title: 'Save as a file', on: { click: () => download(name, commaSeparated(rows())) } }, 'CSV'));
}
