// What is wrong is an error with the runtime's text, and the runtime goes on.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const folder = process.argv[2];
const {ERRORS, PlaitError, load} = await import(pathToFileURL(join(folder, "plait_run.js")));
const runtime = await load(pathToFileURL(join(folder, "digits.wasm")));
const [predictFile, trainFile] = ["predict", "train"].map(
    (name) => readFileSync(join(folder, `${name}.safetensors`)));
const predict = runtime.open(predictFile), train = runtime.open(trainFile);
const image = new Float32Array(784).fill(0.5);
const output = () => Array.from(predict.run(image)[predict.outputs[0]].data);
const before = output();

function refused(code, text, body) {
  assert.throws(body, (error) => {
    assert.ok(error instanceof PlaitError, String(error.stack));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
    return true;
  });
  assert.deepEqual(output(), before);
}

refused(ERRORS.SHAPE, /has 3136 bytes; got 20/, () => predict.run(new Float32Array(5)));
refused(ERRORS.DTYPE, /Float32Array .* is required, got Float64Array|got Float64Array/,
        () => predict.run(new Float64Array(784)));
refused(ERRORS.INDEX, /there is no input "z"/, () => predict.run({z: image}));
refused(ERRORS.INDEX, /there is no weight "z"/, () => predict.weight("z"));
refused(ERRORS.INDEX, /there is no number "z"/, () => train.setNumber("z", 1));
refused(ERRORS.VALUE, /an object with arrays by name is required/, () => train.run(image));
refused(ERRORS.VALUE, /element 0 is no number/, () => train.run({labels: ["a"]}));
refused(ERRORS.VALUE, /cannot be converted/, () => train.run({labels: [0.5]}));
refused(ERRORS.VALUE, /must be a number, got string/, () => train.setNumber("batch", "1"));
refused(ERRORS.VALUE, /an ArrayBuffer or a Uint8Array is required/, () => runtime.open("x"));
refused(ERRORS.ERROR, /at least 8/, () => runtime.open(new Uint8Array(3)));
refused(ERRORS.ERROR, /has 0 bytes/, () => runtime.open(new Uint8Array(0)));
for (let n = 8; n < trainFile.length; n += 4099)
  refused(ERRORS.ERROR, /cut off|damaged/, () => runtime.open(trainFile.subarray(0, n)));
for (let seed = 1; seed < 200; seed++) {  // bytes of the header that are others: an error, or none
  const damaged = Uint8Array.from(trainFile);
  damaged[8 + seed * 7919 % 10000] = seed;
  try {
    runtime.open(damaged).close();
  } catch (error) {
    assert.ok(error instanceof PlaitError, String(error.stack));
    assert.doesNotMatch(error.message, /the runtime failed/);
  }
}
const limited = await load(pathToFileURL(join(folder, "digits.wasm")));
refused(ERRORS.MEMORY, /the memory limit is 1000 bytes/,
        () => limited.open(trainFile, {memoryLimit: 1000}));

// Sizes whose bytes do not fit 32 bits are refused; none of them wraps around.
const sized = runtime.open(trainFile);
for (const size of [2 ** 20, 2 ** 22, 2 ** 30, 2 ** 31])
  refused(ERRORS.MEMORY, /its values have more than 4294967295 bytes together/, () => {
    sized.setNumber("batch", size);
    sized.input("images");
  });
for (const size of [2 ** 32, 2 ** 32 + 1, 2 ** 40, 2 ** 53])
  refused(ERRORS.VALUE, /the graph is for 1 to/, () => sized.setNumber("batch", size));
sized.setNumber("batch", 1);
sized.run({images: image, labels: [3]});
sized.close();

const closed = runtime.open(predictFile);
closed.close();
closed.close();
refused(ERRORS.VALUE, /the graph is closed/, () => closed.run(image));

// No memory is left, and then there is.
const blocks = [];
assert.throws(() => {
  for (;;) blocks.push(runtime.allocate(2 ** 27));
}, (error) => error.code === ERRORS.MEMORY);
assert.throws(() => {
  for (let size = 2 ** 26; size > 64; size /= 2)
    for (let i = 0; i < 2; i++) blocks.push(runtime.allocate(size));
  runtime.open(trainFile);
}, (error) => error.code === ERRORS.MEMORY);
for (const address of blocks) runtime.call("free", address);
assert.deepEqual(output(), before);
