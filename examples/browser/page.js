import {drawInto, imageOf, thumbnail} from "./drawing.js";
import {load} from "./plait_run.js";

const STEPS = 5;
const element = (id) => document.getElementById(id);
const digits = Array.from({length: 10}, (_, i) => i);

let runtime, predict, train, files;
let image = null, examples = [], losses = [];

async function fetchBytes(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  return response.arrayBuffer();
}

function say(text, isError = false) {
  element("status").textContent = text;
  element("status").classList.toggle("error", isError);
}

function guarded(action) {
  try {
    return action();
  } catch (error) {
    say(error.message, true);
  }
}

function openGraphs() {
  predict?.close();
  train?.close();
  [predict, train] = files.map((bytes) => runtime.open(bytes));
  train.copyWeights(predict);
}

const bars = digits.map((digit) => {
  const row = document.createElement("li");
  row.innerHTML = `<span>${digit}</span><span class="track"><span class="bar"></span></span>`
      + `<span class="share"></span>`;
  element("bars").append(row);
  return row;
});

function showPrediction() {
  const shares = image && predict ? predict.run(image)[predict.outputs[0]].data : null;
  const best = shares ? shares.indexOf(Math.max(...shares)) : -1;
  bars.forEach((row, digit) => {
    const percent = shares ? 100 * shares[digit] : 0;
    row.classList.toggle("best", digit === best);
    row.querySelector(".bar").style.width = `${percent}%`;
    row.querySelector(".share").textContent = shares ? `${percent.toFixed(1)} %` : "";
  });
  element("guess").textContent = best < 0 ? "–" : best;
  for (const button of element("labels").children) button.disabled = !shares;
}

function addExample(label) {
  if (!image || !train) return;
  examples.push({image, label});
  const item = document.createElement("li");
  item.append(thumbnail(image), `${label}`);
  element("examples").append(item);
  element("count").textContent = examples.length;
  element("train").disabled = false;
  pad.clear();
  say(`The drawing is a ${label}. Draw more, or train.`);
}

// One step with all digits; the weights are then those of the predictions, too.
function makeSteps() {
  const images = new Float32Array(784 * examples.length);
  examples.forEach((each, i) => images.set(each.image, 784 * i));
  const labels = examples.map((each) => each.label);
  for (let i = 0; i < STEPS; i++)
    losses.push(train.run({images, labels})[train.outputs[0]].data[0]);
  predict.copyWeights(train);
  showLosses();
  showPrediction();
  say(`Trained ${losses.length} steps on ${examples.length} of your digits.`);
}

function showLosses() {
  const highest = Math.max(...losses, 1e-6), last = Math.max(losses.length - 1, 1);
  const points = losses.map((loss, i) => `${5 + 290 * i / last},${75 - 70 * loss / highest}`);
  element("curve").querySelector("polyline").setAttribute("points", points.join(" "));
  element("loss").textContent = losses.length ? losses.at(-1).toFixed(4) : "–";
  element("loss").dataset.losses = JSON.stringify(losses);
}

function startAgain() {
  openGraphs();
  examples = [];
  losses = [];
  element("examples").replaceChildren();
  element("count").textContent = 0;
  element("train").disabled = true;
  showLosses();
  pad.clear();
  say("The network is as it was.");
}

const pad = drawInto(element("pad"), () => guarded(() => {
  image = imageOf(element("pad"));
  showPrediction();
}));

for (const digit of digits) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = digit;
  button.setAttribute("aria-label", `It is a ${digit}`);
  button.addEventListener("click", () => guarded(() => addExample(digit)));
  element("labels").append(button);
}
element("clear").addEventListener("click", () => pad.clear());
element("train").addEventListener("click", () => guarded(makeSteps));
element("reset").addEventListener("click", () => guarded(startAgain));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^[0-9]$/.test(event.key)) guarded(() => addExample(Number(event.key)));
  if (event.key === "Escape") pad.clear();
});
showPrediction();

try {
  const names = ["predict.safetensors", "train.safetensors"];
  [runtime, ...files] = await Promise.all([load("digits.wasm"), ...names.map(fetchBytes)]);
  openGraphs();
  showPrediction();
  say("Ready.");
} catch (error) {
  say(`The network cannot be loaded: ${error.message}`, true);
}
