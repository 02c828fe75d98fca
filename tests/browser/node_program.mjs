// Runs and trains the graphs of the page; prints the numbers, which test_page.py compares.
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const folder = process.argv[2];
const {load} = await import(pathToFileURL(join(folder, "plait_run.js")));
const runtime = await load(pathToFileURL(join(folder, "digits.wasm")));
const [predict, train] = ["predict", "train"].map(
    (name) => runtime.open(readFileSync(join(folder, `${name}.safetensors`))));
const batch = (n) => ({
  images: Float32Array.from({length: 784 * n}, (_, i) => i % 23 / 23),
  labels: Array.from({length: n}, (_, i) => i % 10),
});
const probabilities = Array.from(predict.run(batch(1).images)[predict.outputs[0]].data);
const loss = (n) => train.run(batch(n))[train.outputs[0]].data[0];
const losses = [6, 6, 3, 6, 1, 6, 6, 6].map(loss);
writeFileSync(join(folder, "saved.safetensors"), train.save());
console.log(JSON.stringify({probabilities, losses, next_loss: loss(6)}));
predict.close();
train.close();
