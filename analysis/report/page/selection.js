// What is selected, and what a chart's filters hide, in one top-level section: charts and tables show it together.

class Selection {
  static all = [];
  /** What is selected anywhere, no longer. */
  static clear() { for (const one of Selection.all) if (one.key !== null) one.select(null); }

  key = null;
  hidden = new Set(); // keys that the filters of a chart take away
  viewers = [];

  constructor() { Selection.all.push(this); }

  /** `viewer`: update() shows the selection; tell(key) describes the key, null where it has none; reveal(key) goes to it. */
  add(viewer) { this.viewers.push(viewer); }

  select(key) {
    this.key = key;
    this.update();
    showSelection(this);
    keepInAddress({ step: key });
  }

  hide(keys) {
    this.hidden = keys;
    this.update();
  }

  update() { for (const viewer of this.viewers) viewer.update(); }
}

restorers.step = (text) => {
  const key = Number(/^\d+$/.test(text) ? text : NaN);
  Selection.all.find((one) => one.viewers.some((viewer) => viewer.has(key)))?.select(key);
};

/** The panel at the foot of the window. It goes when another point is chosen. */
function showSelection(selection) {
  const panel = document.getElementById('selection'), key = selection?.key ?? null;
  panel.hidden = key === null;
  if (panel.hidden) return panel.replaceChildren();
  const told = [...new Set(selection.viewers.map((viewer) => viewer.tell(key)).filter(Boolean))];
  const ways = selection.viewers.filter((viewer) => viewer.reveal && viewer.has(key));
  panel.replaceChildren(h('div', { class: 'told' }, told.map((text) => h('p', {}, text))),
    h('div', { class: 'group' }, ways.map((viewer) => h('button', { type: 'button', on: { click: () => viewer.reveal(key) } }, `Show in: ${viewer.title}`)),
      h('button', { type: 'button', on: { click: () => selection.select(null) } }, 'Clear the selection')));
}
