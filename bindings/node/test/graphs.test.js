'use strict';
// Saved graphs. PLAIT_STEP names the file that examples/languages.py writes.
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { Graph, load, tensor } = require('..');

const step = () => new Graph(process.env.PLAIT_STEP);
const code = (expected) => (error) => assert.equal(error.code, expected, error.message) ?? true;

function setInputs(graph) {
  graph.setInput('x', new Float32Array(78400).fill(0.5));
  graph.setInput('y', new BigInt64Array(100).fill(3n));
}

test('a graph describes itself', () => {
  const graph = step();
  assert.deepEqual(graph.inputs[0], { name: 'x', dtype: 'float32', shape: [100, 784] });
  assert.deepEqual(graph.outputs.map((each) => each.name), ['output']);
  assert.ok(graph.numbers.includes('adam.0.lr'));
  assert.ok(graph.memory > 100 * 784 * 4);
});

test('a step changes weights and is saved', () => {
  const graph = step();
  setInputs(graph);
  graph.setNumber('adam.0.lr', 0.01);
  assert.equal(graph.number('adam.0.lr'), 0.01);
  const bias = graph.weights.find((each) => each.dtype === 'float32' && String(each.shape) === '1,10').name;
  const before = graph.weight(bias);
  graph.execute();
  const [first] = graph.output('output');
  assert.notDeepEqual(graph.weight(bias), before);
  const file = path.join(os.tmpdir(), `plait_node_${process.pid}.safetensors`);
  graph.save(file);
  const again = new Graph(file, { threads: 1 });
  fs.unlinkSync(file);
  assert.deepEqual(again.weight(bias), graph.weight(bias));
  again.setWeight(bias, before);
  assert.deepEqual(again.weight(bias), before);
  graph.execute();
  assert.ok(graph.output('output')[0] < first);
});

test('bad input is an error', () => {
  const graph = step();
  assert.throws(() => graph.execute(), code('VALUE_ERROR'));
  assert.throws(() => graph.setInput('x', new Float64Array(78400)), code('DTYPE_ERROR'));
  assert.throws(() => graph.setInput('x', [1, 2]), code('DTYPE_ERROR'));
  assert.throws(() => graph.setInput('x', new Float32Array(3)), code('SHAPE_ERROR'));
  assert.throws(() => graph.setInput('z', new Float32Array(3)), /there is no input z; there are: x, y/);
  assert.throws(() => graph.setInput(3, new Float32Array(3)), code('TYPE_ERROR'));
  assert.throws(() => graph.output('output'), code('VALUE_ERROR'));
  assert.throws(() => graph.setNumber('adam.0.lr', '1'), code('TYPE_ERROR'));
  assert.throws(() => graph.save('/no/such/folder/file'), code('ERROR'));
  assert.throws(() => new Graph('/no/such/file'), /\/no\/such\/file/);
  assert.throws(() => new Graph(), code('TYPE_ERROR'));
  assert.throws(() => new Graph(process.env.PLAIT_STEP, { threads: -1 }), code('VALUE_ERROR'));
  const file = path.join(os.tmpdir(), `plait_node_${process.pid}.bad`);
  fs.writeFileSync(file, Buffer.alloc(64, 255));
  assert.throws(() => new Graph(file));
  fs.unlinkSync(file);
  graph.close();
  graph.close();
  assert.throws(() => graph.execute(), code('VALUE_ERROR'));
});

test('graphs and operators live in one process', () => {
  const graph = step();
  load(); // finds the libraries that the graph has loaded
  setInputs(graph);
  graph.execute();
  const [loss] = graph.output('output');
  assert.equal(tensor([loss]).mul(2).item(), Math.fround(2 * loss));
});
