// The page: reads the data, shows a plan, and follows the reader's choices of plan and colours.
'use strict';

(function () {
  /** The sections' names where there is little room. */
  const SHORT = {
    devices: 'Devices', tables: 'Tables', search: 'Search', comparison: 'Other plans', measured: 'Measured', trust: 'Models',
  };
  const report = JSON.parse(document.getElementById('data').textContent);

  /** Shows the plan of this number. */
  function show(number) {
    const plan = report.plans[number];
    const view = {afterwards: [], showTablesOf: () => {}};
    const sections = [
      overview(report, plan, view),
      deviceTable(plan),
      tablesSection(report, plan, view),
      searchSection(report, plan),
      comparisonSection(report, plan),
      measuredSection(report, plan),
      trustSection(report, plan),
    ].filter(Boolean);
    showSections(sections, SHORT);
    for (const action of view.afterwards) action();
    drawCharts();
    document.title = visible(plan.name) + ' – NeuroShard report';
    document.getElementById('footer').textContent =
      `${visible(plan.name)}: ${counted(report.task.tables.length, 'table')} on ${counted(report.task.world_size, 'device')}` +
      ` (${integer(report.task.local_world_size)} a host), optimizer ${report.task.optimizer}.` +
      ` Times are predicted, of one training iteration, unless they are called measured. NeuroShard ${report.version}; charts by Chart.js.`;
  }

  function choosePlan() {
    const choice = document.getElementById('plan');
    choice.replaceChildren(...report.plans.map((plan, number) =>
      element('option', {value: String(number)}, visible(plan.name))));
    choice.addEventListener('change', () => show(Number(choice.value)));
    document.getElementById('plan-choice').hidden = report.plans.length < 2;
  }

  choosePlan();
  followTheme();
  followPrinter();
  show(0);
}());
