// What the model wrote: one step at a time, the newest unless another is chosen.

class Texts {
  constructor() {
    this.steps = [];
    this.chosen = null;  // a step, or null to follow the newest
    this.slider = element('input', {type: 'range', min: '0', 'aria-label': 'Step of the samples',
      input: () => this.choose(Number(this.slider.value))});
    this.where = element('output', {});
    this.list = element('div', {class: 'texts'});
    this.node = element('div', {},
      element('div', {class: 'stepper'},
        element('button', {type: 'button', 'aria-label': 'Earlier sample', click: () => this.move(-1)}, '\u2190'),
        this.slider,
        element('button', {type: 'button', 'aria-label': 'Later sample', click: () => this.move(1)}, '\u2192'),
        this.where),
      this.list);
  }

  set(texts) {
    this.texts = texts;
    this.steps = [...new Set(texts.map(text => text.step))].sort((a, b) => a - b);
    this.show();
  }

  index() {
    const at = this.chosen === null ? -1 : this.steps.indexOf(this.chosen);
    return at < 0 ? this.steps.length - 1 : at;
  }

  move(by) {
    this.choose(Math.min(Math.max(this.index() + by, 0), this.steps.length - 1));
  }

  choose(index) {
    this.chosen = index >= this.steps.length - 1 ? null : this.steps[index];
    this.show();
  }

  show() {
    const index = this.index(), step = this.steps[index];
    this.slider.max = String(Math.max(this.steps.length - 1, 0));
    this.slider.value = String(index);
    this.slider.disabled = this.steps.length < 2;
    set_text(this.where, `step ${format_integer(step)}`);
    set_attribute(this.slider, 'aria-valuetext', `step ${step}`);
    const shown = this.texts.filter(text => text.step === step);
    rebuild(this.list, shown, () => shown.map(text => element('blockquote', {},
      text.label ? element('cite', {}, text.label) : null, element('p', {}, text.text))));
  }
}
