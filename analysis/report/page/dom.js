// Elements and controls. Text of the document reaches the page through createTextNode only, never as markup.

/** An element. `attributes`: `on` holds listeners, what is null or false is left out. Children that are strings are text. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'on') for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** `color`: the name of a variable of the style sheet, so that it follows the theme. */
const swatch = (color) => h('span', { class: 'swatch', style: `background:var(--${color})`, 'aria-hidden': 'true' });

/** Unfolds whatever folded part an element stands in, and itself. */
function openAll(element) {
  for (let folded = element.closest('details'); folded; folded = folded.parentElement.closest('details')) folded.open = true;
}

/** A choice of one among `options`, each its text; `onChoose` gets its number. */
function selectOf(label, options, onChoose) {
  return h('label', {}, h('span', {}, label), h('select', { on: { change: (event) => onChoose(Number(event.currentTarget.value)) } },
    options.map((text, i) => h('option', { value: i }, text))));
}

/** Buttons that each switch one thing on or off. `options`: the content of each; `on`: the numbers of those that are on. */
function switches(label, options, on, onChange) {
  return h('div', { class: 'group', role: 'group', 'aria-label': label }, options.map((content, i) =>
    h('button', { type: 'button', 'aria-pressed': String(on.has(i)), on: { click: (event) => {
      if (!on.delete(i)) on.add(i);
      event.currentTarget.setAttribute('aria-pressed', String(on.has(i)));
      onChange();
    } } }, content)));
}
