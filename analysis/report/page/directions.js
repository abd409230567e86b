// A backward against its forward: time of each op kind in both directions, and the tables of the document.

function drawDirections(point) {
  const into = body('directions'), directions = point.directions;
  if (!directions) return into.append(missing('this point has no backward; --direction fwd,bwd or train has'));
  const ops = directions.ops.filter((op) => op[1] !== null || op[2] !== null);
  if (ops.length)
    barPair(into, 'Time by op kind, ms', 'measured; a kind without a bar has no steps of its own in that direction', ops.map((op) => op[0]), 'ms',
      [['forward', ops.map((op) => op[1])], ['backward', ops.map((op) => op[2])]]);
  into.append(...sectionParts(directions.section));
}
