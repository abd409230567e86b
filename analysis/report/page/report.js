// The page: sections of the document, choices among alternatives, navigation, theme, width and paper.

let report; // the document
const main = document.querySelector('main');

/** The page holds it by gzip in base64. */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

// What the page can draw: a kind of block or of chart is a function here.
const charts = { bars: (block) => barChart(block, false), stacked: (block) => barChart(block, true), curve, roofline, heat, timeline };
const parts = { paragraph, bullets, facts, table, chart: (block, selection, title) => charts[block.chart](block, selection, title) };

const isSmallChart = (block) => block?.kind === 'chart' && (block.chart === 'curve' || (block.series && block.series.length * block.labels.length <= 24));

const isText = (block) => block?.kind === 'paragraph' || block?.kind === 'bullets';

/** How many blocks from the first on stand side by side: small charts that follow each other, or text with a list and the
 * one small chart that follows it. */
function countBeside(blocks) {
  const charts = (from) => { let n = 0; while (isSmallChart(blocks[from + n])) ++n; return n; };
  let texts = 0;
  while (isText(blocks[texts])) ++texts;
  if (texts > 0) return charts(texts) === 1 && blocks.slice(0, texts).some((block) => block.kind === 'bullets') ? texts + 1 : 1;
  return Math.max(1, charts(0));
}

function drawBlocks(section, selection) {
  const drawn = [], left = [...section.blocks];
  while (left.length) {
    const together = left.splice(0, countBeside(left)), elements = together.map((block) => parts[block.kind](block, selection, section.title || section.name || report.title));
    const texts = elements.filter((_, i) => isText(together[i])), others = elements.filter((_, i) => !isText(together[i]));
    drawn.push(elements.length === 1 ? elements[0] : h('div', { class: texts.length ? 'side answer' : 'side' }, texts.length ? h('div', {}, texts) : null, others));
  }
  return drawn;
}

/** One of the sections at a time: each is drawn when it is chosen first, and has a selection of its own where they are the
 * points, whose choice has no title. */
function drawChoice(section, level, path, selection, listing, isOfPoints) {
  const drawn = [], box = h('div', {});
  const choose = (i) => {
    const alternative = section.sections[i], name = [section.title, alternative.title].filter(Boolean).join(', ');
    drawn[i] ??= drawSection({ ...alternative, title: '', name }, level, path, isOfPoints ? new Selection() : selection, listing);
    box.replaceChildren(drawn[i]);
    if (!box.isConnected) return;
    if (isOfPoints) {
      Selection.clear();
      keepInAddress({ point: alternative.id });
    }
    drawCharts(box);
    drawNavigation();
  };
  choose(0);
  const label = selectOf(section.choice, section.sections.map((one) => one.title), choose);
  if (isOfPoints) restorers.point = (id) => {
    const at = section.sections.findIndex((one) => one.id === id);
    if (at < 0) return;
    openAll(box);
    label.querySelector('select').value = at;
    choose(at);
  };
  return [h('div', { class: 'controls' }, label), box];
}

/** A section and all below it. `level`: of its heading. `listing`: 'top' or 'part' where the navigation names it; instead
 * of a top one without blocks of its own, and of one without a title, it names the parts. */
function drawSection(section, level, path, selection, listing) {
  const id = [path, section.id].filter(Boolean).join('-'), below = section.title ? level + 1 : level;
  const names = (section.choice ? section.sections[0].sections : section.sections).filter((one) => one.title);
  const isOfParts = Boolean(listing) && names.length > 0 && (!section.title || (listing === 'top' && section.blocks.length === 0));
  const content = [drawBlocks(section, selection), section.choice ? drawChoice(section, below, id, selection, isOfParts && 'part', listing === 'top' && !section.title)
    : section.sections.map((one) => drawSection(one, below, id, selection, isOfParts && 'part'))];
  const heading = section.title ? h('h' + Math.min(level, 6), {}, section.title) : null;
  const attributes = { id: id || null, tabindex: '-1', class: isOfParts ? 'parts' : listing && section.title ? 'main' : null, 'data-name': section.title || section.choice || null };
  if (!section.folded) return h('section', attributes, heading, content);
  return h('section', attributes, h('details', { on: { toggle: (event) => drawCharts(event.currentTarget) } },
    h('summary', {}, heading || attributes['data-name']), content));
}

/** Titles of the parts of the page; a part that is several has its own above them. None where there is one. */
function drawNavigation() {
  const links = [...main.querySelectorAll('.main, .parts')].map((section) => {
    const { name } = section.dataset;
    if (section.className === 'parts') return name ? h('span', {}, name) : '';
    const open = () => openAll(section.querySelector(':scope > details') || section);
    return h('a', { href: '#' + section.id, class: section.parentElement === main ? 'top' : null, on: { click: open } }, name);
  });
  document.querySelector('nav').replaceChildren(...(links.length > 1 ? links : []));
}

const isDark = () => document.documentElement.dataset.theme === 'dark';
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? 'Light theme' : 'Dark theme';
  drawCharts();
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
const systemTheme = () => (prefersDark.matches ? 'dark' : 'light');
let isThemeChosen = false; // by the button or the address; else the reader's system decides
prefersDark.addEventListener('change', () => { if (!isThemeChosen) setTheme(systemTheme()); });
restorers.theme = (theme) => {
  if (theme !== 'light' && theme !== 'dark') return;
  isThemeChosen = true;
  setTheme(theme);
  keepInAddress({ theme });
};
document.getElementById('theme').addEventListener('click', () => restorers.theme(isDark() ? 'light' : 'dark'));

async function drawReport() {
  report = await unpacked(document.getElementById('data').textContent);
  main.append(...report.sections.map((section) => drawSection(section, 2, '', new Selection(), 'top')));
  drawNavigation();
  setTheme(systemTheme());
  restoreFromAddress();
  addEventListener('hashchange', restoreFromAddress); // a link of the page, whose address lacks the rest, or another address
  main.dataset.state = 'drawn';
}
drawReport().catch((error) => main.append(h('p', { class: 'warning' }, `This report cannot be drawn: ${error.message}. It needs a browser of 2023 or later.`)));

let width = document.documentElement.clientWidth, waiting = 0;
addEventListener('resize', () => {
  if (document.documentElement.clientWidth === width) return; // a phone's address bar changes the height alone
  width = document.documentElement.clientWidth;
  clearTimeout(waiting);
  waiting = setTimeout(drawCharts, 150);
});

// Paper is white, about 700 pixels wide, and cannot unfold a section. A long table is printed where the reader has unfolded it.
let screen = null;
addEventListener('beforeprint', () => {
  screen = { theme: document.documentElement.dataset.theme, folded: [...main.querySelectorAll('details:not([open]):not(:has(.tall))')] };
  for (const details of screen.folded) details.open = true;
  main.style.width = '680px';
  setTheme('light');
});
addEventListener('afterprint', () => {
  for (const details of screen.folded) details.open = false;
  main.style.width = '';
  setTheme(screen.theme);
});
