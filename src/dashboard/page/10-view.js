"use strict";
const embedded = document.getElementById("data");
const show = view => { document.getElementById("view").textContent = JSON.stringify(view, null, 1); };
const load = () => fetch("/api/view").then(answer => answer.json()).then(show);
if (embedded) {
  show(JSON.parse(embedded.textContent));
} else {
  load();
  new EventSource("/api/events").addEventListener("change", load);
}
