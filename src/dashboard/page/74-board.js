// The panels of all runs in their order: made once, then only updated, so that nothing flickers.

class Board {
  constructor(node) {
    this.node = node;
    this.panels = new Map();  // id -> Panel
  }

  plots() {
    return [...this.panels.values()].filter(panel => panel.plot && !panel.node.hidden).map(panel => panel.plot);
  }

  panel_of(node) {
    return this.panels.get(node.dataset.panel) ?? null;
  }

  update(runs, selected) {
    const specs = board_specs(runs, selected);
    for (const [id, panel] of this.panels) {
      if (specs.some(spec => spec.id === id && spec.kind === panel.spec.kind)) continue;
      panel.remove();
      this.panels.delete(id);
    }
    specs.forEach((spec, i) => {
      let panel = this.panels.get(spec.id);
      if (!panel) {
        panel = new Panel(spec, is_wide(spec, i));
        this.panels.set(spec.id, panel);
      }
      set_hidden(panel.node, !panel.update(spec, selected));
      if (this.node.children[i] !== panel.node) this.node.insertBefore(panel.node, this.node.children[i] ?? null);
    });
    this.fill_rows();
  }

  // Redraws what depends on the range of x.
  update_plots(selected) {
    for (const panel of this.panels.values()) {
      if (panel.plot && !panel.node.hidden) panel.update(panel.spec, selected);
    }
  }

  // Widens texts and heat maps so that three columns have no hole at the end.
  fill_rows() {
    const shown = [...this.panels.values()].filter(panel => !panel.node.hidden);
    const wide = panel => panel.node.classList.contains('wide');
    let holes = (3 - shown.reduce((sum, panel) => sum + (wide(panel) ? 2 : 1), 0) % 3) % 3;
    for (const kind of ['text', 'heatmap']) {
      for (const panel of shown.filter(candidate => candidate.spec.kind === kind)) {
        panel.node.classList.toggle('full', holes > 0);
        if (holes > 0) --holes;
      }
    }
  }
}

function is_wide(spec, i) {
  return i === 0 || spec.kind === 'heatmap' || spec.kind === 'text';
}

// The selected run's panels, then those that only others have; what the run says about itself is second, and its events last.
function board_specs(runs, selected) {
  const specs = [];
  const add = spec => {
    if (!specs.some(other => other.id === spec.id)) specs.push(spec);
  };
  for (const run of [selected, ...runs]) {
    for (const panel of run.panels) {
      if (panel.kind === 'lines' || run === selected) add(panel);
    }
  }
  if (!specs.some(spec => spec.kind === 'events')) add({id: 'events', title: 'Events', kind: 'events'});
  const details = {id: 'details', title: 'Run', kind: 'details'};
  specs.splice(1, 0, details);
  return specs;
}
