'use strict';
// Train the step that examples/languages.py exported, without Python in the process.
//
//     PLAIT_LIBRARIES=... node examples/node/train_file.js FOLDER
const path = require('node:path');
const { Graph } = require('../../bindings/node');
const { batches, folder, report } = require('./digits');

const step = new Graph(path.join(folder(), 'step.safetensors'));
const losses = [];
for (const [images, classes] of batches(folder(), 100)) {
  step.setInput('x', images);
  step.setInput('y', classes);
  step.execute();
  losses.push(step.output('output')[0]);
}
report(losses);
step.save(path.join(folder(), 'trained.safetensors'));
