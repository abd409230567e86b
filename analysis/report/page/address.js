// What the reader chose, in the fragment of the address, so that a link shows it again:
//     report.html#roofline&point=seq1024-batch1-fp16&step=12&theme=dark
// The section comes first, as a link of the page sets it. What an address names and the page does not have is ignored.

const address = { section: '', point: null, step: null, theme: null };
const restorers = {}; // by name: a function that takes over a value of an address, where there is such a one

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ''; } };
function readAddress() {
  const [section, ...pairs] = location.hash.slice(1).split('&').map(decoded);
  const named = pairs.filter((pair) => pair.includes('=')).map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]);
  return { ...Object.fromEntries(named), section };
}

function keepInAddress(changes) {
  Object.assign(address, changes);
  if (!document.getElementById(address.section)) address.section = ''; // it went with its point
  const pairs = ['point', 'step', 'theme'].filter((name) => address[name] !== null).map((name) => `&${name}=${encodeURIComponent(address[name])}`);
  const fragment = encodeURIComponent(address.section) + pairs.join('');
  history.replaceState(history.state, '', location.href.split('#')[0] + (fragment && '#' + fragment));
}

/** Takes over what the address names: a point before a step of it, and both before the section, which may be the point's. */
function restoreFromAddress() {
  const asked = readAddress();
  for (const name of ['theme', 'point', 'step']) if (name in asked) restorers[name]?.(asked[name]);
  const named = asked.section && document.getElementById(asked.section);
  const target = named && named.matches('main [id]') ? named : null;
  keepInAddress(target ? { section: asked.section } : {});
  if (!target) return;
  openAll(target.querySelector(':scope > details') || target);
  target.scrollIntoView();
}
