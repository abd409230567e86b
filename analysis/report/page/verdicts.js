// Verdicts with their evidence, their margin and what would overturn them.

const boundText = (verdict) => verdict.bound + (verdict.level ? ` (${verdict.level})` : '');

function verdictText(verdict) {
  return h('div', { class: 'verdict' }, h('p', {}, h('strong', {}, verdict.subject + ': ' + boundText(verdict))),
    verdict.evidence.length ? h('ul', {}, verdict.evidence.map((line) => h('li', {}, line))) : null,
    h('p', { class: 'note' }, [verdict.rule && `Rule ${verdict.rule}, ${percent(verdict.margin)} beyond its threshold.`,
      verdict.overturned_by && `Overturned by: ${verdict.overturned_by}`].filter(Boolean).join(' ')));
}

function verdictRows(verdicts) {
  return verdicts.map((verdict) => [verdict.subject, boundText(verdict), verdict.rule, percent(verdict.margin), verdict.evidence.join('; '), verdict.overturned_by]);
}

const verdictColumns = [['subject', 'name'], ['verdict'], ['rule'], ['margin', 'right'], ['evidence', 'wide'], ['what would overturn it', 'wide']];

function drawVerdicts(point) {
  const into = body('verdicts'), verdicts = point.verdicts;
  if (point.ledger.unavailable) return into.append(missing(point.ledger.unavailable));
  into.append(...sectionParts(verdicts.section));
  if (!verdicts.steps.length) return;
  const count = new Map();
  for (const verdict of verdicts.steps) count.set(verdict.bound, (count.get(verdict.bound) || 0) + 1);
  const steps = h('details', {}, h('summary', {}, `By step: ${[...count].map(([bound, n]) => `${n} ${bound}`).join(', ')}`));
  steps.addEventListener('toggle', () => {
    if (steps.open && steps.children.length === 1) steps.append(smallTable('By step', verdictColumns, verdictRows(verdicts.steps)));
  });
  into.append(steps, h('details', {}, h('summary', {}, 'The rules'), smallTable('Rules, in their order', [['rule', 'name'], ['verdict'], ['condition', 'wide']],
    report.rules.map((rule) => [rule.id, rule.bound, rule.what]))));
}
