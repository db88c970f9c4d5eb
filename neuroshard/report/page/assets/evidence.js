// The sections on why to believe a plan: how the search got to it, what else there was, what was
// measured, and what its models do not know.
'use strict';

function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

function listOf(value) {
  return Array.isArray(value) ? value.filter((each) => each !== null && typeof each === 'object') : [];
}

/** Whether the plan was priced by other models after its search: costs that the search wrote down are
 * then not comparable with the plan's. */
function isPricedAnew(plan) {
  const {model} = plan.search;
  return model !== null && typeof model === 'object' && JSON.stringify(model) !== JSON.stringify(plan.model);
}

/** How the search got there; nothing of a plan whose file does not say. */
function searchSection(report, plan) {
  const {search, history} = plan;
  const statistics = search.statistics || {};
  const levels = listOf(statistics.levels).filter((level) => isNumber(level.level));
  const rounds = listOf(statistics.rounds).filter((round) => isNumber(round.cost_before_ms) && isNumber(round.cost_after_ms));
  const facts = [
    typeof search.algorithm === 'string' ? `found by ${visible(search.algorithm)}` : null,
    isNumber(search.wall_ms) ? `in ${search.wall_ms >= 1000 ? (search.wall_ms / 1000).toFixed(2) + ' s' : milliseconds(search.wall_ms)}` : null,
    isNumber(search.plans_priced) ? `after pricing ${counted(search.plans_priced, 'plan')}` : null,
  ].filter(Boolean).join(' ');
  if (facts === '' && levels.length === 0) return null;
  const charts = element('div', {class: 'columns'},
    history.levels.length + history.rounds.length > 1
      ? element('div', {}, element('h3', {}, 'Best cost so far, over the work done'),
                chartNode('Best cost so far over plans priced', historyChart(history)))
      : null,
    levels.length > 1
      ? element('div', {}, element('h3', {}, 'Beam search, level by level'),
                chartNode('Best cost of each level of the beam search', levelsChart(levels)))
      : null);
  return section('search', 'How the search got there',
    element('p', {}, facts === '' ? '' : 'The plan was ' + facts + '.'
      + (statistics.stopped_by_clock === true ? ' The clock stopped the search: more time might give a better plan.' : '')),
    levels.length > 0 || rounds.length > 0
      ? element('p', {class: 'muted'}, 'The beam search starts from the cuts that memory makes necessary and makes one more cut in each level; the improvement then moves pieces and changes cuts. The improvement counts costs as a pessimist: where the networks of the computation model disagree, more than their mean. So its curve does not go on where the other ends.')
      : null,
    isPricedAnew(plan) && (levels.length > 0 || rounds.length > 0)
      ? element('p', {class: 'warning'}, 'These costs are by the models of the search. The plan was priced by other models since, so its own cost is not one of them.')
      : null,
    charts,
    rounds.length > 0 ? element('h3', {}, 'Rounds of the improvement') : null,
    rounds.length > 0 ? roundsTable(rounds) : null);
}

function roundsTable(rounds) {
  const chains = (round) => listOf(round.chains);
  const best = (round) => (isNumber(round.best_chain) && chains(round)[round.best_chain]) || null;
  const sum = (round, field) => chains(round).reduce((total, chain) => total + (isNumber(chain[field]) ? chain[field] : 0), 0);
  return sortableTable([
    {title: 'round', number: true, value: (row) => row.number},
    {title: 'cost before ms', number: true, value: (row) => row.round.cost_before_ms, text: (row) => row.round.cost_before_ms.toFixed(3)},
    {title: 'after ms', number: true, value: (row) => row.round.cost_after_ms, text: (row) => row.round.cost_after_ms.toFixed(3)},
    {title: 'gain', number: true, value: (row) => 1 - row.round.cost_after_ms / row.round.cost_before_ms,
      text: (row) => perCent(1 - row.round.cost_after_ms / row.round.cost_before_ms, 1)},
    {title: 'by', wide: true, value: (row) => (best(row.round) ? String(best(row.round).kind).replace('_', ' ') : 'nothing cheaper found')},
    {title: 'steps', number: true, wide: true, value: (row) => sum(row.round, 'steps'), text: (row) => integer(sum(row.round, 'steps'))},
    {title: 'plans priced', number: true, wide: true, value: (row) => sum(row.round, 'plans_priced'), text: (row) => integer(sum(row.round, 'plans_priced'))},
  ], {rows: rounds.map((round, number) => ({round, number})), pageSize: 10, sortBy: 0, label: 'Rounds'}).node;
}

/** This plan, the other plans of the report, and the baselines, cheapest first; last those whose costs
 * are by other models than the plan's. */
function comparisonSection(report, plan) {
  const entries = report.plans.map((other) => ({
    name: other.name, cost_ms: hasCost(other) ? other.cost_ms : null, own: other === plan, plan: other,
    byOthers: false, note: other === plan ? 'this plan' : 'a plan of this report',
  }));
  for (const baseline of listOf(plan.search.baselines)) {
    const cost_ms = isNumber(baseline.cost_ms) ? baseline.cost_ms : null;
    const byOthers = cost_ms !== null && isPricedAnew(plan);
    const found = byOthers ? 'another planner, by the models of the search' : 'another planner';
    entries.push({
      name: String(baseline.algorithm), cost_ms, own: false, plan: null, byOthers,
      note: baseline.found === true ? found : 'no plan: ' + String(baseline.reason),
    });
  }
  if (entries.length < 2) return null;
  entries.sort((a, b) => Number(a.byOthers) - Number(b.byOthers)
    || (a.cost_ms === null ? Infinity : a.cost_ms) - (b.cost_ms === null ? Infinity : b.cost_ms));
  const most = (entry, field) => (entry.plan && hasCost(entry.plan) ? Math.max(...entry.plan.devices.map((device) => device[field])) : null);
  const number = (value, text) => (value === null ? '' : text(value));
  const table = sortableTable([
    {title: 'plan', value: (entry) => entry.name, class: 'name'},
    {title: 'cost ms', number: true, value: (entry) => (entry.cost_ms === null ? Infinity : entry.cost_ms), text: (entry) => number(entry.cost_ms, (ms) => ms.toFixed(3))},
    {title: 'to this plan', number: true, value: (entry) => (entry.cost_ms === null || entry.byOthers ? Infinity : entry.cost_ms),
      text: (entry) => (entry.cost_ms === null || entry.byOthers || !hasCost(plan) ? '' : (entry.cost_ms / plan.cost_ms).toFixed(2) + '×')},
    {title: 'longest computation ms', number: true, wide: true, value: (entry) => most(entry, 'compute_ms') || 0, text: (entry) => number(most(entry, 'compute_ms'), (ms) => ms.toFixed(3))},
    {title: 'pieces', number: true, wide: true, value: (entry) => (entry.plan ? entry.plan.pieces.length : 0), text: (entry) => (entry.plan ? integer(entry.plan.pieces.length) : '')},
    {title: 'what it is', value: (entry) => entry.note},
  ], {rows: entries, pageSize: 12, label: 'Comparison', rowClass: (entry) => (entry.own ? 'is-open' : '')});
  const drawn = entries.filter((entry) => entry.cost_ms !== null && !entry.byOthers);
  const box = drawn.length > 1 ? chartNode('Predicted costs of plans and baselines', comparisonChart(drawn), 'low') : null;
  if (box !== null) box.style.height = `${Math.max(8, 3.5 + 1.7 * drawn.length)}rem`;
  const hashes = new Set(report.plans.map((other) => JSON.stringify(other.model)));
  return section('comparison', 'Next to other plans',
    hashes.size > 1 ? element('p', {class: 'warning'}, 'These plans were priced by different models, so their costs are not comparable: neuroshard price predicts a plan\'s cost by other models.') : null,
    entries.some((entry) => entry.byOthers) ? element('p', {class: 'warning'}, 'The costs of other planners\' plans are by the models of the search. This plan was priced by other models since, so they are not comparable with its cost.') : null,
    box, table.node);
}

const HOW = {
  computation: ['measured', 'The computation of each device was measured; communication is as the model predicts it for the measured computation.'],
  simulated: ['simulated', 'Communication was simulated; computation is as predicted.'],
  iterations: ['measured', 'Whole iterations were measured, one process for each device.'],
};

/** By which models an evaluation's prediction is, where these are not the plan's: as files move, by
 * the hash, and models without a file by name. */
function otherModels(evaluation, plan) {
  const kinds = [['compute', 'computation'], ['communication', 'communication']];
  const others = kinds.filter(([kind]) => {
    const [its, plans] = [evaluation.model[kind], plan.model[kind]];
    return its && plans && (plans.sha256 ? its.sha256 !== plans.sha256 : its.name !== plans.name);
  });
  return others.map(([kind, name]) => `${modelText(evaluation.model[kind])} for ${name}`).join('; ');
}

function evaluationNode(evaluation, plan) {
  const [how, explanation] = HOW[evaluation.kind];
  const others = otherModels(evaluation, plan);
  const {predicted, actual} = evaluation;
  const numbers = predicted.devices.map((_, number) => number)
    .sort((a, b) => actual.devices[b].total_ms - actual.devices[a].total_ms || a - b).slice(0, 32).sort((a, b) => a - b);
  const field = evaluation.kind === 'computation' ? 'compute_ms' : 'total_ms';
  const what = evaluation.kind === 'computation' ? 'computation' : 'total';
  const rows = predicted.devices.map((device, number) => ({
    number, predicted: device[field], actual: actual.devices[number][field],
    interval: evaluation.interval ? evaluation.interval[number] : null,
  }));
  const error = (row) => (row.actual > 0 ? row.predicted / row.actual - 1 : 0);
  const busy = rows.filter((row) => row.actual > 0);
  const mean = busy.reduce((sum, row) => sum + Math.abs(error(row)), 0) / Math.max(busy.length, 1);
  const intervals = [
    {title: 'measurement ±', number: true, wide: true, value: (row) => row.interval, text: (row) => perCent(row.interval, 1)},
  ];
  const signed = (share) => (share >= 0 ? '+' : '') + perCent(share, 1);
  return element('div', {},
    element('h3', {}, visible(evaluation.name)),
    element('p', {}, `${explanation} Predicted cost ${milliseconds(predicted.cost_ms)}, ${evaluation.kind === 'computation' ? 'part-measured' : how} ${milliseconds(actual.cost_ms)}: the prediction is ${signed(actual.cost_ms > 0 ? predicted.cost_ms / actual.cost_ms - 1 : 0)} off; over the devices, its ${what} is ${perCent(mean, 1)} off on average.`),
    others === '' ? null : element('p', {}, `The prediction here is by other models than the plan's: ${others}.`),
    ...evaluation.warnings.filter((warning) => !plan.warnings.includes(warning)).map((warning) => element('p', {class: 'warning'}, visible(warning))),
    chartNode(`Predicted and ${how} time of each device`, evaluationChart(evaluation, numbers, how)),
    numbers.length < rows.length ? element('p', {class: 'muted'}, `The ${numbers.length} slowest devices are drawn.`) : null,
    sortableTable([
      {title: 'device', number: true, value: (row) => row.number},
      {title: `predicted ${what} ms`, number: true, value: (row) => row.predicted, text: (row) => row.predicted.toFixed(3)},
      {title: `${how} ms`, number: true, value: (row) => row.actual, text: (row) => row.actual.toFixed(3)},
      {title: 'prediction off by', number: true, value: error, text: (row) => signed(error(row))},
      ...(evaluation.interval ? intervals : []),
    ], {rows, pageSize: 16, sortBy: 0, label: 'Predicted and ' + how}).node);
}

function measuredSection(report, plan) {
  if (plan.evaluations.length === 0) return null;
  return section('measured', 'Predicted and measured', ...plan.evaluations.map((evaluation) => evaluationNode(evaluation, plan)));
}

function modelText(model) {
  if (model === null || typeof model !== 'object' || typeof model.name !== 'string') return 'not recorded';
  const notes = [
    model.name.startsWith('analytic-') || !model.sha256 ? 'an estimate from data sheets, not learned from measurements' : null,
    model.is_simulated === true ? 'learned from simulations' : null,
    typeof model.sha256 === 'string' ? 'SHA-256 ' + model.sha256.slice(0, 12) + '…' : null,
  ].filter(Boolean);
  return visible(model.name) + (notes.length > 0 ? ` (${notes.join('; ')})` : '');
}

/** The models, and what of the task lies outside of what they were trained on. */
function trustSection(report, plan) {
  return section('trust', 'What the models do not know',
    element('p', {}, `Computation: ${modelText(plan.model.compute)}. Communication: ${modelText(plan.model.communication)}.`),
    plan.warnings.length === 0
      ? element('p', {}, plan.model.compute
        ? 'No warning was recorded: nothing of this task lies outside of the range that the models were trained on, and their networks agree about the slowest device.'
        : 'No warning was recorded.')
      : element('p', {}, 'Outside of what the models were trained on, a prediction says less:'),
    ...plan.warnings.map((warning) => element('p', {class: 'warning'}, visible(warning))));
}
