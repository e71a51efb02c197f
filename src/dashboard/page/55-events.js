// What happened to a run, newest first.

const kEventNames = {start: 'started', resume: 'resumed', checkpoint: 'saved', best: 'best', warning: 'warning',
  incident: 'incident', settings: 'settings', end: 'ended', damage: 'damaged'};
const kEventsAtOnce = 60;

class Events {
  constructor() {
    this.count = kEventsAtOnce;
    this.list = element('ol', {class: 'event-list', reversed: '', tabindex: '0', 'aria-label': 'Events, newest first'});
    this.more = element('button', {type: 'button', click: () => {
      this.count += 10 * kEventsAtOnce;
      this.set(this.events);
    }}, 'Show older events');
    this.node = element('div', {}, this.list, this.more);
  }

  set(events) {
    this.events = events;
    const shown = [...events].reverse().slice(0, this.count);
    rebuild(this.list, shown, () => shown.map(event => this.item(event)));
    set_hidden(this.more, events.length <= this.count);
  }

  item(event) {
    const when = event.seconds === null || event.seconds === undefined ? null : format_duration(event.seconds);
    const kind = kEventNames[event.kind] ?? event.kind;
    const text = event.text.startsWith(`${kind} `) ? event.text.slice(kind.length + 1) : event.text;
    return element('li', {class: `event ${kEventNames[event.kind] ? event.kind : ''}`},
      element('span', {class: 'kind'}, kind),
      element('span', {class: 'where', title: when}, format_integer(event.step)),
      element('span', {class: 'what'}, text));
  }
}
