// The page: its state, what is drawn when the point, the selection or the theme changes.

const report = JSON.parse(document.getElementById('data').textContent);
let themed = []; // what depends on colours and is no chart
const state = { point: 0, step: null, ops: [], onOps: new Set(), levels: new Set(), marks: 'steps', group: '', verdict: '', text: '',
  tableLevel: 'step', sort: { column: 'step', descending: false }, allRows: false };

/** The point's op kinds, those with the most time first. */
function opsOf(point) {
  const ops = new Map();
  for (const row of point.timeline.rows) {
    const op = point.steps[row[2]].op;
    ops.set(op, (ops.get(op) || 0) + row[1]);
  }
  for (const step of point.steps) if (!ops.has(step.op)) ops.set(step.op, 0);
  return [...ops.keys()].sort((a, b) => ops.get(b) - ops.get(a));
}

function showPoint(index) {
  const point = report.points[index], ops = opsOf(point);
  // Where no bytes were counted streaming bytes are all there is.
  const present = levelsOf(point.roofline), levels = present.filter((level) => level !== 'streaming' || !present.includes('DRAM'));
  Object.assign(state, { point: index, step: null, ops, onOps: new Set(ops), levels: new Set(levels), group: '', verdict: '', text: '', tableLevel: 'step', allRows: false });
  themed = [];
  for (const element of charts.keys()) if (!ofStudy(element)) Plotly.purge(element), charts.delete(element);
  drawAnswer(point);
  drawFigures(point);
  drawDirections(point);
  drawRoofline(point);
  drawLedger(point);
  drawMarginal(point);
  drawSms(point);
  drawAttribution(point);
  drawHeat(point);
  drawSweep();
  drawTimeline(point);
  drawVerdicts(point);
  drawTable(point);
  drawEnvironment(point);
  redrawCharts();
}

/** Selects a step, by its position, everywhere; null selects none. */
function selectStep(position) {
  state.step = position;
  const drawing = document.getElementById('roofline-chart');
  if (drawing) charts.get(drawing)();
  drawSelection();
  for (const row of document.querySelectorAll('#rows tbody tr')) {
    const chosen = Number(row.dataset.step) === position;
    row.classList.toggle('selected', chosen);
    row.querySelector('button').setAttribute('aria-pressed', String(chosen));
  }
  if (!document.getElementById('rows')?.contains(document.activeElement)) revealRow();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? 'Light theme' : 'Dark theme';
}

function redraw() {
  for (const draw of themed) draw();
  redrawCharts();
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null; // by the button; else the reader's system decides
setTheme(prefersDark.matches ? 'dark' : 'light');
prefersDark.addEventListener('change', () => {
  if (chosenTheme) return;
  setTheme(prefersDark.matches ? 'dark' : 'light');
  redraw();
});
document.getElementById('theme').addEventListener('click', () => {
  chosenTheme = isDark() ? 'light' : 'dark';
  setTheme(chosenTheme);
  redraw();
});

drawStudy();
drawMethod();
drawCeilings();
if (report.points.length) showPoint(0);
else body('answer').append(missing('the result has no points'));

let width = document.documentElement.clientWidth, waiting = 0;
addEventListener('resize', () => {
  if (document.documentElement.clientWidth === width) return; // a phone's address bar changes the height alone
  width = document.documentElement.clientWidth;
  clearTimeout(waiting);
  waiting = setTimeout(redrawCharts, 150);
});
// Paper is white and about 700 pixels wide.
const main = document.querySelector('main');
let screenTheme = null;
addEventListener('beforeprint', () => {
  screenTheme = document.documentElement.dataset.theme;
  setTheme('light');
  main.style.width = '680px';
  redraw();
});
addEventListener('afterprint', () => {
  main.style.width = '';
  setTheme(screenTheme);
  redraw();
});
