'use strict';
// Train a small network with operators and the optimizer Adam, without Python in the process.
//
//     PLAIT_LIBRARIES=... node examples/node/train_eagerly.js FOLDER
const plait = require('../../bindings/node');
const { ROWS, batches, folder, report } = require('./digits');

const WIDTH = 32;

// Uniform numbers of one seed, small for many rows.
function parameter(rows, columns, seed) {
  const uniform = plait.ops.rand([rows, columns], { generator: new plait.Generator(seed) });
  const weights = uniform.sub(0.5).mul(2 / Math.sqrt(rows));
  weights.requiresGrad = true;
  return weights;
}

plait.load();
const parameters = [parameter(784, WIDTH, 1), parameter(1, WIDTH, 2), parameter(WIDTH, 10, 3), parameter(1, 10, 4)];
const [w1, b1, w2, b2] = parameters;
const optimizer = new plait.Adam(parameters, { lr: 1e-3 });
const losses = [];
for (const [images, classes] of batches(folder(), 100)) {
  // what a step makes is freed at its end
  plait.tidy(() => {
    const x = plait.tensor(images, { shape: [ROWS, 784] });
    const y = plait.tensor(classes);
    optimizer.zeroGrad();
    const hidden = x.mm(w1).add(b1).relu();
    const loss = plait.ops.cross_entropy(hidden.mm(w2).add(b2), y);
    loss.backward();
    optimizer.step();
    losses.push(loss.item());
  });
}
report(losses);
