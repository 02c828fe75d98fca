'use strict';
// What both programs share: MNIST's files, and the lines that they print.
const fs = require('node:fs');
const path = require('node:path');

const ROWS = 100; // of a batch

// Yield images as numbers from 0 to 1, and their classes, in batches.
function* batches(folder, count) {
  // a header of 16 bytes before images of 784, and one of 8 before classes
  const images = fs.readFileSync(path.join(folder, 'train-images-idx3-ubyte')).subarray(16);
  const classes = fs.readFileSync(path.join(folder, 'train-labels-idx1-ubyte')).subarray(8);
  for (let row = 0; row < count * ROWS; row += ROWS) {
    const x = Float32Array.from(images.subarray(784 * row, 784 * (row + ROWS)), (byte) => byte / 255);
    const y = BigInt64Array.from(classes.subarray(row, row + ROWS), BigInt);
    yield [x, y];
  }
}

// Print the mean losses of each 20 steps.
function report(losses) {
  for (let begin = 0; begin < losses.length; begin += 20) {
    const part = losses.slice(begin, begin + 20);
    const mean = part.reduce((sum, loss) => sum + loss, 0) / part.length;
    const steps = `${String(begin + 1).padStart(3)} to ${String(begin + part.length).padStart(3)}`;
    console.log(`steps ${steps}  loss ${mean.toFixed(4)}`);
  }
}

// The folder that the command line names.
function folder() {
  if (process.argv.length > 2) return process.argv[2];
  console.error('the folder that examples/languages.py wrote is required');
  process.exit(2);
}

module.exports = { ROWS, batches, folder, report };
